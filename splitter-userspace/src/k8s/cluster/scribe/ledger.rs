//! Which Events are to be written next: pure.
//!
//! One Event for all Problems of one kind with one object, told anew as long as it lasts.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::time::{Duration, Instant};

use crate::model::{ObjectRef, Problem};

/// An Event is forgotten by the API server after an hour; before that it is told again.
const AGAIN: Duration = Duration::from_secs(30 * 60);

/// A Problem that comes back within this time is told as the same Event once more.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);

/// Until an Event that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(30);

/// Events that may be written at once, and how long one of them takes to be allowed again.
const BURST: u32 = 50;
const ONE_EVERY: Duration = Duration::from_millis(200);

/// The longest message that the API server takes, in bytes.
const MAX_MESSAGE: usize = 1024;

/// One Event to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Telling {
    /// What it is about.
    pub object: ObjectRef,
    /// The kind of fault.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// How often it was told, this time included.
    pub count: i32,
}

impl Telling {
    /// Why, as Events write it: `service-not-found` is `ServiceNotFound`.
    pub(super) fn reason(&self) -> String {
        let words = self.code.split('-');
        let word = |word: &str| {
            let mut letters = word.chars();
            let first = letters.next().map(|it| it.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        };
        words.map(word).collect()
    }

    /// The Event's own name: the same for the same object and code, whoever writes it. A new object
    /// of the old name has another `uid`.
    pub(super) fn name(&self, uid: &str) -> String {
        let key = (self.object.kind.as_str(), uid, self.code);
        let hash = foldhash::fast::FixedState::default().hash_one(key);
        let object: String = self.object.name.chars().take(200).collect();
        format!("{object}.{hash:016x}")
    }
}

/// What was told.
pub(super) struct Ledger {
    told: BTreeMap<(ObjectRef, &'static str), Told>,
    /// When the bucket of allowed Events was or will be empty.
    spent: Instant,
}

struct Told {
    message: String,
    count: i32,
    at: Instant,
    failed: bool,
    /// Since when it is over.
    over: Option<Instant>,
}

/// What is to be told now, and when to look again.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tellings {
    pub now: Vec<Telling>,
    pub again: Option<Instant>,
}

impl Ledger {
    pub(super) fn new(now: Instant) -> Self {
        Ledger {
            told: BTreeMap::new(),
            spent: now.checked_sub(ONE_EVERY * BURST).unwrap_or(now),
        }
    }

    /// Compares what is wrong with what was told.
    pub(super) fn plan(&mut self, problems: &[Problem], now: Instant) -> Tellings {
        let wrong = messages(problems);
        self.forget(&wrong, now);
        let mut plan = Tellings::default();
        for ((object, code), message) in wrong {
            let key = (object, code);
            let told = self.told.get(&key);
            let due = told.map_or(now, |told| told.due(&message, now));
            let count = told.map_or(0, |told| told.count).saturating_add(1);
            if due > now {
                plan.again = Some(plan.again.map_or(due, |it| it.min(due)));
                continue;
            }
            if !self.allow(now) {
                plan.again = Some(now + ONE_EVERY);
                break;
            }
            let (object, code) = key;
            plan.now.push(Telling {
                object,
                code,
                message,
                count,
            });
        }
        plan
    }

    /// An Event was written, or was not.
    pub(super) fn told(&mut self, telling: Telling, done: bool, now: Instant) {
        let told = Told {
            message: telling.message,
            count: telling.count,
            at: now,
            failed: !done,
            over: None,
        };
        self.told.insert((telling.object, telling.code), told);
    }

    fn forget(&mut self, wrong: &BTreeMap<(ObjectRef, &'static str), String>, now: Instant) {
        self.told.retain(|key, told| {
            if wrong.contains_key(key) {
                return true;
            }
            now.duration_since(*told.over.get_or_insert(now)) < REMEMBERED
        });
    }

    fn allow(&mut self, now: Instant) -> bool {
        let full = now.checked_sub(ONE_EVERY * BURST).unwrap_or(self.spent);
        let spent = self.spent.max(full) + ONE_EVERY;
        if spent > now {
            return false;
        }
        self.spent = spent;
        true
    }
}

impl Told {
    fn due(&self, message: &str, now: Instant) -> Instant {
        if self.failed {
            self.at + RETRY
        } else if self.message != message || self.over.is_some() {
            now
        } else {
            self.at + AGAIN
        }
    }
}

/// One message for each object and code.
fn messages(problems: &[Problem]) -> BTreeMap<(ObjectRef, &'static str), String> {
    let mut all: BTreeMap<_, Vec<&Problem>> = BTreeMap::new();
    for problem in problems {
        let key = (problem.object.clone(), problem.code);
        all.entry(key).or_default().push(problem);
    }
    let texts = all.into_iter().filter_map(|(key, problems)| {
        let (first, others) = problems.split_first()?;
        let mut text = String::new();
        if !first.field.is_empty() {
            text = format!("{}: ", first.field);
        }
        text.push_str(&format!("{}; {}", first.message, first.effect));
        let end = match others.len() {
            0 => String::new(),
            more => format!(" (and {more} more like this)"),
        };
        let room = MAX_MESSAGE - end.len();
        if text.len() > room {
            text.truncate(text.floor_char_boundary(room - '…'.len_utf8()));
            text.push('…');
        }
        Some((key, text + &end))
    });
    texts.collect()
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
