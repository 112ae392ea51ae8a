//! The name in a client's hello, found without taking anything away: what was read can go on as it
//! came, to whom the name belongs.
//!
//! The hello may come byte by byte, in many records, and be large (post-quantum keys). Nothing is said
//! before it is whole: half a hello has no name yet, which is not the same as none.

/// The most that a hello may have, in bytes; rustls takes no larger one either.
const HELLO_MAX: usize = 0xffff;

/// The most that its records may have beside it: some 3,000 records.
const RAW_MAX: usize = HELLO_MAX + 16 * 1024;

/// The most that one record may have (RFC 8446 5.1).
const RECORD_MAX: usize = 1 << 14;

/// What is known of a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peeked {
    /// It is not whole.
    More,
    /// It is whole, and names this host, in lower case and without a final dot; none: no host.
    Named(Option<String>),
    /// It is no hello.
    Garbage,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Peek {
    raw: Vec<u8>,
    /// The bytes of `raw` that are taken apart.
    parsed: usize,
    /// What was in the records.
    message: Vec<u8>,
    garbage: bool,
}

impl Peek {
    /// Takes what came next.
    pub fn push(&mut self, bytes: &[u8]) -> Peeked {
        self.raw.extend_from_slice(bytes);
        if self.garbage || self.records().is_none() {
            self.garbage = true;
            return Peeked::Garbage;
        }
        let peeked = self.message();
        self.garbage = peeked == Peeked::Garbage;
        let unparsed = match peeked {
            Peeked::More => self.raw.len(),
            _ => 0,
        };
        match self.parsed.max(unparsed) > RAW_MAX {
            true => {
                self.garbage = true;
                Peeked::Garbage
            }
            false => peeked,
        }
    }

    /// All that was taken, as it came.
    pub fn into_raw(self) -> Vec<u8> {
        self.raw
    }

    /// Takes whole records apart, until the hello is whole. None where there is anything else.
    fn records(&mut self) -> Option<()> {
        while !self.is_whole() {
            let rest = self.raw.get(self.parsed..).unwrap_or_default();
            let mut head = Reader(rest);
            let Some(kind) = head.u8() else { break };
            if kind != 22 {
                return None;
            }
            let Some(major) = head.u8() else { break };
            if major != 3 {
                return None;
            }
            let Some((_, length)) = head.u8().zip(head.u16()) else {
                break;
            };
            if length == 0 || length > RECORD_MAX {
                return None;
            }
            let Some(fragment) = head.take(length) else {
                break;
            };
            self.message.extend_from_slice(fragment);
            self.parsed += 5 + length;
        }
        Some(())
    }

    fn is_whole(&self) -> bool {
        let mut head = Reader(&self.message);
        match head.u8().zip(head.u24()) {
            None => false,
            Some((kind, length)) => kind != 1 || self.message.len() >= 4 + length,
        }
    }

    fn message(&self) -> Peeked {
        let mut message = Reader(&self.message);
        let Some(kind) = message.u8() else {
            return Peeked::More;
        };
        if kind != 1 {
            return Peeked::Garbage;
        }
        let Some(length) = message.u24() else {
            return Peeked::More;
        };
        if length > HELLO_MAX {
            return Peeked::Garbage;
        }
        let Some(hello) = message.take(length) else {
            return Peeked::More;
        };
        match server_name(hello) {
            Some(name) => Peeked::Named(name),
            None => Peeked::Garbage,
        }
    }
}

/// The name in a whole hello (RFC 8446 4.1.2); the outer none where it is none.
fn server_name(hello: &[u8]) -> Option<Option<String>> {
    let mut hello = Reader(hello);
    hello.take(2 + 32)?;
    hello.vec8().filter(|session| session.len() <= 32)?;
    hello
        .vec16()
        .filter(|suites| suites.len() >= 2 && suites.len() % 2 == 0)?;
    hello
        .vec8()
        .filter(|compressions| !compressions.is_empty())?;
    if hello.is_empty() {
        // No extensions at all, as before TLS 1.2.
        return Some(None);
    }
    let mut extensions = Reader(hello.vec16()?);
    if !hello.is_empty() {
        return None;
    }
    let (mut found, mut seen) = (None, false);
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let content = extensions.vec16()?;
        if kind == 0 {
            // Of two nobody could say which one counts.
            if std::mem::replace(&mut seen, true) {
                return None;
            }
            found = Some(host_name(content)?);
        }
    }
    Some(found)
}

/// The only name of a list (RFC 6066 3).
fn host_name(content: &[u8]) -> Option<String> {
    let mut content = Reader(content);
    let mut list = Reader(content.vec16()?);
    let (kind, name) = (list.u8()?, list.vec16()?);
    if kind != 0 || !list.is_empty() || !content.is_empty() {
        return None;
    }
    let name = name.strip_suffix(b".").unwrap_or(name);
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let good = (1..=253).contains(&name.len()) && name.iter().all(letter);
    let name = good.then(|| String::from_utf8_lossy(name).to_ascii_lowercase())?;
    name.split('.')
        .all(|label| !label.is_empty())
        .then_some(name)
}

/// Takes bytes from the front, as far as there are any.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        let taken = self.take(bytes)?.iter();
        Some(taken.fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u16(&mut self) -> Option<usize> {
        self.number(2)
    }

    fn u24(&mut self) -> Option<usize> {
        self.number(3)
    }

    fn vec8(&mut self) -> Option<&'a [u8]> {
        let length = self.number(1)?;
        self.take(length)
    }

    fn vec16(&mut self) -> Option<&'a [u8]> {
        let length = self.number(2)?;
        self.take(length)
    }
}

#[cfg(test)]
#[path = "hello_tests.rs"]
mod tests;
