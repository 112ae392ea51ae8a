use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether somebody wants it to end. Everything that waits or repeats asks, and the values that
/// are dropped on the way out stop what was started.
#[derive(Clone)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes note of Ctrl-C, SIGTERM and a closed terminal instead of ending at once.
    pub(super) fn watch() -> Result<Self> {
        let set = Arc::<AtomicBool>::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, set.clone()).context("cannot watch for Ctrl-C")?;
        }
        Ok(Interrupt(set))
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Has done what it was for; another one can follow.
    pub(super) fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// An error once it is set.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_set() {
            bail!("interrupted");
        }
        Ok(())
    }
}
