use bytes::{Buf, Bytes, BytesMut};
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::broken::Invalid;
use super::fields::is_trailer;
use crate::proxy::guard::chunk_size;

/// The longest chunk-size line, extensions included, in bytes.
const LINE_MAX: usize = 4096;

/// The most that the extensions of all chunks, and apart from them all trailers, may take together,
/// in bytes.
const EXTRA_MAX: usize = 16 * 1024;

/// The most trailers.
const TRAILERS_MAX: usize = 256;

/// What the bytes so far give.
#[derive(Debug)]
pub enum Step {
    /// Nothing, before more come.
    More,
    /// A part of the body.
    Data(Bytes),
    /// The end, and the trailers that may go on.
    End(HeaderMap),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    /// With this much of the chunk to come.
    Data(u64),
    /// Before the CRLF behind a chunk.
    Behind,
    Trailers,
    Over,
}

/// Takes a chunked body apart (RFC 9112 7.1).
#[derive(Debug, Default)]
pub struct Chunks {
    state: State,
    /// How far the end of the next line has been looked for.
    searched: usize,
    extra: usize,
    lines: usize,
    trailers: HeaderMap,
}

impl Chunks {
    /// Takes the next step's bytes off the front of `buf`.
    ///
    /// # Errors
    /// When the framing is broken; after that nothing of the connection counts.
    pub fn next(&mut self, buf: &mut BytesMut) -> Result<Step, Invalid> {
        loop {
            match self.state {
                State::Size => {
                    let Some(line) = self.line(buf, LINE_MAX)? else {
                        return Ok(Step::More);
                    };
                    self.size(&line)?;
                }
                State::Data(_) if buf.is_empty() => return Ok(Step::More),
                State::Data(left) => {
                    let n = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
                    self.state = match left - n as u64 {
                        0 => State::Behind,
                        left => State::Data(left),
                    };
                    return Ok(Step::Data(buf.split_to(n).freeze()));
                }
                State::Behind => {
                    let begun = buf.len().min(2);
                    if buf.get(..begun) != b"\r\n".get(..begun) {
                        return Err(Invalid("a chunk is longer than its size"));
                    }
                    if begun < 2 {
                        return Ok(Step::More);
                    }
                    buf.advance(2);
                    self.state = State::Size;
                }
                State::Trailers => {
                    let Some(line) = self.line(buf, EXTRA_MAX)? else {
                        return Ok(Step::More);
                    };
                    if line.is_empty() {
                        self.state = State::Over;
                    } else {
                        self.trailer(&line)?;
                    }
                }
                State::Over => return Ok(Step::End(std::mem::take(&mut self.trailers))),
            }
        }
    }

    fn size(&mut self, line: &[u8]) -> Result<(), Invalid> {
        const WRONG: Invalid = Invalid("a chunk's size is none");
        // Tabs may stand in an extension, other control bytes not.
        if line
            .iter()
            .any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f)
        {
            return Err(WRONG);
        }
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
        self.extra += line.len() - digits.count();
        if self.extra > EXTRA_MAX {
            return Err(Invalid("the extensions of its chunks are too large"));
        }
        self.state = match chunk_size(line).ok_or(WRONG)? {
            0 => {
                self.extra = 0;
                State::Trailers
            }
            size => State::Data(size),
        };
        Ok(())
    }

    fn trailer(&mut self, line: &[u8]) -> Result<(), Invalid> {
        const WRONG: Invalid = Invalid("a trailer is malformed");
        self.extra += line.len() + 2;
        self.lines += 1;
        if self.extra > EXTRA_MAX || self.lines > TRAILERS_MAX {
            return Err(Invalid("its trailers are too large"));
        }
        let colon = memchr::memchr(b':', line).ok_or(WRONG)?;
        let (name, value) = line.split_at(colon);
        let name = HeaderName::from_bytes(name).map_err(|_| WRONG)?;
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        let value = HeaderValue::from_bytes(value).map_err(|_| WRONG)?;
        if is_trailer(name.as_str()) {
            self.trailers.append(name, value);
        }
        Ok(())
    }

    /// Takes the next line off, without its end.
    fn line(&mut self, buf: &mut BytesMut, most: usize) -> Result<Option<BytesMut>, Invalid> {
        let rest = buf.get(self.searched..).unwrap_or_default();
        let Some(at) = memchr::memchr(b'\n', rest) else {
            self.searched = buf.len();
            return match buf.len() > most {
                true => Err(Invalid("a line of its body is too long")),
                false => Ok(None),
            };
        };
        let end = self.searched + at;
        self.searched = 0;
        let mut line = buf.split_to(end + 1);
        if end > most || end == 0 || line.get(end - 1) != Some(&b'\r') {
            return Err(Invalid("a line of its body ends without CR"));
        }
        line.truncate(end - 1);
        Ok(Some(line))
    }
}
