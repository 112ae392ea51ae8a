use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::proxy::fault::Fault;

/// An answer that a policy gives in place of a pod.
#[derive(Debug)]
pub struct Reply {
    /// The policy, which the answer is counted and logged under.
    pub name: &'static str,
    /// The status.
    pub status: StatusCode,
    /// Its own header fields; what every answer has is added.
    pub headers: HeaderMap,
    /// The body; empty for most.
    pub body: Bytes,
}

impl Reply {
    /// An answer without body and fields.
    pub fn new(name: &'static str, status: StatusCode) -> Self {
        Reply {
            name,
            status,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }
}

/// Why a request does not go on to a pod.
#[derive(Debug)]
pub enum Refusal {
    /// It cannot be served.
    Fault(Fault),
    /// A policy answers it.
    Reply(Box<Reply>),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Refusal::Fault(fault)
    }
}

impl From<Reply> for Refusal {
    fn from(reply: Reply) -> Self {
        Refusal::Reply(Box::new(reply))
    }
}
