//! The bytes of a socket that wait for the end of the turn.

/// Up to this much is copied and held until the end of the turn; more goes out at once.
pub const HOLD: usize = 16 * 1024;

/// The most that is held for a peer that does not read, before its writer must wait.
pub const HOLD_MAX: usize = 64 * 1024;

/// What is written but not sent.
#[derive(Default)]
pub struct Held {
    pub bytes: Vec<u8>,
    sent: usize,
}

impl Held {
    /// The bytes to send.
    pub fn pending(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Forgets the first `n` of them.
    pub fn consume(&mut self, n: usize) {
        self.sent += n;
        if self.sent >= self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
            // A burst must not keep its memory for the life of an idle connection.
            if self.bytes.capacity() > HOLD {
                self.bytes = Vec::new();
            }
        }
    }
}
