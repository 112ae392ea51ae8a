//! The patterns of hosts that have any, in the order in which ingress-nginx tries them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::model::{LocationId, PathPattern};

/// One text of one pattern.
struct Candidate {
    pattern: PathPattern,
    form: usize,
    id: LocationId,
}

impl Candidate {
    fn text(&self) -> &str {
        self.pattern
            .forms()
            .get(self.form)
            .map_or("", |it| it.text())
    }

    fn is_match(&self, path: &str) -> bool {
        let form = self.pattern.forms().get(self.form);
        form.is_some_and(|form| form.is_match(path))
    }
}

/// The patterns of each host that has any, by its number; the longest text first, among equals the
/// last by its bytes.
#[derive(Default)]
pub(super) struct Patterns(BTreeMap<u32, Vec<Candidate>>);

impl Patterns {
    pub(super) fn add(&mut self, host: u32, pattern: &PathPattern, id: LocationId) {
        let candidates = self.0.entry(host).or_default();
        for form in 0..pattern.forms().len() {
            candidates.push(Candidate {
                pattern: pattern.clone(),
                form,
                id,
            });
        }
    }

    /// To be called when all are added.
    pub(super) fn sort(&mut self) {
        for candidates in self.0.values_mut() {
            candidates.sort_by(|one, other| {
                let (one, other) = (one.text(), other.text());
                (other.len(), other).cmp(&(one.len(), one))
            });
        }
    }

    /// The first pattern of the host that matches a canonical path and comes before a prefix, which
    /// is given without its last slash and stands for itself with it.
    pub(super) fn find(&self, host: u32, path: &str, prefix: Option<&str>) -> Option<LocationId> {
        let candidates = self.0.get(&host)?;
        let before = |candidate: &&Candidate| {
            prefix.is_none_or(|prefix| compare(candidate.text(), prefix) != Ordering::Less)
        };
        let mut possible = candidates.iter().take_while(before);
        possible.find(|it| it.is_match(path)).map(|it| it.id)
    }
}

/// How a text compares with a prefix that has a slash at its end.
fn compare(text: &str, prefix: &str) -> Ordering {
    let slashed = prefix.bytes().chain([b'/']);
    let length = text.len().cmp(&(prefix.len() + 1));
    length.then_with(|| text.bytes().cmp(slashed))
}
