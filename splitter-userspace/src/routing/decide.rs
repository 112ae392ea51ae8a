use serde::Serialize;

use super::{Held, Shown, keyed, seen};
use crate::model::{Affinity, STABLE, Split, Test, ValueTest, Weights};

/// Chance, given by the caller.
pub trait Draw {
    /// A point below `total` (which is not zero). Called at most once a decision, and only when
    /// the weights decide.
    fn point(&mut self, total: u32) -> u32;
}

/// Which Variant answers, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Index into the Split's Variants.
    pub variant: usize,
    /// What decided.
    pub reason: Reason,
}

/// What decided for a Variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The Split has no canary.
    Only,
    /// The session cookie.
    Affinity,
    /// A header rule.
    Header,
    /// A cookie rule.
    Cookie,
    /// A rule of the query.
    Query,
    /// A rule of the client's address.
    Source,
    /// The weights, by chance.
    Weight,
    /// The weights, by a key of the request.
    Key,
    /// A canary was chosen that has no Endpoint: stable answers instead.
    CanaryUnavailable,
}

impl Reason {
    /// Every reason, in the order of their declaration.
    pub const ALL: [Reason; 9] = [
        Reason::Only,
        Reason::Affinity,
        Reason::Header,
        Reason::Cookie,
        Reason::Query,
        Reason::Source,
        Reason::Weight,
        Reason::Key,
        Reason::CanaryUnavailable,
    ];

    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Only => "only",
            Reason::Affinity => "affinity",
            Reason::Header => "header",
            Reason::Cookie => "cookie",
            Reason::Query => "query",
            Reason::Source => "source",
            Reason::Weight => "weight",
            Reason::Key => "key",
            Reason::CanaryUnavailable => "canary-unavailable",
        }
    }
}

/// What a rule says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Its canary answers; no further rule is asked.
    Canary,
    /// Stable answers; no further rule is asked.
    Stable,
    /// Nothing: the next rule is asked.
    Next,
}

/// Decides which Variant of `split` answers a request that shows this.
///
/// A session that holds a Variant comes first. It gives way only to a canary with the `legacy`
/// behavior that the rest would choose. Without a session the rules are asked in their order; the first that says canary or stable ends it. Otherwise the
/// weights decide: with the help of `draw` when more than one Variant has a weight, for stable when
/// none has. A Split without canaries needs none of this and reads nothing.
///
/// `weights` is what the Location's slot holds now. Whatever it holds, the result names a Variant
/// of the Split: what falls to one that does not exist goes to stable.
///
/// Allocates only where a header that a rule looks at was sent several times.
pub fn decide(
    split: &Split,
    shown: &Shown<'_>,
    weights: &Weights,
    draw: &mut impl Draw,
) -> Decision {
    if split.variants.len() <= 1 {
        return Decision {
            variant: STABLE,
            reason: Reason::Only,
        };
    }
    match (shown.held, split.affinity()) {
        (Some(held), Some(affinity)) => decide_held(split, affinity, held, || {
            decide_anew(split, shown, weights, draw)
        }),
        _ => decide_anew(split, shown, weights, draw),
    }
}

/// With a session that holds a Variant.
fn decide_held(
    split: &Split,
    affinity: &Affinity,
    held: Held,
    anew: impl FnOnce() -> Decision,
) -> Decision {
    if !affinity.is_sticky_throughout() {
        let decision = anew();
        if !affinity.is_sticky(decision.variant) || decision.variant == held.variant {
            return decision;
        }
    }
    let exists = held.variant < split.variants.len();
    Decision {
        variant: if exists { held.variant } else { STABLE },
        reason: Reason::Affinity,
    }
}

/// Without a session.
fn decide_anew(
    split: &Split,
    shown: &Shown<'_>,
    weights: &Weights,
    draw: &mut impl Draw,
) -> Decision {
    let variants = split.variants.len();
    for rule in &split.rules {
        let variant = match ask(&rule.test, shown) {
            Answer::Canary if usize::from(rule.variant) < variants => usize::from(rule.variant),
            Answer::Stable => STABLE,
            Answer::Canary | Answer::Next => continue,
        };
        return Decision {
            variant,
            reason: reason(&rule.test),
        };
    }
    let place = split.key().and_then(|key| keyed::place(key, shown));
    let (variant, reason) = match place {
        Some(place) => {
            let point = keyed::point(place, weights.total());
            (weights.at(point), Reason::Key)
        }
        None => (weigh(weights, draw), Reason::Weight),
    };
    let variant = if variant < variants { variant } else { STABLE };
    Decision { variant, reason }
}

/// What one rule says about a request, apart from all others.
pub fn ask(test: &Test, shown: &Shown<'_>) -> Answer {
    match test {
        Test::Header { name, test } => {
            seen::header(shown.headers, name).map_or(Answer::Next, |value| say(test, &value))
        }
        Test::Cookie { name, test } => {
            seen::cookie(shown.headers, name).map_or(Answer::Next, |value| say(test, value))
        }
        Test::Query { name, test } => {
            seen::query(shown.query, name).map_or(Answer::Next, |value| say(test, &value))
        }
        Test::Source(set) if set.contains(shown.client) => Answer::Canary,
        Test::Source(_) => Answer::Next,
    }
}

/// What a value that is there says.
fn say(test: &ValueTest, value: &[u8]) -> Answer {
    let canary = match test {
        ValueTest::AlwaysNever => return always_never(value),
        ValueTest::Value(wanted) => wanted.as_bytes() == value,
        ValueTest::Pattern(pattern) => pattern.is_match(value),
        ValueTest::Invalid => false,
    };
    if canary { Answer::Canary } else { Answer::Next }
}

fn always_never(value: &[u8]) -> Answer {
    match value {
        b"always" => Answer::Canary,
        b"never" => Answer::Stable,
        _ => Answer::Next,
    }
}

fn reason(test: &Test) -> Reason {
    match test {
        Test::Header { .. } => Reason::Header,
        Test::Cookie { .. } => Reason::Cookie,
        Test::Query { .. } => Reason::Query,
        Test::Source(_) => Reason::Source,
    }
}

fn weigh(weights: &Weights, draw: &mut impl Draw) -> usize {
    let mut weighty = weights
        .values
        .iter()
        .enumerate()
        .filter(|(_, weight)| **weight > 0);
    match (weighty.next(), weighty.next()) {
        (None, _) => STABLE,
        (Some((only, _)), None) => only,
        _ => weights.at(draw.point(weights.total())),
    }
}

#[cfg(test)]
mod tests;
