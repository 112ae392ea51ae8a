//! A worker's HTTP/2 connections, by Endpoint.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use tokio::sync::Notify;

use super::connection::Connection;
use super::stream::{Hold, Stream};
use crate::config::Timeouts;
use crate::proxy::clock::{Clock, TICK, Tick};
use crate::proxy::flush::Flusher;
use crate::proxy::terms::Terms;

/// Connections of one worker to one Endpoint.
const CONNECTIONS_MAX: usize = 64;

/// See the module's text.
pub struct Http2Pool {
    clock: Rc<Clock>,
    flusher: Rc<Flusher>,
    /// For which a connection is kept without a stream.
    idle: Tick,
    /// For which a pod may take nothing.
    send: Duration,
    endpoints: RefCell<HashMap<SocketAddr, Entry, foldhash::fast::RandomState>>,
}

#[derive(Default)]
struct Entry {
    connections: Vec<Rc<Connection>>,
    /// A connection on its way, which others wait for instead of making their own.
    coming: Option<Rc<Coming>>,
}

/// A connection on its way.
#[derive(Default)]
struct Coming {
    done: Notify,
    failed: Cell<Option<io::ErrorKind>>,
}

/// Why there is no stream.
#[derive(Debug)]
pub enum OpenError {
    /// All streams of all connections are in use.
    Full,
    /// No connection could be made.
    Io(io::Error),
}

/// What is to be done to get a stream.
enum Step {
    Use(Rc<Connection>),
    Wait(Rc<Coming>),
    Connect(Rc<Coming>),
    Full,
}

/// A stream, and how long its connection took to be made if it was made for it.
pub struct Opened {
    /// The stream.
    pub hold: Hold,
    /// The time.
    pub connect: Option<Duration>,
}

impl Http2Pool {
    /// An empty one.
    pub fn new(clock: &Rc<Clock>, flusher: &Rc<Flusher>, timeouts: &Timeouts) -> Rc<Self> {
        let ticks = timeouts
            .upstream_idle
            .as_millis()
            .div_ceil(TICK.as_millis());
        Rc::new(Http2Pool {
            clock: clock.clone(),
            flusher: flusher.clone(),
            idle: Tick::try_from(ticks).unwrap_or(Tick::MAX),
            send: timeouts.send,
            endpoints: RefCell::default(),
        })
    }

    /// A stream to `endpoint`, on a connection that stands or on a new one.
    pub async fn open(&self, endpoint: SocketAddr, terms: &Terms) -> Result<Opened, OpenError> {
        let mut connect = None;
        loop {
            match self.step(endpoint) {
                Step::Use(connection) => {
                    let stream = Stream::new(&self.clock, terms);
                    let hold = Hold::new(&connection, &stream);
                    return Ok(Opened { hold, connect });
                }
                Step::Full => return Err(OpenError::Full),
                Step::Wait(coming) => {
                    coming.done.notified().await;
                    if let Some(kind) = coming.failed.get() {
                        return Err(OpenError::Io(kind.into()));
                    }
                }
                Step::Connect(coming) => {
                    let began = Instant::now();
                    self.connect(endpoint, terms, coming).await?;
                    connect = Some(began.elapsed());
                }
            }
        }
    }

    fn step(&self, endpoint: SocketAddr) -> Step {
        let mut endpoints = self.endpoints.borrow_mut();
        let entry = endpoints.entry(endpoint).or_default();
        let with_room = entry.connections.iter().find(|it| it.has_room());
        if let Some(connection) = with_room {
            return Step::Use(connection.clone());
        }
        if let Some(coming) = &entry.coming {
            return Step::Wait(coming.clone());
        }
        let open = entry.connections.iter().filter(|it| it.is_open()).count();
        if open >= CONNECTIONS_MAX {
            return Step::Full;
        }
        let coming = Rc::<Coming>::default();
        entry.coming = Some(coming.clone());
        Step::Connect(coming)
    }

    async fn connect(
        &self,
        endpoint: SocketAddr,
        terms: &Terms,
        coming: Rc<Coming>,
    ) -> Result<(), OpenError> {
        let arrival = Arrival {
            pool: self,
            endpoint,
            coming,
        };
        match Connection::connect(endpoint, terms, self.send, &self.clock, &self.flusher).await {
            Ok(connection) => {
                let mut endpoints = self.endpoints.borrow_mut();
                let entry = endpoints.entry(endpoint).or_default();
                entry.connections.push(connection);
                Ok(())
            }
            Err(error) => {
                arrival.coming.failed.set(Some(error.kind()));
                Err(OpenError::Io(error))
            }
        }
    }

    /// Called every tick: expires streams, and closes connections that are not used any more.
    pub fn tick(&self) {
        self.endpoints.borrow_mut().retain(|_, entry| {
            entry.connections.retain(|connection| {
                connection.tick();
                // One that takes no more streams is kept for those that it has: they have deadlines.
                connection.is_used() || (connection.is_open() && !connection.is_idle(self.idle))
            });
            !entry.connections.is_empty() || entry.coming.is_some()
        });
    }
}

/// Tells those who wait that a connection is there, has failed, or was given up.
struct Arrival<'a> {
    pool: &'a Http2Pool,
    endpoint: SocketAddr,
    coming: Rc<Coming>,
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.pool.endpoints.borrow_mut().get_mut(&self.endpoint) {
            entry.coming = None;
        }
        self.coming.done.notify_waiters();
    }
}
