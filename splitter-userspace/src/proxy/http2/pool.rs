//! A worker's HTTP/2 connections, by Endpoint and TLS identity.

use std::cell::RefCell;
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
use crate::proxy::upstream;

/// Connections of one worker to one Endpoint, of one identity.
const CONNECTIONS_MAX: usize = 64;

/// See the module's text.
pub struct Http2Pool {
    clock: Rc<Clock>,
    flusher: Rc<Flusher>,
    /// For which a connection is kept without a stream.
    idle: Tick,
    /// For which a pod may take nothing.
    send: Duration,
    endpoints: RefCell<HashMap<Key, Entry, foldhash::fast::RandomState>>,
}

/// An Endpoint, and the [identity](Terms::identity) that connections were opened with.
type Key = (SocketAddr, u64);

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
    failed: RefCell<Option<io::Error>>,
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
        let key = (endpoint, terms.identity());
        loop {
            match self.step(key) {
                Step::Use(connection) => {
                    let stream = Stream::new(&self.clock, terms);
                    let hold = Hold::new(&connection, &stream);
                    return Ok(Opened { hold, connect });
                }
                Step::Full => return Err(OpenError::Full),
                Step::Wait(coming) => {
                    coming.done.notified().await;
                    if let Some(error) = &*coming.failed.borrow() {
                        return Err(OpenError::Io(upstream::same_failure(error)));
                    }
                }
                Step::Connect(coming) => {
                    let began = Instant::now();
                    self.connect(key, terms, coming).await?;
                    connect = Some(began.elapsed());
                }
            }
        }
    }

    fn step(&self, key: Key) -> Step {
        let mut endpoints = self.endpoints.borrow_mut();
        let entry = endpoints.entry(key).or_default();
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

    async fn connect(&self, key: Key, terms: &Terms, coming: Rc<Coming>) -> Result<(), OpenError> {
        let arrival = Arrival {
            pool: self,
            key,
            coming,
        };
        match Connection::connect(key.0, terms, self.send, &self.clock, &self.flusher).await {
            Ok(connection) => {
                let mut endpoints = self.endpoints.borrow_mut();
                let entry = endpoints.entry(key).or_default();
                entry.connections.push(connection);
                Ok(())
            }
            Err(error) => {
                *arrival.coming.failed.borrow_mut() = Some(upstream::same_failure(&error));
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
    key: Key,
    coming: Rc<Coming>,
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.pool.endpoints.borrow_mut().get_mut(&self.key) {
            entry.coming = None;
        }
        self.coming.done.notify_waiters();
    }
}
