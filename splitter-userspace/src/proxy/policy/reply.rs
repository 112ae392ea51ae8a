use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};

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

    /// An answer that says in a sentence what it is about.
    pub fn text(name: &'static str, status: StatusCode, text: &str) -> Self {
        let mut reply = Reply::new(name, status);
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        reply.headers.insert(CONTENT_TYPE, plain);
        reply.body = Bytes::from(format!("{} {text}\n", status.as_str()));
        reply
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

impl Refusal {
    /// The status that is answered.
    pub fn status(&self) -> StatusCode {
        match self {
            Refusal::Fault(fault) => fault.status(),
            Refusal::Reply(reply) => reply.status,
        }
    }
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
