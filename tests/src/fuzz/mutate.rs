//! Changed copies of inputs, from a seed.

use std::fmt::Write as _;

/// Pieces that mean something to one of the parsers.
const WORDS: [&[u8]; 52] = [
    b"\0",
    b"\r\n",
    b"; ",
    b", ",
    b"=",
    b"\"",
    b"$1",
    b"${",
    b"$host",
    b"(",
    b")",
    b"[",
    b"|",
    b".*",
    b"\\",
    b"..",
    b"/",
    b"//",
    b"%2e",
    b"%2f",
    b"%5c",
    b"?",
    b"#",
    b"*",
    b"::",
    b"/33",
    b"0.0.0.0/0",
    b"true",
    b"off",
    b"-1",
    b"99999999999999999999",
    b"PROXY ",
    b"TCP4",
    b"\xff",
    b"\xc3\xa9",
    b"---\n",
    b"&a",
    b"*a",
    b"for=",
    b"Path=",
    b"<chain>",
    b"<key>",
    b"<ca>",
    b"<crl>",
    b"-----BEGIN CERTIFICATE-----\n",
    b"ann:",
    b"{PLAIN}",
    b"none",
    b"\"exp\":",
    b"null",
    b"[]",
    b"\x16\x03\x01",
];

/// See the module's text. The same seed gives the same copies, on every machine.
pub struct Mutator(u64);

impl Mutator {
    /// By this seed.
    pub fn new(seed: u64) -> Self {
        Mutator(seed | 1)
    }

    fn next(&mut self, below: usize) -> usize {
        // xorshift64*: no crate of chance may change these under us.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(mixed).unwrap_or(0) % below.max(1)
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.next(all.len()))
    }

    /// A copy of `data` with a few changes, at most `most` bytes long.
    pub fn change(&mut self, data: &[u8], most: usize) -> Vec<u8> {
        let mut copy = data.to_vec();
        for _ in 0..=self.next(4) {
            let at = self.next(copy.len() + 1);
            match self.next(7) {
                0 if at < copy.len() => copy[at] ^= 1 << self.next(8),
                1 if at < copy.len() => copy[at] = u8::try_from(self.next(256)).unwrap_or(0),
                2 => copy.truncate(at),
                3 => {
                    let end = (at + self.next(9)).min(copy.len());
                    copy.drain(at..end);
                }
                4 => {
                    let end = (at + self.next(33)).min(copy.len());
                    let again = copy[at..end].to_vec();
                    copy.splice(at..at, again);
                }
                5 => {
                    let mut number = String::new();
                    let value = self.next(1 << 20);
                    let _ = write!(number, "{value}");
                    copy.splice(at..at, number.into_bytes());
                }
                _ => {
                    let word = WORDS[self.next(WORDS.len())];
                    copy.splice(at..at, word.iter().copied());
                }
            }
        }
        copy.truncate(most);
        copy
    }
}
