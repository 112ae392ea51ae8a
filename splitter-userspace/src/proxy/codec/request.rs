use http::header::HOST;
use http::{HeaderValue, Version, request};

use super::fields::{is_hop_by_hop, is_replaced};

/// How the end of a request's body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body, and nothing is said of one.
    None,
    /// This many bytes.
    Known(u64),
    /// In chunks.
    Chunked,
}

/// What the proxy says to a backend about a request, beside what the client said.
pub struct Added<'a> {
    /// The host as the client wrote it.
    pub host: &'a HeaderValue,
    /// The request's id.
    pub request_id: &'a HeaderValue,
    /// Lines that are the same for every request of the client's connection, each ended by CRLF.
    pub lines: &'a [u8],
    /// Whether the client takes trailers.
    pub trailers: bool,
}

/// A request on its way to a backend. It is written anew for each try and needs no copy for that.
pub struct Outgoing<'a> {
    /// The request line and the fields.
    pub parts: &'a request::Parts,
    /// With this, `parts` are as the client sent them, and what must not go on is left out while
    /// writing. Without, they are already what the backend is to see.
    pub added: Option<Added<'a>>,
    /// How the body ends. What the fields say of it does not count.
    pub length: BodyLength,
}

impl Outgoing<'_> {
    /// Appends the head to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_line(out);
        match &self.added {
            Some(added) => self.write_added(added, out),
            None => self.write_whole(out),
        }
        match self.length {
            BodyLength::None => {}
            BodyLength::Known(length) => {
                out.extend_from_slice(b"content-length: ");
                write_decimal(length, out);
                out.extend_from_slice(b"\r\n");
            }
            BodyLength::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The target in origin form, byte for byte as it came.
    fn write_line(&self, out: &mut Vec<u8>) {
        let target = self.parts.uri.path_and_query();
        let target = target.map_or("/", |target| target.as_str());
        out.extend_from_slice(self.parts.method.as_str().as_bytes());
        // `http://host?query` has no path to write.
        out.extend_from_slice(match target.starts_with('/') {
            true => b" ",
            false => b" /",
        });
        out.extend_from_slice(target.as_bytes());
        out.extend_from_slice(match self.version() {
            Version::HTTP_10 => b" HTTP/1.0\r\n",
            _ => b" HTTP/1.1\r\n",
        });
    }

    /// Whether another request may follow on the connection, as far as this side is asked.
    pub fn keeps(&self) -> bool {
        self.version() != Version::HTTP_10
    }

    /// The client's version is its own hop's.
    fn version(&self) -> Version {
        match self.added {
            Some(_) => Version::HTTP_11,
            None => self.parts.version,
        }
    }

    /// What the client said, and what the proxy says.
    fn write_added(&self, added: &Added<'_>, out: &mut Vec<u8>) {
        write_field(b"host", added.host, out);
        let mut claimed = None;
        for (name, value) in &self.parts.headers {
            let name = name.as_str();
            if is_replaced(name) {
                if claimed.is_none() && name == "x-forwarded-for" {
                    claimed = Some(value);
                }
            } else if !is_hop_by_hop(name) {
                write_field(name.as_bytes(), value, out);
            }
        }
        write_field(b"x-request-id", added.request_id, out);
        write_field(b"x-forwarded-host", added.host, out);
        out.extend_from_slice(added.lines);
        if let Some(claimed) = claimed {
            write_field(b"x-original-forwarded-for", claimed, out);
        }
        if added.trailers {
            out.extend_from_slice(b"te: trailers\r\nconnection: te\r\n");
        }
    }

    /// Everything as it is, Host first (RFC 9110 7.2).
    fn write_whole(&self, out: &mut Vec<u8>) {
        let headers = &self.parts.headers;
        if let Some(host) = headers.get(HOST) {
            write_field(b"host", host, out);
        }
        for (name, value) in headers {
            let name = name.as_str();
            if !matches!(name, "host" | "content-length" | "transfer-encoding") {
                write_field(name.as_bytes(), value, out);
            }
        }
    }
}

/// Appends one field line.
pub fn write_field(name: &[u8], value: &HeaderValue, out: &mut Vec<u8>) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal digits.
fn write_decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        used += 1;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(20 - used..).unwrap_or_default());
}
