//! The bytes of a socket that wait for the end of the turn.

use std::cell::RefCell;
use std::rc::Rc;

use super::Socket;

/// Up to this much is copied and held until the end of the turn; more goes out at once.
pub const HOLD: usize = 16 * 1024;

/// The most that is held for a peer that does not read, before its writer must wait.
pub const HOLD_MAX: usize = 64 * 1024;

/// How many empty buffers a worker keeps: as many as usually have something to send in one turn.
const SPARE_MAX: usize = 64;

/// Buffers of [`HOLD`] bytes in which nothing is held: those of a turn are the next one's, whichever
/// sockets these are, so that an idle connection has none.
#[derive(Default)]
pub struct Spare(RefCell<Vec<Vec<u8>>>);

impl Spare {
    fn take(&self) -> Vec<u8> {
        let spare = self.0.borrow_mut().pop();
        spare.unwrap_or_else(|| Vec::with_capacity(HOLD))
    }

    /// One that has grown is of no use to those that hold little.
    fn give(&self, mut bytes: Vec<u8>) {
        let mut spare = self.0.borrow_mut();
        if bytes.capacity() == HOLD && spare.len() < SPARE_MAX {
            bytes.clear();
            spare.push(bytes);
        }
    }
}

/// What is written but not sent.
#[derive(Default)]
pub struct Held {
    bytes: Vec<u8>,
    sent: usize,
}

impl Held {
    /// The bytes to send.
    pub fn pending(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Has `write` append some.
    pub fn append(&mut self, spare: &Spare, write: impl FnOnce(&mut Vec<u8>)) {
        if self.bytes.capacity() == 0 {
            self.bytes = spare.take();
        }
        write(&mut self.bytes);
    }

    /// Forgets the first `n` of them.
    pub fn consume(&mut self, n: usize, spare: &Spare) {
        self.sent += n;
        if self.sent >= self.bytes.len() {
            self.sent = 0;
            spare.give(std::mem::take(&mut self.bytes));
        }
    }
}

impl Socket {
    /// Has `write` append to what is held, however much that is: for what is small and must not wait.
    pub fn hold(self: &Rc<Self>, write: impl FnOnce(&mut Vec<u8>)) {
        match self.session.get() {
            None => {
                let mut held = self.held.borrow_mut();
                held.append(self.flusher.spare(), write);
            }
            Some(session) => {
                let mut plain = Vec::new();
                write(&mut plain);
                session.hold(&plain);
            }
        }
        self.mark_dirty();
    }

    /// How many bytes are held.
    pub fn held(&self) -> usize {
        match self.session.get() {
            None => self.held.borrow().pending().len(),
            Some(session) => session.held(),
        }
    }

    /// Whether the kernel took no more when it was asked last.
    pub fn is_blocked(&self) -> bool {
        self.blocked.get()
    }

    /// Forgets what has been sent: see [`Self::has_sent`].
    pub fn begin(&self) {
        self.sent.set(false);
    }

    /// Whether anything has gone to the kernel since [`Self::begin`].
    pub fn has_sent(&self) -> bool {
        self.sent.get()
    }

    /// Drops what is held, and sends nothing more: nobody is to get it.
    pub fn discard(&self) {
        self.drop_held();
        if let Some(session) = self.session.get() {
            session.give_up();
        }
    }

    pub(super) fn drop_held(&self) {
        let mut held = self.held.borrow_mut();
        let pending = held.pending().len();
        held.consume(pending, self.flusher.spare());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_leaves_its_buffer_to_the_next() {
        let spare = Spare::default();
        let mut held = Held::default();
        held.append(&spare, |bytes| bytes.extend(b"abc"));
        held.consume(2, &spare);
        assert_eq!(held.pending(), b"c");
        held.append(&spare, |bytes| bytes.extend(b"de"));
        assert_eq!(held.pending(), b"cde");
        held.consume(3, &spare);
        assert_eq!((held.pending().len(), held.bytes.capacity()), (0, 0));
        assert_eq!(spare.0.borrow().len(), 1);
        let mut other = Held::default();
        other.append(&spare, |bytes| bytes.extend(b"f"));
        assert_eq!(other.pending(), b"f");
        assert_eq!(spare.0.borrow().len(), 0);
    }

    #[test]
    fn what_has_grown_is_not_kept_and_what_is_kept_is_bounded() {
        let spare = Spare::default();
        let mut held = Held::default();
        held.append(&spare, |bytes| bytes.resize(HOLD + 1, 0));
        held.consume(HOLD + 1, &spare);
        assert_eq!(spare.0.borrow().len(), 0);
        for _ in 0..2 * SPARE_MAX {
            spare.give(Vec::with_capacity(HOLD));
        }
        assert_eq!(spare.0.borrow().len(), SPARE_MAX);
    }
}
