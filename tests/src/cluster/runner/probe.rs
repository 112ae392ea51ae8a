//! Asking a container how it is, by a program that runs in it.

use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A probe, asked again and again. Kubernetes' defaults hold for what it does not say.
pub struct Probe {
    command: Vec<String>,
    period: Duration,
    timeout: Duration,
    /// Failures in a row that count.
    threshold: u32,
    running: Option<(Child, Instant)>,
    due: Instant,
    failures: u32,
    /// It has succeeded, and has not failed so often since.
    good: bool,
}

impl Probe {
    /// The probe of a container under this name, if it has one that runs a program.
    pub fn of(container: &Value, name: &str) -> Option<Self> {
        let probe = &container[name];
        let command = probe["exec"]["command"].as_array()?;
        let number = |field: &str, usual: u64| probe[field].as_u64().unwrap_or(usual);
        let delay = Duration::from_secs(number("initialDelaySeconds", 0));
        Some(Probe {
            command: command
                .iter()
                .filter_map(|it| Some(it.as_str()?.to_owned()))
                .collect(),
            period: Duration::from_secs(number("periodSeconds", 10)),
            timeout: Duration::from_secs(number("timeoutSeconds", 1)),
            threshold: u32::try_from(number("failureThreshold", 3)).unwrap_or(u32::MAX),
            running: None,
            due: Instant::now() + delay,
            failures: 0,
            good: false,
        })
    }

    /// Takes in the answer, and asks when it is time; `run` starts the program.
    pub fn look(&mut self, run: impl FnOnce(&[String]) -> Child) {
        let now = Instant::now();
        let Some((child, since)) = &mut self.running else {
            if now >= self.due {
                self.due = now + self.period;
                self.running = Some((run(&self.command), now));
            }
            return;
        };
        match child.try_wait() {
            Ok(None) if now < *since + self.timeout => return,
            Ok(Some(status)) if status.success() => (self.failures, self.good) = (0, true),
            _ => {
                self.failures = self.failures.saturating_add(1);
                self.good &= self.failures < self.threshold;
            }
        }
        self.end();
    }

    /// For readiness: it has answered, and does so still.
    pub fn is_good(&self) -> bool {
        self.good
    }

    /// For liveness: it has failed too often.
    pub fn has_failed(&self) -> bool {
        self.failures >= self.threshold
    }

    fn end(&mut self) {
        if let Some((mut child, _)) = self.running.take() {
            // Both fail only for one that has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.end();
    }
}
