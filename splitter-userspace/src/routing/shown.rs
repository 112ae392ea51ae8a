use std::net::{IpAddr, Ipv4Addr};

use http::HeaderMap;

use super::Held;

/// What a request shows to the rules of a Location.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Its headers, Cookie among them.
    pub headers: &'a HeaderMap,
    /// The query of its target, without the `?`; empty when there is none.
    pub query: &'a str,
    /// The client's address.
    pub client: IpAddr,
    /// What its session cookie names, where the Location has session affinity.
    pub held: Option<Held>,
}

impl<'a> Shown<'a> {
    /// Only headers: no query, no address, no session.
    pub fn of(headers: &'a HeaderMap) -> Self {
        Shown {
            headers,
            query: "",
            client: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            held: None,
        }
    }
}
