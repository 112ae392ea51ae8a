use std::num::NonZeroU16;
use std::sync::Arc;

use http::HeaderName;
use serde::{Serialize, Serializer};

/// How an Endpoint is chosen where no session says which (`load-balance`, `upstream-hash-by`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The faster of two that chance chooses, by their answers of the last seconds.
    Ewma,
    /// The same for requests that are alike.
    Hash(HashBy),
}

/// What makes requests alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HashBy {
    /// The key is all of these in a row.
    pub pieces: Arc<[HashPart]>,
    /// How many Endpoints share the requests of one key; one when none is given.
    pub subset: Option<NonZeroU16>,
}

/// A part of a hash key, as nginx names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashPart {
    /// Itself.
    Text(Arc<str>),
    /// `$request_uri`: path and query as they came.
    RequestUri,
    /// `$uri`: the path.
    Uri,
    /// `$args`, `$query_string`: the query.
    Query,
    /// `$host`: the host name, in lower case.
    Host,
    /// `$remote_addr`, `$binary_remote_addr`: the client's address.
    Address,
    /// `$request_method`.
    Method,
    /// `$http_NAME`: a header.
    Header(HeaderName),
    /// `$cookie_NAME`: a cookie.
    Cookie(Arc<str>),
    /// `$arg_NAME`: a parameter of the query.
    Argument(Arc<str>),
}

impl Serialize for HashPart {
    /// As it is written in the annotation.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = match self {
            HashPart::Text(text) => text.to_string(),
            HashPart::RequestUri => "$request_uri".to_owned(),
            HashPart::Uri => "$uri".to_owned(),
            HashPart::Query => "$args".to_owned(),
            HashPart::Host => "$host".to_owned(),
            HashPart::Address => "$remote_addr".to_owned(),
            HashPart::Method => "$request_method".to_owned(),
            HashPart::Header(name) => format!("$http_{}", name.as_str().replace('-', "_")),
            HashPart::Cookie(name) => format!("$cookie_{name}"),
            HashPart::Argument(name) => format!("$arg_{name}"),
        };
        serializer.serialize_str(&text)
    }
}
