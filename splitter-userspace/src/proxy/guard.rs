//! Watches the raw bytes of a client's HTTP/1 connection and refuses what must not be let through.
//!
//! hyper's parser is lenient where RFC 9112 allows it (a lone LF ends a line; Content-Length beside
//! Transfer-Encoding is dropped). A splitter in front of unknown backends is not: whatever two
//! parsers could read in two ways is refused before anybody parses it. So this keeps its own account
//! of where each head and body begins and ends. Pure: bytes in, verdict out.

use super::fault::Fault;
use crate::words::{self, Word};

/// The longest chunk-size line, extensions included, in bytes.
const CHUNK_LINE_MAX: usize = 4096;

/// The most that all trailers of a body may take together, in bytes. hyper takes no more.
const TRAILERS_MAX: usize = 16 * 1024;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The next head, of which nothing has come.
    Idle,
    /// The rest of a head.
    Head,
    /// More of a body.
    Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the lines of a head.
    Head,
    /// In a body of known length, with this much to come.
    Length(u64),
    /// At the start of a chunk-size line.
    ChunkSize,
    /// In a chunk's data and the CRLF after it, with this much of the data to come.
    ChunkData(u64),
    /// In the lines after the last chunk.
    Trailers,
}

/// What the head so far has said about the body.
#[derive(Clone, Copy, Debug, Default)]
struct Framing {
    lines: u32,
    size: usize,
    length: Option<u64>,
    chunked: bool,
    http10: bool,
}

/// See the module's text.
#[derive(Debug)]
pub struct Guard {
    max_head: usize,
    max_headers: u32,
    state: State,
    framing: Framing,
    /// The start of a line whose end has not come.
    line: Vec<u8>,
    /// How much of the last bytes lies before the message (or, in a body, the line) they end in.
    good: usize,
    /// How many heads have ended.
    heads: u64,
}

impl Guard {
    /// Lets heads of up to `max_head` bytes and `max_headers` fields through.
    pub fn new(max_head: usize, max_headers: usize) -> Self {
        Guard {
            max_head,
            max_headers: u32::try_from(max_headers).unwrap_or(u32::MAX),
            state: State::Head,
            framing: Framing::default(),
            line: Vec::new(),
            good: 0,
            heads: 0,
        }
    }

    /// What the connection waits for.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Head if self.framing.lines == 0 && self.line.is_empty() => Phase::Idle,
            State::Head => Phase::Head,
            _ => Phase::Body,
        }
    }

    /// Looks at the next bytes of the stream.
    ///
    /// # Errors
    /// The first thing that must not be let through. The connection is to be closed; nothing after
    /// it can be trusted. [`Self::good`] tells how much before it can.
    pub fn observe(&mut self, mut data: &[u8]) -> Result<(), Fault> {
        let whole = data.len();
        self.good = 0;
        while !data.is_empty() {
            if self.state != State::Head || self.is_before_head() {
                self.good = whole - data.len();
            }
            match self.state {
                State::Length(left) => {
                    let taken = skip(left, &mut data);
                    self.state = match left - taken {
                        0 => State::Head,
                        left => State::Length(left),
                    };
                }
                State::ChunkData(left) if left > 0 => {
                    let taken = skip(left, &mut data);
                    self.state = State::ChunkData(left - taken);
                }
                _ => self.take_line(&mut data)?,
            }
        }
        Ok(())
    }

    /// After a refusal: how many of the bytes looked at last belong to what came before the refused
    /// head, or before the refused line of a body. They are still to be served.
    pub fn good(&self) -> usize {
        self.good
    }

    /// How many heads have been let through whole.
    pub fn heads(&self) -> u64 {
        self.heads
    }

    fn is_before_head(&self) -> bool {
        self.framing.size == 0 && self.line.is_empty()
    }

    /// Takes one line, or what there is of it.
    fn take_line(&mut self, data: &mut &[u8]) -> Result<(), Fault> {
        let Some(end) = memchr::memchr(b'\n', data) else {
            let limit = match self.state {
                State::Head => self.max_head.saturating_sub(self.framing.size),
                _ => CHUNK_LINE_MAX,
            };
            if self.line.len() + data.len() > limit {
                return Err(match self.state {
                    State::Head => Fault::HeadTooLarge,
                    _ => Fault::BadBody,
                });
            }
            self.line.extend_from_slice(data);
            *data = &[];
            return Ok(());
        };
        let (line, rest) = data.split_at(end + 1);
        *data = rest;
        if self.line.is_empty() {
            return self.line(line);
        }
        let mut whole = std::mem::take(&mut self.line);
        whole.extend_from_slice(line);
        let verdict = self.line(&whole);
        whole.clear();
        self.line = whole;
        verdict
    }

    /// Judges one line, its LF included.
    fn line(&mut self, line: &[u8]) -> Result<(), Fault> {
        let in_head = self.state == State::Head;
        let fault = if in_head {
            Fault::BadHead
        } else {
            Fault::BadBody
        };
        let Some(line) = line.strip_suffix(b"\r\n") else {
            return Err(fault);
        };
        // The lines of heads and trailers are judged byte by byte below.
        let judged = matches!(self.state, State::Head | State::Trailers);
        if !judged && memchr::memchr2(b'\r', 0, line).is_some() {
            return Err(fault);
        }
        match self.state {
            State::Head => self.head_line(line),
            State::ChunkSize => {
                self.state = match chunk_size(line).ok_or(fault)? {
                    0 => State::Trailers,
                    size => State::ChunkData(size),
                };
                Ok(())
            }
            // The CRLF after a chunk's data.
            State::ChunkData(_) if line.is_empty() => {
                self.state = State::ChunkSize;
                Ok(())
            }
            State::Trailers if line.is_empty() => {
                self.state = State::Head;
                self.framing = Framing::default();
                Ok(())
            }
            State::Trailers => self.trailer(line),
            _ => Err(fault),
        }
    }

    fn trailer(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.framing.size += line.len() + 2;
        self.framing.lines = self.framing.lines.saturating_add(1);
        let fits = self.framing.size <= TRAILERS_MAX && self.framing.lines <= self.max_headers;
        match fits && is_field(line) {
            true => Ok(()),
            false => Err(Fault::BadBody),
        }
    }

    fn head_line(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.framing.size += line.len() + 2;
        if self.framing.size > self.max_head || self.framing.lines > self.max_headers + 1 {
            return Err(Fault::HeadTooLarge);
        }
        if self.framing.lines == 0 {
            if line.is_empty() {
                // RFC 9112 2.2: empty lines before a request line are to be ignored.
                return Ok(());
            }
            self.framing.lines = 1;
            self.framing.http10 = request_line(line).ok_or(Fault::BadHead)?;
            return Ok(());
        }
        if line.is_empty() {
            self.end_head();
            return Ok(());
        }
        self.framing.lines = self.framing.lines.saturating_add(1);
        // This refuses folded lines and blanks before the colon too (RFC 9112 5.1, 5.2).
        if !is_field(line) {
            return Err(Fault::BadHead);
        }
        // Only these first letters matter, so that most lines cost one comparison.
        match line.first() {
            Some(b'c' | b'C') => self.content_length(line),
            Some(b't' | b'T') => self.transfer_encoding(line),
            _ => Ok(()),
        }
    }

    fn content_length(&mut self, line: &[u8]) -> Result<(), Fault> {
        let Some(value) = value_of(line, b"content-length") else {
            return Ok(());
        };
        if self.framing.length.is_some() || self.framing.chunked {
            return Err(Fault::BadFraming);
        }
        // Digits only: no sign, no list, at most what fits.
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(value)
            .ok()
            .filter(|_| digits)
            .and_then(|text| text.parse().ok());
        self.framing.length = Some(length.ok_or(Fault::BadFraming)?);
        Ok(())
    }

    fn transfer_encoding(&mut self, line: &[u8]) -> Result<(), Fault> {
        let Some(value) = value_of(line, b"transfer-encoding") else {
            return Ok(());
        };
        if self.framing.length.is_some() || self.framing.chunked || self.framing.http10 {
            return Err(Fault::BadFraming);
        }
        if !value.eq_ignore_ascii_case(b"chunked") {
            return Err(Fault::UnknownCoding);
        }
        self.framing.chunked = true;
        Ok(())
    }

    fn end_head(&mut self) {
        self.heads += 1;
        let framing = std::mem::take(&mut self.framing);
        self.state = if framing.chunked {
            State::ChunkSize
        } else {
            match framing.length {
                Some(length) if length > 0 => State::Length(length),
                _ => State::Head,
            }
        };
    }
}

/// Takes at most `left` bytes off `data` and returns how many.
fn skip(left: u64, data: &mut &[u8]) -> u64 {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(data.len());
    *data = data.get(taken..).unwrap_or_default();
    taken as u64
}

/// Whether the version is 1.0; none if this is no request line (RFC 9112 3).
fn request_line(line: &[u8]) -> Option<bool> {
    let (rest, version) = line.split_at_checked(line.len().checked_sub(9)?)?;
    let http10 = match version {
        b" HTTP/1.1" => false,
        b" HTTP/1.0" => true,
        _ => return None,
    };
    let space = memchr::memchr(b' ', rest)?;
    let (method, target) = rest.split_at_checked(space)?;
    let target = target.get(1..)?;
    let good = !method.is_empty() && method.iter().all(|byte| is_token(*byte)) && is_target(target);
    good.then_some(http10)
}

/// Whether hyper will take the target as it is: nearly all are plain paths with a query, the others
/// are parsed to see. Not one with `#`: a fragment is no part of it (RFC 9112 3.2), and some
/// programs cut it off while others do not.
fn is_target(target: &[u8]) -> bool {
    // With this, no plain target is too long for `Uri`.
    const LONG: usize = 32 * 1024;
    let plain = target.iter().all(|byte| is_in(&PLAIN, *byte));
    if plain && target.first() == Some(&b'/') && target.len() <= LONG {
        return true;
    }
    let visible = |byte: &u8| *byte > b' ' && *byte != 0x7f && *byte != b'#';
    target.iter().all(visible) && http::Uri::try_from(target).is_ok()
}

/// Whether `line` is a name, a colon and a value of allowed bytes (RFC 9110 5.5).
fn is_field(line: &[u8]) -> bool {
    let name = line.iter().take_while(|byte| is_token(**byte)).count();
    if name == 0 || line.get(name) != Some(&b':') {
        return false;
    }
    let value = line.get(name + 1..).unwrap_or_default();
    let is_allowed = |byte: u8| (byte >= b' ' && byte != 0x7f) || byte == b'\t';
    words::prefix(value, Word::is_without_controls, is_allowed) == value.len()
}

/// Letters, digits and these, as a table: it is asked for every byte.
const fn table(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
}

/// RFC 9110 5.6.2.
const TOKEN: [bool; 256] = table(b"!#$%&'*+-.^_`|~");

/// What a path and its query are made of (RFC 3986 3.3, 3.4).
const PLAIN: [bool; 256] = table(b"/?%=&-._~!$'()*+,;:@");

fn is_in(table: &[bool; 256], byte: u8) -> bool {
    table.get(usize::from(byte)).copied().unwrap_or(false)
}

fn is_token(byte: u8) -> bool {
    is_in(&TOKEN, byte)
}

/// The value of `line` without blanks around it, if the line's field is `name` (lower case).
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (field, rest) = line.split_at_checked(name.len())?;
    if !field.eq_ignore_ascii_case(name) {
        return None;
    }
    Some(rest.strip_prefix(b":")?.trim_ascii())
}

/// The size in a chunk-size line: hexadecimal digits, then nothing or an extension.
pub fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line
        .iter()
        .position(|byte| !byte.is_ascii_hexdigit())
        .unwrap_or(line.len());
    let (size, extension) = line.split_at_checked(digits)?;
    let extension = extension.trim_ascii_start();
    if size.is_empty() || size.len() > 16 || !(extension.is_empty() || extension.starts_with(b";"))
    {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
