//! Held writes: what tasks write in one turn of the worker goes out in one pass at its end.
//!
//! A socket with something to send enters the dirty list; the first one wakes the flusher task,
//! which the run queue puts behind every task that is already ready. The list owns the socket, so
//! an answer is sent even when its connection is dropped in the same turn.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::socket::{Progress, Socket, Spare};

/// The sockets of one worker that have bytes to send.
#[derive(Default)]
pub struct Flusher {
    dirty: RefCell<Vec<Rc<Socket>>>,
    blocked: RefCell<Vec<Rc<Socket>>>,
    waker: RefCell<Option<Waker>>,
    spare: Spare,
}

impl Flusher {
    /// Empty buffers for what is held.
    pub fn spare(&self) -> &Spare {
        &self.spare
    }

    /// Has `socket` flushed at the end of this turn.
    pub fn push(&self, socket: Rc<Socket>) {
        let first = {
            let mut dirty = self.dirty.borrow_mut();
            dirty.push(socket);
            dirty.len() == 1
        };
        if first {
            self.wake();
        }
    }

    /// Has `socket`, whose send buffer is full, watched until it takes more.
    pub fn push_blocked(&self, socket: Rc<Socket>) {
        self.blocked.borrow_mut().push(socket);
        self.wake();
    }

    /// Has the task look at its lists.
    pub fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Whether every byte that was handed over is with the kernel.
    pub fn is_empty(&self) -> bool {
        self.dirty.borrow().is_empty() && self.blocked.borrow().is_empty()
    }

    /// The flusher task; never ends.
    pub async fn run(self: Rc<Self>) {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let known = matches!(&*self.waker.borrow(), Some(waker) if waker.will_wake(cx.waker()));
        if !known {
            *self.waker.borrow_mut() = Some(cx.waker().clone());
        }
        let mut dirty = std::mem::take(&mut *self.dirty.borrow_mut());
        for socket in dirty.drain(..) {
            if let Progress::Blocked = socket.flush_dirty() {
                self.blocked.borrow_mut().push(socket);
            }
        }
        // Keeps the allocation, unless something became dirty meanwhile.
        let mut slot = self.dirty.borrow_mut();
        if slot.is_empty() {
            *slot = dirty;
        }
        drop(slot);
        self.poll_blocked(cx);
        Poll::Pending
    }

    fn poll_blocked(&self, cx: &mut Context<'_>) {
        if self.blocked.borrow().is_empty() {
            return;
        }
        let mut blocked = std::mem::take(&mut *self.blocked.borrow_mut());
        blocked.retain(|socket| matches!(socket.poll_blocked(cx), Progress::Blocked));
        let mut slot = self.blocked.borrow_mut();
        blocked.append(&mut slot);
        *slot = blocked;
    }
}
