//! What the proxy answers by itself.

use std::io;
use std::rc::Rc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{
    ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, SERVER, STRICT_TRANSPORT_SECURITY,
};
use http::{HeaderMap, Response, StatusCode};

use super::body::AnswerBody;
use super::client::{Client, Protocol};
use super::fault::Fault;
use super::grpc;
use super::journal::Journal;
use super::policy::Reply;
use super::worker::Worker;

/// What the proxy calls itself where a backend does not name itself.
pub const NAME: HeaderValue = HeaderValue::from_static("splitter");

/// The methods that a 405 names (RFC 9110 15.5.6). Others that no RFC defines are passed on too.
const METHODS: HeaderValue =
    HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH");

/// The proxy's own answer.
pub fn own_answer(
    worker: &Rc<Worker>,
    fault: Fault,
    mut journal: Box<Journal>,
) -> io::Result<Response<AnswerBody>> {
    let status = fault.status();
    if fault == Fault::ClientGone {
        journal.break_off(fault);
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    journal.answer(status.as_u16(), Some(fault));
    if journal.grpc || journal.passage.grpc {
        return Ok(grpc_answer(fault, journal));
    }
    let text = own_text(fault);
    let mut response = Response::builder()
        .status(status)
        .header(SERVER, NAME)
        .header(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        )
        .header(CONTENT_LENGTH, text.len());
    if (fault.closes() || worker.is_draining()) && journal.is_http1() {
        response = response.header(CONNECTION, HeaderValue::from_static("close"));
    }
    if fault == Fault::MethodNotAllowed {
        response = response.header(ALLOW, METHODS);
    }
    if let Some(headers) = response.headers_mut() {
        journal.dress(status, headers);
    }
    let body = if journal.is_head() {
        Bytes::new()
    } else {
        Bytes::from(text)
    };
    response
        .body(AnswerBody::whole(body, journal))
        .map_err(io::Error::other)
}

/// The proxy's own answer to a client that speaks gRPC: a head without a body.
fn grpc_answer(fault: Fault, journal: Box<Journal>) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::whole(Bytes::new(), journal));
    *response.status_mut() = fault.status();
    let headers = response.headers_mut();
    headers.insert(SERVER, NAME);
    grpc::say(fault, headers);
    response
}

/// The answer of a policy.
pub fn policy_answer(
    worker: &Rc<Worker>,
    mut reply: Reply,
    mut journal: Box<Journal>,
) -> io::Result<Response<AnswerBody>> {
    tracing::debug!(policy = reply.name, status = %reply.status, "answered by a policy");
    journal.answer_by(reply.name, reply.status.as_u16());
    if journal.passage.grpc {
        grpc::translate(&mut reply);
    }
    set_hsts(worker, &journal, &mut reply.headers);
    journal.dress(reply.status, &mut reply.headers);
    let length = reply.body.len();
    let body = if journal.is_head() {
        Bytes::new()
    } else {
        reply.body
    };
    let close = worker.is_draining() && journal.is_http1();
    let mut response = Response::new(AnswerBody::whole(body, journal));
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    let headers = response.headers_mut();
    headers.insert(SERVER, NAME);
    if reply.status != StatusCode::NO_CONTENT {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    if close {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// Has browsers come by https from now on, whatever the backend says about it.
pub fn set_hsts(worker: &Worker, journal: &Journal, headers: &mut HeaderMap) {
    if let Some(hsts) = worker.hsts()
        && journal.is_secure()
    {
        headers.insert(STRICT_TRANSPORT_SECURITY, hsts.clone());
    }
}

fn own_text(fault: Fault) -> String {
    format!("{} {}\n", fault.status().as_str(), fault.text())
}

/// The same answer for a connection on which no request could be made out.
pub fn raw_answer(fault: Fault) -> String {
    let text = own_text(fault);
    format!(
        "HTTP/1.1 {status}\r\nserver: splitter\r\ndate: {date}\r\n\
         content-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{text}",
        status = fault.status(),
        date = httpdate::fmt_http_date(SystemTime::now()),
        length = text.len(),
    )
}

/// Has an HTTP/1 client open another connection, to whoever serves after this process.
pub fn close_if_draining(worker: &Worker, client: &Client, headers: &mut HeaderMap) {
    if worker.is_draining() && client.protocol() == Protocol::Http1 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
}
