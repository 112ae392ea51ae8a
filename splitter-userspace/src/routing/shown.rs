use std::net::{IpAddr, Ipv4Addr};

use http::HeaderMap;

use super::Held;

/// What a request shows to the rules of a Location.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Its headers, Cookie among them.
    pub headers: &'a HeaderMap,
    /// Its method.
    pub method: &'a str,
    /// The host asked for, in lower case and without port.
    pub host: &'a str,
    /// The path as it came.
    pub path: &'a str,
    /// The query of its target, without the `?`; empty when there is none.
    pub query: &'a str,
    /// The client's address.
    pub client: IpAddr,
    /// What its session cookie names, where the Location has session affinity.
    pub held: Option<Held>,
}

impl<'a> Shown<'a> {
    /// A GET of `/` with these headers: no host, no query, no address, no session.
    pub fn of(headers: &'a HeaderMap) -> Self {
        Shown {
            headers,
            method: "GET",
            host: "",
            path: "/",
            query: "",
            client: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            held: None,
        }
    }
}
