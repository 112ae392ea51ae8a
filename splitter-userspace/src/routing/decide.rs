use http::HeaderMap;
use serde::Serialize;

use super::seen;
use crate::model::{CookieTest, HeaderTest, STABLE, Split, Test, Weights};

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
    /// A header rule.
    Header,
    /// A cookie rule.
    Cookie,
    /// The weights.
    Weight,
    /// A canary was chosen that has no Endpoint: stable answers instead.
    CanaryUnavailable,
}

impl Reason {
    /// Every reason, in the order of their declaration.
    pub const ALL: [Reason; 5] = [
        Reason::Only,
        Reason::Header,
        Reason::Cookie,
        Reason::Weight,
        Reason::CanaryUnavailable,
    ];

    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Only => "only",
            Reason::Header => "header",
            Reason::Cookie => "cookie",
            Reason::Weight => "weight",
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

/// Decides which Variant of `split` answers a request with these headers.
///
/// The rules are asked in their order; the first that says canary or stable ends it. Otherwise the
/// weights decide: with the help of `draw` when more than one Variant has a weight, for stable when
/// none has. A Split without canaries needs none of this and reads nothing.
///
/// `weights` is what the Location's slot holds now. Whatever it holds, the result names a Variant
/// of the Split: what falls to one that does not exist goes to stable.
///
/// Allocates only where a header that a rule looks at was sent several times.
pub fn decide(
    split: &Split,
    headers: &HeaderMap,
    weights: &Weights,
    draw: &mut impl Draw,
) -> Decision {
    let variants = split.variants.len();
    if variants <= 1 {
        return Decision {
            variant: STABLE,
            reason: Reason::Only,
        };
    }
    for rule in &split.rules {
        let variant = match ask(&rule.test, headers) {
            Answer::Canary if usize::from(rule.variant) < variants => usize::from(rule.variant),
            Answer::Stable => STABLE,
            Answer::Canary | Answer::Next => continue,
        };
        return Decision {
            variant,
            reason: reason(&rule.test),
        };
    }
    let variant = weigh(weights, draw);
    let variant = if variant < variants { variant } else { STABLE };
    Decision {
        variant,
        reason: Reason::Weight,
    }
}

/// What one rule says about a request, apart from all others.
pub fn ask(test: &Test, headers: &HeaderMap) -> Answer {
    match test {
        Test::Header {
            test: HeaderTest::Invalid,
            ..
        } => Answer::Next,
        Test::Header { name, test } => match seen::header(headers, name) {
            Some(value) => header_answer(test, &value),
            None => Answer::Next,
        },
        Test::Cookie {
            name,
            test: CookieTest::AlwaysNever,
        } => seen::cookie(headers, name).map_or(Answer::Next, always_never),
    }
}

fn header_answer(test: &HeaderTest, value: &[u8]) -> Answer {
    let canary = match test {
        HeaderTest::AlwaysNever => return always_never(value),
        HeaderTest::Value(wanted) => wanted.as_bytes() == value,
        HeaderTest::Pattern(pattern) => pattern.is_match(value),
        HeaderTest::Invalid => false,
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
