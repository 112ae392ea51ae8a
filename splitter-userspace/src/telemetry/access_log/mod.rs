//! One line for each request, written by a thread of its own so that no worker waits for a disk.

mod digits;
mod escape;
mod json;
mod stamp;
#[cfg(test)]
mod tests;
mod text;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use http::Version;

use self::stamp::Stamp;
use self::writer::{Sink, Writer};
use super::metrics::LOG_DROPPED;
use super::{Counter, Record, Registry};
use crate::config::{self, LogFormat};

/// A worker hands its lines over when it has this many bytes of them, or at the next tick.
pub const BUFFER_BYTES: usize = 32 * 1024;

/// How many buffers may wait for the writer; further ones are dropped and counted. With
/// [`BUFFER_BYTES`] this bounds the memory to 8 MiB.
pub const QUEUE_BUFFERS: usize = 256;

/// Why the access log cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum AccessLogError {
    /// The file cannot be opened.
    #[error(
        "cannot open the access log {path:?}: {error}; create its directory or give another path with --access-log"
    )]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// No thread can be started.
    #[error("cannot start the access log's thread: {0}")]
    Thread(io::Error),
}

/// The access log of the process. Cheap to clone.
#[derive(Clone)]
pub struct AccessLog(Option<Arc<Open>>);

struct Open {
    format: LogFormat,
    sender: SyncSender<Batch>,
    shared: Arc<Shared>,
    registry: Registry,
    /// Disconnected when the writer has ended.
    done: Mutex<Receiver<()>>,
}

/// Whole lines of one worker.
struct Batch {
    bytes: Vec<u8>,
    lines: u64,
}

/// What the workers and the writer share.
#[derive(Default)]
struct Shared {
    spare: Mutex<Vec<Vec<u8>>>,
    reopen: AtomicBool,
    closing: AtomicBool,
}

impl AccessLog {
    /// No log: nothing is formatted.
    pub fn off() -> Self {
        AccessLog(None)
    }

    /// Opens the log and starts its writer.
    ///
    /// # Errors
    /// When the file cannot be opened or the thread not be started.
    pub fn start(
        target: &config::AccessLog,
        format: LogFormat,
        registry: &Registry,
    ) -> Result<Self, AccessLogError> {
        let sink = match target {
            config::AccessLog::Off => return Ok(Self::off()),
            config::AccessLog::Stdout => Sink::Stdout(io::stdout()),
            config::AccessLog::File(path) => {
                Sink::file(path.clone()).map_err(|error| AccessLogError::Open {
                    path: path.clone(),
                    error,
                })?
            }
        };
        Self::with_sink(sink, format, registry, QUEUE_BUFFERS)
    }

    fn with_sink(
        sink: Sink,
        format: LogFormat,
        registry: &Registry,
        queue: usize,
    ) -> Result<Self, AccessLogError> {
        let (sender, batches) = mpsc::sync_channel(queue);
        let (ended, done) = mpsc::channel::<()>();
        let shared = Arc::new(Shared::default());
        let writer = Writer {
            sink,
            batches,
            shared: shared.clone(),
            dropped: registry.counter(&LOG_DROPPED, &[("cause", "write-failed")]),
            torn: false,
            failing: false,
        };
        thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || {
                writer.run();
                drop(ended);
            })
            .map_err(AccessLogError::Thread)?;
        Ok(AccessLog(Some(Arc::new(Open {
            format,
            sender,
            shared,
            registry: registry.clone(),
            done: Mutex::new(done),
        }))))
    }

    /// The part of one worker.
    pub fn worker(&self) -> WorkerLog {
        WorkerLog(self.0.as_ref().map(|open| {
            Lines {
                format: open.format,
                bytes: Vec::new(),
                lines: 0,
                stamp: Stamp::default(),
                sender: open.sender.clone(),
                shared: open.shared.clone(),
                dropped: open
                    .registry
                    .counter(&LOG_DROPPED, &[("cause", "queue-full")]),
            }
        }))
    }

    /// Opens the file anew under its name, for log rotation.
    pub fn reopen(&self) {
        if let Some(open) = &self.0 {
            open.shared.reopen.store(true, Ordering::Relaxed);
            open.wake();
        }
    }

    /// Writes what the workers have handed over and ends the writer. Call it when the workers have
    /// ended. False when the writer was not done within `deadline` (a pipe that nobody reads).
    pub fn close(&self, deadline: Duration) -> bool {
        let Some(open) = &self.0 else {
            return true;
        };
        open.shared.closing.store(true, Ordering::Release);
        open.wake();
        let done = super::metrics::lock(&open.done);
        done.recv_timeout(deadline) == Err(RecvTimeoutError::Disconnected)
    }
}

impl Open {
    /// Makes the writer look at its flags. When the queue is full it is awake anyway.
    fn wake(&self) {
        let nothing = Batch {
            bytes: Vec::new(),
            lines: 0,
        };
        let _ = self.sender.try_send(nothing);
    }
}

impl Shared {
    /// A buffer that was written out, or a new one. Never waits.
    fn buffer(&self) -> Vec<u8> {
        let spare = self.spare.try_lock().ok().and_then(|mut all| all.pop());
        spare.unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES * 2))
    }

    fn recycle(&self, mut buffer: Vec<u8>) {
        // A line can be long; its buffer is not kept.
        if buffer.capacity() > BUFFER_BYTES * 4 || buffer.capacity() == 0 {
            return;
        }
        buffer.clear();
        let mut spare = super::metrics::lock(&self.spare);
        if spare.len() < QUEUE_BUFFERS {
            spare.push(buffer);
        }
    }
}

/// The lines of one worker that are not yet handed over. Dropping it hands them over.
pub struct WorkerLog(Option<Lines>);

struct Lines {
    format: LogFormat,
    bytes: Vec<u8>,
    lines: u64,
    stamp: Stamp,
    sender: SyncSender<Batch>,
    shared: Arc<Shared>,
    dropped: Counter,
}

impl WorkerLog {
    /// Whether lines go anywhere.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Adds the line of one request.
    pub fn write(&mut self, record: &Record<'_>) {
        if let Some(lines) = &mut self.0 {
            lines.write(record);
        }
    }

    /// Hands over what there is: to be called every 100 to 500 ms, so that no line waits longer.
    pub fn tick(&mut self) {
        if let Some(lines) = &mut self.0 {
            lines.hand_over();
        }
    }
}

impl Drop for WorkerLog {
    fn drop(&mut self) {
        self.tick();
    }
}

impl Lines {
    fn write(&mut self, record: &Record<'_>) {
        if self.bytes.capacity() == 0 {
            self.bytes = self.shared.buffer();
        }
        self.stamp.now();
        match self.format {
            LogFormat::Json => json::write(&mut self.bytes, record, &self.stamp),
            LogFormat::Text => text::write(&mut self.bytes, record, &self.stamp),
        }
        self.lines += 1;
        if self.bytes.len() >= BUFFER_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if self.lines == 0 {
            return;
        }
        let batch = Batch {
            bytes: std::mem::take(&mut self.bytes),
            lines: std::mem::take(&mut self.lines),
        };
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) =
            self.sender.try_send(batch)
        {
            self.dropped.add(batch.lines);
            self.bytes = batch.bytes;
            self.bytes.clear();
        }
    }
}

/// The protocol as nginx names it.
fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}
