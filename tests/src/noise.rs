//! Bytes that look like no others, made and checked without holding them all.

use std::io::{ErrorKind, Read, Write};
use std::sync::LazyLock;

/// A prime, so that no buffer on the way is a multiple of it: bytes that are lost, doubled or out of
/// order do not fit what follows.
const PERIOD: usize = 1_048_573;

const PIECE: usize = 64 * 1024;

static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    // The start once more, so that a piece never wraps.
    let mut table: Vec<u8> = (0..PERIOD).map(|_| next()).collect();
    table.extend_from_within(..PIECE);
    table
});

/// A stream of bytes that any two sides can make alike.
#[derive(Clone, Debug)]
pub struct Noise(usize);

impl Noise {
    /// Streams of different seeds differ.
    pub fn new(seed: usize) -> Self {
        Noise(seed * 100_003 % PERIOD)
    }

    /// The next `n` bytes, at most 64 KiB.
    pub fn next(&mut self, n: usize) -> &'static [u8] {
        let piece = &TABLE[self.0..self.0 + n];
        self.0 = (self.0 + n) % PERIOD;
        piece
    }

    /// Writes `n` bytes of it; fewer if the peer takes no more.
    pub fn write_to(mut self, mut to: impl Write, n: usize) -> usize {
        let mut written = 0;
        while written < n {
            let mut piece = self.next(PIECE.min(n - written));
            while !piece.is_empty() {
                match to.write(piece) {
                    Ok(0) => return written,
                    Ok(n) => {
                        written += n;
                        piece = &piece[n..];
                    }
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return written,
                }
            }
        }
        written
    }

    /// Reads `n` bytes and checks that they are these; the number of good ones, to within a piece.
    pub fn check_from(mut self, mut from: impl Read, n: usize) -> usize {
        let mut found = vec![0; PIECE];
        let mut read = 0;
        while read < n {
            let piece = self.next(PIECE.min(n - read));
            let found = &mut found[..piece.len()];
            if from.read_exact(found).is_err() || found != piece {
                return read;
            }
            read += piece.len();
        }
        read
    }
}
