use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether this instance may be given traffic: ready when every guard is dropped, until it drains.
/// Cheap to clone.
#[derive(Clone, Default)]
pub struct Readiness(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Guards that are held, by name.
    waiting: BTreeMap<&'static str, usize>,
    notes: BTreeMap<&'static str, String>,
    draining: bool,
}

impl Readiness {
    /// Ready, as nothing is waited for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Not ready as long as the guard lives. Names are `manifests`, `kube-sync`, `dataplane`,
    /// `listeners`.
    #[must_use = "what is not held is not waited for"]
    pub fn guard(&self, name: &'static str) -> ReadyGuard {
        *self.state().waiting.entry(name).or_default() += 1;
        ReadyGuard {
            readiness: self.clone(),
            name,
        }
    }

    /// Says something about how it is ready, such as the steering mode in use.
    pub fn note(&self, name: &'static str, text: impl Into<String>) {
        self.state().notes.insert(name, text.into());
    }

    /// Not ready from now on: the process is about to stop.
    pub fn drain(&self) {
        self.state().draining = true;
    }

    /// Whether it may be given traffic.
    pub fn is_ready(&self) -> bool {
        let state = self.state();
        state.waiting.is_empty() && !state.draining
    }

    /// Whether it is ready, and a text that says what is missing and what was noted.
    pub fn report(&self) -> (bool, String) {
        let state = self.state();
        let ready = state.waiting.is_empty() && !state.draining;
        let mut text = String::from(if ready { "ready\n" } else { "not ready\n" });
        // Writing to a String cannot fail.
        if state.draining {
            text.push_str("draining\n");
        }
        for name in state.waiting.keys() {
            let _ = writeln!(text, "waiting for {name}");
        }
        for (name, note) in &state.notes {
            let _ = writeln!(text, "{name}: {note}");
        }
        (ready, text)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thing that is waited for. Dropping it says that it is there.
pub struct ReadyGuard {
    readiness: Readiness,
    name: &'static str,
}

impl Drop for ReadyGuard {
    fn drop(&mut self) {
        let mut state = self.readiness.state();
        if let Some(count) = state.waiting.get_mut(self.name) {
            *count -= 1;
            if *count == 0 {
                state.waiting.remove(self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_every_guard_is_dropped() {
        let readiness = Readiness::new();
        let [first, second] = ["listeners", "dataplane"].map(|name| readiness.guard(name));
        let again = readiness.guard("listeners");
        let text = "not ready\nwaiting for dataplane\nwaiting for listeners\n";
        assert_eq!(readiness.report(), (false, text.to_owned()));
        drop(first);
        drop(second);
        assert!(!readiness.is_ready(), "the second guard of that name");
        drop(again);
        assert_eq!(readiness.report(), (true, "ready\n".to_owned()));
    }

    #[test]
    fn draining_is_for_good() {
        let readiness = Readiness::new();
        readiness.note("steering", "none");
        let clone = readiness.clone();
        clone.drain();
        drop(readiness.guard("listeners"));
        assert!(!readiness.is_ready());
        let text = "not ready\ndraining\nsteering: none\n";
        assert_eq!(readiness.report(), (false, text.to_owned()));
    }
}
