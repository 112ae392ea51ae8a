use bytes::{Bytes, BytesMut};
use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use http::{StatusCode, Version};
use hyper::ext::ReasonPhrase;

use super::broken::Invalid;
use super::fields::is_hop_by_hop;

/// The most that the head of an answer may take, in bytes.
const HEAD_MAX: usize = 256 * 1024;

/// The most field lines that the head of an answer may have.
const FIELDS_MAX: usize = 256;

/// How every answer begins.
const BEGINNING: &[u8] = b"HTTP/1.";

/// How the end of an answer's body is told (RFC 9112 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// There is none to come.
    None,
    /// This many bytes.
    Known(u64),
    /// In chunks.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// The head of an answer, without the fields that are for the backend's hop only.
#[derive(Debug)]
pub struct Head {
    /// The status.
    pub status: StatusCode,
    /// The fields for the client.
    pub headers: HeaderMap,
    /// What the backend calls the status, if it is not what everybody calls it.
    pub reason: Option<ReasonPhrase>,
    /// How the body ends.
    pub length: Length,
    /// Whether the backend will answer another request on this connection.
    pub keep: bool,
}

/// Finds and reads heads of answers as their bytes come; no byte is looked at twice for the end.
#[derive(Debug, Default)]
pub struct HeadParser {
    /// Where the lines so far end.
    ends: Vec<u32>,
    /// How far the line ends have been looked for.
    searched: usize,
}

impl HeadParser {
    /// Takes the head off the front of `buf` once all of it has come. `to_head` says that the
    /// request was HEAD, whose answer has no body.
    ///
    /// # Errors
    /// When these bytes cannot become an answer; after that nothing of the connection counts.
    pub fn parse(&mut self, buf: &mut BytesMut, to_head: bool) -> Result<Option<Head>, Invalid> {
        let begun = buf.len().min(BEGINNING.len());
        if buf.get(..begun) != BEGINNING.get(..begun) {
            return Err(Invalid("it does not begin like one"));
        }
        let Some(end) = self.find_end(buf)? else {
            return match buf.len() > HEAD_MAX {
                true => Err(Invalid("its head is too large")),
                false => Ok(None),
            };
        };
        if end > HEAD_MAX {
            return Err(Invalid("its head is too large"));
        }
        let bytes = buf.split_to(end).freeze();
        let head = self.read(&bytes, to_head);
        self.ends.clear();
        self.searched = 0;
        head.map(Some)
    }

    /// Where the head ends.
    fn find_end(&mut self, buf: &[u8]) -> Result<Option<usize>, Invalid> {
        loop {
            let rest = buf.get(self.searched..).unwrap_or_default();
            let Some(at) = memchr::memchr(b'\n', rest) else {
                self.searched = buf.len();
                return Ok(None);
            };
            let start = self.ends.last().map_or(0, |end| *end as usize);
            let end = self.searched + at + 1;
            let line = buf.get(start..end).unwrap_or_default();
            if !line.ends_with(b"\r\n") {
                return Err(Invalid("a line ends without CR"));
            }
            if line.len() == 2 {
                return Ok(Some(end));
            }
            if self.ends.len() > FIELDS_MAX {
                return Err(Invalid("it has too many fields"));
            }
            self.ends.push(end as u32);
            self.searched = end;
        }
    }

    /// Reads the lines of a whole head.
    fn read(&self, bytes: &Bytes, to_head: bool) -> Result<Head, Invalid> {
        let mut starts = self.ends.iter().map(|end| *end as usize);
        let mut start = starts.next().ok_or(Invalid("it has no status line"))?;
        let (version, status, reason) = status_line(bytes.get(..start - 2).unwrap_or_default())?;
        let mut fields = Fields::new(self.ends.len(), version);
        for end in starts {
            fields.line(bytes, start, end - 2)?;
            start = end;
        }
        fields.finish(status, reason, to_head)
    }
}

/// RFC 9112 4. The reason may be missing, as old programs leave it out.
fn status_line(line: &[u8]) -> Result<(Version, StatusCode, Option<ReasonPhrase>), Invalid> {
    const WRONG: Invalid = Invalid("its status line is none");
    let (version, rest) = line.split_at_checked(9).ok_or(WRONG)?;
    let version = match version {
        b"HTTP/1.1 " => Version::HTTP_11,
        b"HTTP/1.0 " => Version::HTTP_10,
        _ => return Err(WRONG),
    };
    let (status, reason) = rest.split_at_checked(3).ok_or(WRONG)?;
    let status = StatusCode::from_bytes(status).map_err(|_| WRONG)?;
    let reason = match reason.split_first() {
        None | Some((b' ', [])) => return Ok((version, status, None)),
        Some((b' ', reason)) => reason,
        Some(_) => return Err(WRONG),
    };
    let usual = status.canonical_reason().unwrap_or_default();
    if reason == usual.as_bytes() {
        return Ok((version, status, None));
    }
    let reason = ReasonPhrase::try_from(reason).map_err(|_| WRONG)?;
    Ok((version, status, Some(reason)))
}

/// What the fields so far say.
struct Fields {
    headers: HeaderMap,
    version: Version,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    /// What Connection says, where it says more than whether to close.
    named: Vec<HeaderValue>,
}

/// Fields for which there is room at least: those of a usual answer, and what policies add on its way to the
/// client, as a table that grows is hashed anew.
const ROOM: usize = 12;

impl Fields {
    fn new(lines: usize, version: Version) -> Self {
        Fields {
            headers: HeaderMap::with_capacity((lines + 1).max(ROOM)),
            version,
            length: None,
            chunked: false,
            close: version == Version::HTTP_10,
            named: Vec::new(),
        }
    }

    /// Reads the line between `start` and `end`. This refuses folded lines and blanks before the
    /// colon too (RFC 9112 5.1, 5.2).
    fn line(&mut self, bytes: &Bytes, start: usize, end: usize) -> Result<(), Invalid> {
        let line = bytes.get(start..end).unwrap_or_default();
        let colon = memchr::memchr(b':', line).ok_or(Invalid("a field has no colon"))?;
        let (name, rest) = line.split_at(colon);
        let name =
            HeaderName::from_bytes(name).map_err(|_| Invalid("a field's name is malformed"))?;
        let blank = |byte: &&u8| matches!(**byte, b' ' | b'\t');
        let before = rest.iter().skip(1).take_while(blank).count();
        let from = (start + colon + 1 + before).min(end);
        let value = bytes.get(from..end).unwrap_or_default();
        let behind = value.iter().rev().take_while(blank).count();
        // Refuses CR and NUL and the other control bytes.
        let value = HeaderValue::from_maybe_shared(bytes.slice(from..end - behind))
            .map_err(|_| Invalid("a field's value is malformed"))?;
        self.field(name, value)
    }

    fn field(&mut self, name: HeaderName, value: HeaderValue) -> Result<(), Invalid> {
        if is_hop_by_hop(name.as_str()) {
            return self.hop_by_hop(&name, value);
        }
        if name == CONTENT_LENGTH {
            let length = decimal(value.as_bytes()).ok_or(Invalid("its length is none"))?;
            match self.length.replace(length) {
                None => {}
                // Said twice, and once is enough.
                Some(before) if before == length => return Ok(()),
                Some(_) => return Err(Invalid("it has two lengths")),
            }
        }
        self.headers.append(name, value);
        Ok(())
    }

    fn hop_by_hop(&mut self, name: &HeaderName, value: HeaderValue) -> Result<(), Invalid> {
        if name == TRANSFER_ENCODING {
            if self.chunked || !value.as_bytes().eq_ignore_ascii_case(b"chunked") {
                return Err(Invalid("its body is coded in a way that is not understood"));
            }
            self.chunked = true;
        } else if name == CONNECTION {
            let said = value.as_bytes();
            if said.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if !said.eq_ignore_ascii_case(b"keep-alive") {
                self.named.push(value);
            }
        }
        Ok(())
    }

    fn finish(
        mut self,
        status: StatusCode,
        reason: Option<ReasonPhrase>,
        to_head: bool,
    ) -> Result<Head, Invalid> {
        if self.chunked && (self.length.is_some() || self.version == Version::HTTP_10) {
            return Err(Invalid("its length is told in two ways"));
        }
        self.strip_named();
        let bodiless = status.is_informational() || status == StatusCode::NO_CONTENT;
        if bodiless {
            self.headers.remove(CONTENT_LENGTH);
        }
        let length = match self.length {
            _ if bodiless || to_head || status == StatusCode::NOT_MODIFIED => Length::None,
            _ if self.chunked => Length::Chunked,
            Some(0) => Length::None,
            Some(length) => Length::Known(length),
            None => Length::UntilClose,
        };
        Ok(Head {
            status,
            headers: self.headers,
            reason,
            length,
            keep: !self.close && length != Length::UntilClose,
        })
    }

    /// Takes out what Connection names, but for what frames the message.
    fn strip_named(&mut self) {
        let tokens = |value: &HeaderValue| {
            let tokens = value.as_bytes().split(|byte| *byte == b',');
            let tokens: Vec<_> = tokens.map(|token| token.trim_ascii().to_vec()).collect();
            tokens
        };
        for token in self.named.iter().flat_map(tokens) {
            if token.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if let Ok(name) = HeaderName::from_bytes(&token)
                && name != CONTENT_LENGTH
            {
                self.headers.remove(name);
            }
        }
    }
}

/// Digits only: no sign, no list. The highest bit stays free for those who reckon with it.
fn decimal(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.len() <= 18 && text.iter().all(u8::is_ascii_digit);
    let number = |number: u64, digit: &u8| number * 10 + u64::from(digit - b'0');
    digits.then(|| text.iter().fold(0, number))
}
