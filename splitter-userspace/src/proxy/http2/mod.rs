//! HTTP/2 towards pods (`backend-protocol: GRPC`, `GRPCS`): cleartext with prior knowledge (RFC 9113
//! 3.3), or over TLS.
//!
//! Unlike HTTP/1 connections, these are shared by requests: each worker has its own to each
//! Endpoint and TLS identity ([`pool`]), driven by a task of their own ([`connection`]), and a request borrows a
//! stream of one ([`stream`]). hyper does the framing and the flow control: a frame is asked of the
//! client's body when the pod's window has room, and of the pod when the client has taken the last
//! one.

mod connection;
mod exchange;
mod pool;
mod request;
mod stream;

pub use exchange::try_endpoint;
pub use pool::Http2Pool;
pub use request::into_http2;
pub use stream::Hold;
