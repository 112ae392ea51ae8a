//! The bytes of a socket that wait for the end of the turn.

use std::rc::Rc;

use super::Socket;

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

impl Socket {
    /// Has `write` append to what is held, however much that is: for what is small and must not wait.
    pub fn hold(self: &Rc<Self>, write: impl FnOnce(&mut Vec<u8>)) {
        match self.session.get() {
            None => write(&mut self.held.borrow_mut().bytes),
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
        held.consume(pending);
    }
}
