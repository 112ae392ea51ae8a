use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvError, TryRecvError};

use super::{Batch, Shared};
use crate::telemetry::Counter;

/// Where the lines go.
pub(super) enum Sink {
    Stdout(io::Stdout),
    File {
        path: PathBuf,
        file: File,
    },
    #[cfg(test)]
    Test(Box<dyn Write + Send>),
}

impl Sink {
    pub(super) fn file(path: PathBuf) -> io::Result<Self> {
        let file = open(&path)?;
        Ok(Sink::File { path, file })
    }

    /// Opens the file anew under its name. When that fails, the old one stays in use.
    fn reopen(&mut self) {
        if let Sink::File { path, file } = self {
            match open(path) {
                Ok(opened) => *file = opened,
                Err(error) => tracing::error!(
                    path = %path.display(), %error,
                    "cannot open the access log again; lines go to the file opened before"
                ),
            }
        }
    }

    fn out(&mut self) -> &mut dyn Write {
        match self {
            Sink::Stdout(stdout) => stdout,
            Sink::File { file, .. } => file,
            #[cfg(test)]
            Sink::Test(out) => out,
        }
    }
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// The thread that writes the batches.
pub(super) struct Writer {
    pub(super) sink: Sink,
    pub(super) batches: Receiver<Batch>,
    pub(super) shared: std::sync::Arc<Shared>,
    pub(super) dropped: Counter,
    /// Whether the last write ended inside a line.
    pub(super) torn: bool,
    /// Whether writing failed last time, so that it is said once.
    pub(super) failing: bool,
}

impl Writer {
    /// Runs until nobody can send any more, or the log is closed and everything sent is written.
    pub(super) fn run(mut self) {
        while let Ok(batch) = self.next() {
            if self.shared.reopen.swap(false, Ordering::Relaxed) {
                self.sink.reopen();
            }
            self.write(&batch);
            self.shared.recycle(batch.bytes);
        }
    }

    fn next(&self) -> Result<Batch, RecvError> {
        if !self.shared.closing.load(Ordering::Acquire) {
            return self.batches.recv();
        }
        match self.batches.try_recv() {
            Ok(batch) => Ok(batch),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Err(RecvError),
        }
    }

    fn write(&mut self, batch: &Batch) {
        if batch.bytes.is_empty() {
            return;
        }
        if self.torn && self.sink.out().write_all(b"\n").is_ok() {
            self.torn = false;
        }
        let (written, result) = write_all(self.sink.out(), &batch.bytes);
        match result {
            Ok(()) => {
                self.torn = false;
                self.failing = false;
            }
            Err(error) => self.failed(&batch.bytes, written, &error),
        }
    }

    fn failed(&mut self, bytes: &[u8], written: usize, error: &io::Error) {
        let (done, rest) = bytes.split_at(written);
        // A new line only if something of a line was written.
        self.torn = match done.last() {
            Some(byte) => *byte != b'\n',
            None => self.torn,
        };
        let lines = rest.iter().filter(|byte| **byte == b'\n').count();
        self.dropped.add(lines as u64);
        if !self.failing {
            tracing::error!(%error, lines, "cannot write the access log; its lines are dropped");
        }
        self.failing = true;
    }
}

/// Writes as much as can be written, and says how much it was.
fn write_all(out: &mut dyn Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match out.write(rest) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, out.flush())
}
