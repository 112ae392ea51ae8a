//! A request's body on its way to a canary as well (`splitter.io/mirror`).
//!
//! The parts that the client sends are shared, not copied, and wait here until the canary takes
//! them. A canary that is slow holds up nobody: what waits has a limit, beyond which the copy is
//! broken off.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

/// The largest body that is copied, in bytes: as large as bodies may be by default.
pub const BODY_MAX: u64 = 1 << 20;

/// How much of all bodies may wait in one worker, in bytes.
const HELD_MAX: usize = 16 << 20;

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it came.
    Whole,
    /// The client, or whoever answered it, left the rest away.
    Cut,
    /// It is larger than [`BODY_MAX`].
    TooLarge,
    /// Too much waits already.
    NoRoom,
}

#[derive(Default)]
struct Queue {
    parts: VecDeque<Bytes>,
    /// Bytes so far.
    size: u64,
    /// Bytes that wait.
    held: usize,
    end: Option<End>,
    waker: Option<Waker>,
    /// Bytes that wait in the whole worker.
    total: Rc<Cell<usize>>,
}

impl Queue {
    fn close(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
            if matches!(end, End::TooLarge | End::NoRoom) {
                self.clear();
            }
            self.wake();
        }
    }

    fn push(&mut self, part: &Bytes) {
        if self.end.is_some() {
            return;
        }
        self.size += part.len() as u64;
        if self.size > BODY_MAX {
            return self.close(End::TooLarge);
        }
        if self.total.get() + part.len() > HELD_MAX {
            return self.close(End::NoRoom);
        }
        self.held += part.len();
        self.total.set(self.total.get() + part.len());
        self.parts.push_back(part.clone());
        self.wake();
    }

    fn pop(&mut self) -> Option<Bytes> {
        let part = self.parts.pop_front()?;
        self.held -= part.len();
        self.total.set(self.total.get() - part.len());
        Some(part)
    }

    fn clear(&mut self) {
        self.parts.clear();
        self.total.set(self.total.get() - self.held);
        self.held = 0;
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Where the original's parts are put.
pub struct Feed(Rc<RefCell<Queue>>);

/// The copy.
pub struct Copied(Rc<RefCell<Queue>>);

/// Tells how a copied body ended, after it did.
pub struct Outcome(Rc<RefCell<Queue>>);

/// A copy of a body that is about to come. `total` counts what waits in the whole worker.
pub fn copied(total: &Rc<Cell<usize>>) -> (Feed, Copied) {
    let queue = Rc::new(RefCell::new(Queue {
        total: total.clone(),
        ..Queue::default()
    }));
    (Feed(queue.clone()), Copied(queue))
}

impl Feed {
    /// A part has come.
    pub fn push(&self, part: &Bytes) {
        self.0.borrow_mut().push(part);
    }

    /// There is no more.
    pub fn end(&self) {
        self.0.borrow_mut().close(End::Whole);
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.borrow_mut().close(End::Cut);
    }
}

impl Copied {
    /// The next part; none at the end.
    ///
    /// # Errors
    /// How it ended, if it is not whole.
    pub fn poll_part(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Bytes, End>>> {
        let mut queue = self.0.borrow_mut();
        if let Some(part) = queue.pop() {
            return Poll::Ready(Some(Ok(part)));
        }
        match queue.end {
            Some(End::Whole) => Poll::Ready(None),
            Some(end) => Poll::Ready(Some(Err(end))),
            None => {
                queue.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether nothing more comes.
    pub fn is_over(&self) -> bool {
        let queue = self.0.borrow();
        queue.parts.is_empty() && queue.end == Some(End::Whole)
    }

    /// Tells how it ended, after it did.
    pub fn outcome(&self) -> Outcome {
        Outcome(self.0.clone())
    }
}

impl Drop for Copied {
    /// What comes from now on is for nobody.
    fn drop(&mut self) {
        let mut queue = self.0.borrow_mut();
        queue.clear();
        queue.end.get_or_insert(End::Cut);
    }
}

impl Outcome {
    /// How the body ended.
    pub fn end(&self) -> Option<End> {
        self.0.borrow().end
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn take(copied: &mut Copied) -> Poll<Option<Result<Bytes, End>>> {
        copied.poll_part(&Context::from_waker(Waker::noop()))
    }

    fn part(size: usize) -> Bytes {
        vec![b'x'; size].into()
    }

    #[test]
    fn parts_come_in_order_and_end_as_the_original() {
        let total = Rc::default();
        let (feed, mut copied) = copied(&total);
        assert!(take(&mut copied).is_pending());
        feed.push(&"a".into());
        feed.push(&"bc".into());
        assert_eq!(total.get(), 3);
        assert_eq!(take(&mut copied), Poll::Ready(Some(Ok("a".into()))));
        feed.end();
        drop(feed);
        assert!(!copied.is_over());
        assert_eq!(take(&mut copied), Poll::Ready(Some(Ok("bc".into()))));
        assert!(copied.is_over());
        assert_eq!(take(&mut copied), Poll::Ready(None));
        assert_eq!(total.get(), 0);
    }

    #[test]
    fn a_body_that_is_cut_is_cut_behind_what_came() {
        let (feed, mut copied) = copied(&Rc::default());
        feed.push(&"a".into());
        drop(feed);
        assert_eq!(take(&mut copied), Poll::Ready(Some(Ok("a".into()))));
        assert_eq!(take(&mut copied), Poll::Ready(Some(Err(End::Cut))));
    }

    #[test]
    fn what_is_too_large_or_has_no_room_is_broken_off_and_holds_nothing() {
        let total = Rc::default();
        let most = usize::try_from(BODY_MAX).unwrap();
        let (feed, mut large) = copied(&total);
        feed.push(&part(most));
        feed.push(&part(1));
        assert_eq!(take(&mut large), Poll::Ready(Some(Err(End::TooLarge))));
        assert_eq!(total.get(), 0);
        let waiting: Vec<_> = (0..HELD_MAX / most).map(|_| copied(&total)).collect();
        for (feed, _) in &waiting {
            feed.push(&part(most));
        }
        let (feed, mut late) = copied(&total);
        feed.push(&part(1));
        let outcome = late.outcome();
        assert_eq!(take(&mut late), Poll::Ready(Some(Err(End::NoRoom))));
        drop((late, feed));
        assert_eq!(outcome.end(), Some(End::NoRoom));
        assert_eq!(total.get(), HELD_MAX);
        drop(waiting);
        assert_eq!(total.get(), 0);
    }

    #[test]
    fn a_copy_that_nobody_takes_costs_nothing() {
        let total = Rc::default();
        let (feed, copied) = copied(&total);
        feed.push(&part(10));
        drop(copied);
        assert_eq!(total.get(), 0);
        feed.push(&part(10));
        assert_eq!(total.get(), 0);
    }
}
