//! HTTP/1 on the backend's side: what a request looks like on the wire and what an answer must look
//! like. Pure but for [`Sending`], which waits for the client's bytes; sockets are read and written
//! by [`Upstream`](super::upstream::Upstream).
//!
//! An answer is read more strictly than RFC 9112 demands of a client. Whatever two programs could
//! read in two ways (a lone LF, a folded line, two lengths, a length beside a coding) is no answer:
//! the client gets 502, and the connection is not used again.

mod broken;
mod chunks;
mod fields;
mod head;
mod interim;
mod request;
mod sending;

pub use broken::{Broken, Invalid};
pub use chunks::{Chunks, Step};
pub use fields::is_hop_by_hop;
pub use head::{Head, HeadParser, Length};
pub use interim::write_interim;
pub use request::{Added, BodyLength, Outgoing};
pub use sending::Sending;

#[cfg(test)]
mod tests;
