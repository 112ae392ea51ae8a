//! Coarse time for a worker: deadlines without a timer per request.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use super::socket::Socket;

/// How often a worker looks at its deadlines: the precision of every timeout.
pub const TICK: Duration = Duration::from_millis(250);

/// How many sockets one tick looks at, so that many idle connections do not stall the worker. With
/// more than this, a timeout can be late by some ticks.
const SWEEP: usize = 4096;

/// Ticks since the worker started. Zero stands for "never".
pub type Tick = u32;

/// A worker's coarse clock and the sockets that have deadlines.
pub struct Clock {
    started: Instant,
    now: Cell<Tick>,
    sockets: RefCell<Vec<Weak<Socket>>>,
    cursor: Cell<usize>,
}

impl Clock {
    /// A clock that starts now.
    pub fn new() -> Rc<Self> {
        Rc::new(Clock {
            started: Instant::now(),
            now: Cell::new(1),
            sockets: RefCell::default(),
            cursor: Cell::new(0),
        })
    }

    /// The present tick, never zero.
    pub fn now(&self) -> Tick {
        self.now.get()
    }

    /// The same in milliseconds since the worker started.
    pub fn millis(&self) -> u64 {
        u64::from(self.now.get()) * TICK.as_millis() as u64
    }

    /// The tick at which `timeout` from now is over for sure.
    pub fn after(&self, timeout: Duration) -> Tick {
        self.now.get().saturating_add(ticks(timeout))
    }

    /// Has `socket`'s deadline looked at for as long as it lives.
    pub fn watch(&self, socket: &Rc<Socket>) {
        self.sockets.borrow_mut().push(Rc::downgrade(socket));
    }

    /// Called every [`TICK`]: moves the time on and expires what is due.
    pub fn tick(&self) {
        let elapsed = self.started.elapsed().as_millis() / TICK.as_millis();
        self.now
            .set(Tick::try_from(elapsed + 1).unwrap_or(Tick::MAX));
        for socket in self.due() {
            socket.expire();
        }
    }

    /// Has every task that reads a socket look around.
    pub fn nudge_all(&self) {
        let sockets: Vec<_> = self
            .sockets
            .borrow()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for socket in sockets {
            socket.nudge();
        }
    }

    /// Takes dead entries out and returns the sockets whose time is over.
    fn due(&self) -> Vec<Rc<Socket>> {
        let now = self.now.get();
        let mut sockets = self.sockets.borrow_mut();
        let mut cursor = self.cursor.get();
        let mut due = Vec::new();
        for _ in 0..sockets.len().min(SWEEP) {
            if cursor >= sockets.len() {
                cursor = 0;
            }
            let Some(entry) = sockets.get(cursor) else {
                break;
            };
            match entry.upgrade() {
                None => {
                    sockets.swap_remove(cursor);
                    continue;
                }
                Some(socket) if socket.is_due(now) => due.push(socket),
                Some(socket) => socket.end_laziness(),
            }
            cursor += 1;
        }
        self.cursor.set(cursor);
        due
    }
}

/// Ticks in `timeout`, rounded up, and one more because the present tick has partly passed.
fn ticks(timeout: Duration) -> Tick {
    let ticks = timeout.as_millis().div_ceil(TICK.as_millis()) + 1;
    Tick::try_from(ticks).unwrap_or(Tick::MAX)
}
