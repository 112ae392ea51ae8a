use http::StatusCode;

use super::head::Head;
use super::request::write_field;

/// Appends an interim answer (1xx) to `out`.
pub fn write_interim(head: &Head, out: &mut Vec<u8>) {
    let reason = head.status.canonical_reason().unwrap_or("Interim");
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(head.status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
    for (name, value) in &head.headers {
        write_field(name.as_str().as_bytes(), value, out);
    }
    out.extend_from_slice(b"\r\n");
}

impl Head {
    /// Whether another head follows this one. 101 is the last word in HTTP.
    pub fn is_interim(&self) -> bool {
        self.status.is_informational() && self.status != StatusCode::SWITCHING_PROTOCOLS
    }

    /// Bytes of the head as [`write_interim`] writes it, but for some.
    pub fn size(&self) -> usize {
        let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            name.as_str().len() + value.len() + 4
        };
        self.headers.iter().map(field).sum::<usize>() + 64
    }
}
