use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that has its cache lines for itself, so that workers whose cells were made one after
/// the other do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Apart(pub(super) AtomicU64);

/// A counter that a module holds on to. A clone counts into the same cell; asking the registry
/// again gives a cell of its own, and cells with the same labels are added up when read. So each
/// worker asks once and then shares no memory with the others.
#[derive(Clone, Debug)]
pub struct Counter(pub(super) Arc<Apart>);

impl Counter {
    /// Counts one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Counts `n`.
    pub fn add(&self, n: u64) {
        self.0.0.fetch_add(n, Ordering::Relaxed);
    }

    /// What this cell has counted.
    pub fn get(&self) -> u64 {
        self.0.0.load(Ordering::Relaxed)
    }
}

/// A whole number that goes up and down. Cells with the same labels are added up when read; a cell
/// is forgotten when its last handle is dropped.
#[derive(Clone, Debug)]
pub struct Gauge(pub(super) Arc<Apart>);

impl Gauge {
    /// Makes it `value`.
    pub fn set(&self, value: i64) {
        self.0.0.store(value.cast_unsigned(), Ordering::Relaxed);
    }

    /// Adds `n`, which may be negative.
    pub fn add(&self, n: i64) {
        self.0.0.fetch_add(n.cast_unsigned(), Ordering::Relaxed);
    }

    /// The value of this cell.
    pub fn get(&self) -> i64 {
        self.0.0.load(Ordering::Relaxed).cast_signed()
    }
}
