use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::super::Record;

/// A number that one thread writes and others read: no read-modify-write instruction is needed.
#[derive(Debug, Default)]
pub(super) struct Cell(AtomicU64);

impl Cell {
    /// Adds `n`. Only the thread that owns the cell may call it.
    pub(super) fn add(&self, n: u64) {
        let old = self.0.load(Ordering::Relaxed);
        self.0.store(old.wrapping_add(n), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The buckets of a histogram, in whole units so that counting needs no floating point.
pub(super) struct Scale {
    /// Upper bounds, inclusive.
    bounds: &'static [u64],
    /// The same as they are written, in the family's unit.
    pub(super) written: &'static [&'static str],
    /// How many of our units are one of the family's.
    pub(super) per_unit: f64,
}

/// Nanoseconds, written as seconds.
pub(super) static TIME: Scale = Scale {
    bounds: &[
        5_000_000,
        10_000_000,
        25_000_000,
        50_000_000,
        100_000_000,
        250_000_000,
        500_000_000,
        1_000_000_000,
        2_500_000_000,
        5_000_000_000,
        10_000_000_000,
    ],
    written: &[
        "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10",
    ],
    per_unit: 1e9,
};

/// Bytes; ingress-nginx's buckets for lengths, small as they are.
pub(super) static LENGTH: Scale = Scale {
    bounds: &[10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
    written: &["10", "20", "30", "40", "50", "60", "70", "80", "90", "100"],
    per_unit: 1.0,
};

/// Bytes, in decades.
pub(super) static SIZE: Scale = Scale {
    bounds: &[10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000],
    written: &["10", "100", "1000", "10000", "100000", "1e+06", "1e+07"],
    per_unit: 1.0,
};

/// The most buckets that a scale has, the one without a bound among them.
const BUCKETS: usize = 12;

#[derive(Debug, Default)]
struct Histogram {
    counts: [Cell; BUCKETS],
    sum: Cell,
}

impl Histogram {
    fn observe(&self, scale: &Scale, value: u64) {
        let found = scale.bounds.iter().position(|bound| value <= *bound);
        let bucket = found.unwrap_or(scale.bounds.len());
        if let Some(cell) = self.counts.get(bucket) {
            cell.add(1);
        }
        self.sum.add(value);
    }

    fn time(&self, value: Duration) {
        // A request of 584 years would overflow.
        let nanos = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        self.observe(&TIME, nanos);
    }

    fn add_to(&self, sum: &mut HistogramSum) {
        for (cell, count) in self.counts.iter().zip(&mut sum.counts) {
            *count = count.wrapping_add(cell.get());
        }
        sum.sum = sum.sum.wrapping_add(self.sum.get());
    }
}

/// Everything that ingress-nginx's families say about one label set, of one worker.
#[derive(Debug, Default)]
pub(super) struct Block {
    requests: Cell,
    request_duration: Histogram,
    response_duration: Histogram,
    header_duration: Histogram,
    connect_duration: Histogram,
    request_size: Histogram,
    response_size: Histogram,
    bytes_sent: Histogram,
}

impl Block {
    /// Only the thread that owns the block may call it.
    pub(super) fn observe(&self, record: &Record<'_>) {
        self.requests.add(1);
        self.request_duration.time(record.duration);
        self.request_size.observe(&LENGTH, record.request_bytes);
        self.response_size.observe(&LENGTH, record.response_bytes);
        self.bytes_sent.observe(&SIZE, record.response_bytes);
        let Some(upstream) = &record.upstream else {
            return;
        };
        self.response_duration.time(upstream.response);
        if let Some(header) = upstream.header {
            self.header_duration.time(header);
        }
        // nginx says 0 for a kept connection and nothing where connecting failed.
        match (upstream.connect, upstream.header) {
            (Some(connect), _) => self.connect_duration.time(connect),
            (None, Some(_)) => self.connect_duration.time(Duration::ZERO),
            (None, None) => {}
        }
    }

    pub(super) fn add_to(&self, sum: &mut BlockSum) {
        sum.requests = sum.requests.wrapping_add(self.requests.get());
        let pairs = [
            (&self.request_duration, &mut sum.request_duration),
            (&self.response_duration, &mut sum.response_duration),
            (&self.header_duration, &mut sum.header_duration),
            (&self.connect_duration, &mut sum.connect_duration),
            (&self.request_size, &mut sum.request_size),
            (&self.response_size, &mut sum.response_size),
            (&self.bytes_sent, &mut sum.bytes_sent),
        ];
        for (histogram, into) in pairs {
            histogram.add_to(into);
        }
    }
}

/// A histogram added up over the workers.
#[derive(Debug, Default)]
pub(super) struct HistogramSum {
    pub(super) counts: [u64; BUCKETS],
    pub(super) sum: u64,
}

impl HistogramSum {
    pub(super) fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }
}

/// A [`Block`] added up over the workers.
#[derive(Debug, Default)]
pub(super) struct BlockSum {
    pub(super) requests: u64,
    pub(super) request_duration: HistogramSum,
    pub(super) response_duration: HistogramSum,
    pub(super) header_duration: HistogramSum,
    pub(super) connect_duration: HistogramSum,
    pub(super) request_size: HistogramSum,
    pub(super) response_size: HistogramSum,
    pub(super) bytes_sent: HistogramSum,
}
