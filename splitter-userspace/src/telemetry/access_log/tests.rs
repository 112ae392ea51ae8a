#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::writer::Sink;
use super::*;
use crate::telemetry::ControllerLabels;

const DEADLINE: Duration = Duration::from_secs(20);

/// A sink that takes each write only when it is told how much to take.
struct Steered {
    /// Says that a write has come.
    asked: Sender<()>,
    /// How many bytes of it to take; an error when it says nothing.
    take: Receiver<Option<usize>>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Steered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.asked.send(());
        match self.take.recv() {
            Ok(Some(most)) => {
                let taken = bytes.len().min(most);
                self.written.lock().unwrap().extend(&bytes[..taken]);
                Ok(taken)
            }
            _ => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Steering {
    log: AccessLog,
    registry: Registry,
    asked: Receiver<()>,
    take: Sender<Option<usize>>,
    written: Arc<Mutex<Vec<u8>>>,
}

fn steered(queue: usize) -> Steering {
    let registry = Registry::new(&ControllerLabels::default());
    let (asked_sender, asked) = channel();
    let (take, take_receiver) = channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let sink = Sink::Test(Box::new(Steered {
        asked: asked_sender,
        take: take_receiver,
        written: written.clone(),
    }));
    let log = AccessLog::with_sink(sink, LogFormat::Text, &registry, queue).unwrap();
    Steering {
        log,
        registry,
        asked,
        take,
        written,
    }
}

impl Steering {
    fn dropped(&self) -> u64 {
        self.registry.sum(&LOG_DROPPED)
    }

    fn text(&self) -> String {
        String::from_utf8(self.written.lock().unwrap().clone()).unwrap()
    }
}

/// Adds a finished line to a worker's buffer.
fn line(worker: &mut WorkerLog, text: &str) {
    let lines = worker.0.as_mut().unwrap();
    lines.bytes.extend_from_slice(text.as_bytes());
    lines.bytes.push(b'\n');
    lines.lines += 1;
}

#[test]
fn a_slow_reader_makes_lines_drop_and_never_waits() {
    let steering = steered(1);
    let mut worker = steering.log.worker();
    line(&mut worker, "first");
    worker.tick();
    // The writer holds the first; the second waits in the queue; the others have no room.
    steering.asked.recv_timeout(DEADLINE).unwrap();
    line(&mut worker, "second");
    worker.tick();
    for _ in 0..3 {
        line(&mut worker, "lost");
        line(&mut worker, "lost");
        worker.tick();
    }
    assert_eq!(steering.dropped(), 6);
    assert!(
        !steering.log.close(Duration::ZERO),
        "the writer still waits"
    );
    for _ in 0..2 {
        steering.take.send(Some(usize::MAX)).unwrap();
    }
    assert!(steering.log.close(DEADLINE));
    assert_eq!(steering.text(), "first\nsecond\n");
}

#[test]
fn a_line_that_was_torn_does_not_swallow_the_next_one() {
    let steering = steered(8);
    let mut worker = steering.log.worker();
    for text in ["one", "two", "three"] {
        line(&mut worker, text);
    }
    worker.tick();
    // Six bytes are "one\ntw", then the disk is full.
    steering.take.send(Some(6)).unwrap();
    steering.take.send(None).unwrap();
    // The end of the torn line fails once more, then there is room.
    line(&mut worker, "four");
    worker.tick();
    steering.take.send(Some(1)).unwrap();
    steering.take.send(Some(usize::MAX)).unwrap();
    drop(worker);
    assert!(steering.log.close(DEADLINE));
    assert_eq!(steering.text(), "one\ntw\nfour\n");
    assert_eq!(steering.dropped(), 2);
}

#[test]
fn short_writes_are_continued() {
    let steering = steered(8);
    let mut worker = steering.log.worker();
    line(&mut worker, "abcdef");
    drop(worker);
    for _ in 0..7 {
        steering.take.send(Some(1)).unwrap();
    }
    assert!(steering.log.close(DEADLINE));
    assert_eq!(steering.text(), "abcdef\n");
    assert_eq!(steering.dropped(), 0);
}

#[test]
fn lines_after_the_end_are_counted() {
    let steering = steered(8);
    let mut worker = steering.log.worker();
    assert!(steering.log.close(DEADLINE));
    line(&mut worker, "late");
    drop(worker);
    assert_eq!(steering.dropped(), 1);
}
