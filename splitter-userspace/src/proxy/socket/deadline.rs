//! When a socket's wait is over.

use std::io;
use std::time::Duration;

use super::super::clock::Tick;
use super::{Socket, wake};

impl Socket {
    /// Ends the wait in `timeout` from now, whatever happens till then.
    pub fn wait_at_most(&self, timeout: Duration) {
        self.patience.set(Duration::ZERO);
        self.deadline.set(self.clock.after(timeout));
    }

    /// Ends the wait when there is no progress for `timeout`.
    pub fn wait_while_moving(&self, timeout: Duration) {
        self.patience.set(timeout);
        self.deadline.set(self.clock.after(timeout));
    }

    /// No deadline.
    pub fn wait_for_ever(&self) {
        self.patience.set(Duration::ZERO);
        self.deadline.set(0);
    }

    /// How long a peer may take nothing from now on.
    pub fn set_send_timeout(&self, timeout: Duration) {
        self.send_timeout.set(timeout);
    }

    /// Counts as progress for [`Self::wait_while_moving`].
    pub fn progress(&self) {
        let patience = self.patience.get();
        if !patience.is_zero() {
            self.deadline.set(self.clock.after(patience));
        }
    }

    /// Whether the deadline has passed at `now`.
    pub fn is_due(&self, now: Tick) -> bool {
        let over = |deadline: Tick| deadline != 0 && deadline <= now;
        over(self.deadline.get()) || over(self.send_deadline.get())
    }

    /// Whether a deadline is set.
    pub fn has_deadline(&self) -> bool {
        self.deadline.get() != 0
    }

    /// Has whoever reads this socket look around, without ending its wait.
    pub fn nudge(&self) {
        wake(&self.read_waker);
    }

    /// Ends whatever waits on this socket.
    pub fn expire(&self) {
        self.deadline.set(0);
        self.send_deadline.set(0);
        self.expired.set(true);
        wake(&self.read_waker);
        wake(&self.write_waker);
        // A blocked socket is the flusher's to give up.
        if self.blocked.get() {
            self.fail(io::ErrorKind::TimedOut.into());
            self.blocked.set(false);
            self.flusher.wake();
        }
    }

    /// Whether a deadline ended it.
    pub fn is_expired(&self) -> bool {
        self.expired.get()
    }
}
