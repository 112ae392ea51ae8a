use std::time::{SystemTime, UNIX_EPOCH};

use super::{Counter, Gauge, Registry, families};

/// Counts configurations that were applied or could not be, under ingress-nginx's names and ours.
#[derive(Clone)]
pub struct ConfigMetrics {
    success: Counter,
    errors: Counter,
    applied: Counter,
    failed: Counter,
    successful: Gauge,
    timestamp: Gauge,
    generation: Gauge,
}

impl ConfigMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        ConfigMetrics {
            success: registry.counter(&families::RELOADS, &[]),
            errors: registry.counter(&families::RELOAD_ERRORS, &[]),
            applied: registry.counter(&families::RELOAD_TOTAL, &[("result", "applied")]),
            failed: registry.counter(&families::RELOAD_TOTAL, &[("result", "failed")]),
            successful: registry.gauge(&families::LAST_RELOAD_SUCCESSFUL, &[]),
            timestamp: registry.gauge(&families::LAST_RELOAD_TIMESTAMP, &[]),
            generation: registry.gauge(&families::GENERATION, &[]),
        }
    }

    /// A configuration is in use, as this generation.
    pub fn applied(&self, generation: u64) {
        self.success.inc();
        self.applied.inc();
        self.successful.set(1);
        self.generation.set(clamp(generation));
        if let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) {
            self.timestamp.set(clamp(now.as_secs()));
        }
    }

    /// A configuration could not be applied; the one before stays in use.
    pub fn failed(&self) {
        self.errors.inc();
        self.failed.inc();
        self.successful.set(0);
    }
}

fn clamp(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
