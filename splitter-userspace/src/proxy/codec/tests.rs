//! The codec alone: what becomes of bytes, whole, in pieces, and broken.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod answers;
mod bodies;
mod requests;

use bytes::BytesMut;
use http::HeaderMap;

use super::*;

/// What an answer is, once its bytes have come.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    trailers: HeaderMap,
    /// Bytes behind its end.
    left: Vec<u8>,
}

/// Reads an answer that comes in these pieces, and then ends. `Ok(None)` is one that is cut.
fn read(pieces: &[&[u8]], to_head: bool) -> Result<Option<Answer>, Invalid> {
    let mut buf = BytesMut::new();
    let mut pieces = pieces.iter();
    let mut parser = HeadParser::default();
    let head = loop {
        if let Some(head) = parser.parse(&mut buf, to_head)? {
            if !head.is_interim() {
                break head;
            }
            continue;
        }
        match pieces.next() {
            Some(piece) => buf.extend_from_slice(piece),
            None => return Ok(None),
        }
    };
    let mut answer = Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: Vec::new(),
        trailers: HeaderMap::new(),
        left: Vec::new(),
    };
    let mut chunks = Chunks::default();
    loop {
        match head.length {
            Length::None => break,
            Length::Known(length) if buf.len() as u64 >= length => {
                answer.body = buf.split_to(length as usize).to_vec();
                break;
            }
            Length::Known(_) | Length::UntilClose => {}
            Length::Chunked => match chunks.next(&mut buf)? {
                Step::Data(data) => {
                    answer.body.extend_from_slice(&data);
                    continue;
                }
                Step::End(trailers) => {
                    answer.trailers = trailers;
                    break;
                }
                Step::More => {}
            },
        }
        match pieces.next() {
            Some(piece) => buf.extend_from_slice(piece),
            None if head.length == Length::UntilClose => {
                answer.body = buf.split().to_vec();
                break;
            }
            None => return Ok(None),
        }
    }
    answer.left = buf.to_vec();
    for piece in pieces {
        answer.left.extend_from_slice(piece);
    }
    Ok(Some(answer))
}

/// The same of an answer to GET that comes at once.
fn whole(bytes: impl AsRef<[u8]>) -> Result<Option<Answer>, Invalid> {
    read(&[bytes.as_ref()], false)
}
