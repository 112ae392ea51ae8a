use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::client::Client;
use super::manifests::{API_WEIGHT, CANARY, HOST, NEW_WEIGHT, OTHER_HOST, STABLE, WEIGHT};

/// How many requests show a share. A multiple of 100, over which shares are exact.
const FOR_A_SHARE: u32 = 1000;
/// How many show a rule.
const FOR_A_RULE: u32 = 100;

/// Equal requests, and the share of them that must reach the canary.
pub(super) struct Case {
    pub(super) host: &'static str,
    pub(super) path: &'static str,
    pub(super) fields: &'static [(&'static str, &'static str)],
    pub(super) requests: u32,
    /// In percent.
    pub(super) share: u32,
}

/// How many were answered by each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) stable: u32,
    pub(super) canary: u32,
}

/// Everything seen so far, by host and path.
pub(super) type Totals = BTreeMap<(&'static str, &'static str), Seen>;

impl Case {
    const fn share(host: &'static str, path: &'static str, share: u32) -> Self {
        Case {
            host,
            path,
            fields: &[],
            requests: FOR_A_SHARE,
            share,
        }
    }

    const fn rule(path: &'static str, fields: &'static [(&str, &str)], share: u32) -> Self {
        let chance = share != 0 && share != 100;
        Case {
            host: HOST,
            path,
            fields,
            requests: if chance { FOR_A_SHARE } else { FOR_A_RULE },
            share,
        }
    }

    /// Sends the requests, one after the other, and counts who answers.
    pub(super) fn run(&self, client: &mut Client, totals: &mut Totals) -> Result<Seen> {
        let mut seen = Seen::default();
        for _ in 0..self.requests {
            match client.get(self.host, self.path, self.fields)?.as_str() {
                STABLE => seen.stable += 1,
                CANARY => seen.canary += 1,
                other => bail!("{}{} was answered by {other:?}", self.host, self.path),
            }
        }
        let total = totals.entry((self.host, self.path)).or_default();
        total.stable += seen.stable;
        total.canary += seen.canary;
        Ok(seen)
    }

    /// Whether it is the share that was wanted, to the request.
    pub(super) fn holds(&self, seen: Seen) -> bool {
        seen.canary * 100 == self.requests * self.share
    }
}

/// Shares by weight, without any rule.
pub(super) const SHARES: [Case; 3] = [
    Case::share(HOST, "/", WEIGHT),
    Case::share(HOST, "/api", API_WEIGHT),
    Case::share(OTHER_HOST, "/", 0),
];

/// The first of [`SHARES`] after the change of its weight.
pub(super) const CHANGED: Case = Case::share(HOST, "/", NEW_WEIGHT);

/// Headers and cookies.
pub(super) const RULES: [Case; 10] = [
    Case::rule("/", &[("X-Canary", "always")], 100),
    Case::rule("/", &[("X-Canary", "never")], 0),
    Case::rule("/", &[("X-Canary", "maybe")], WEIGHT),
    Case::rule("/", &[("Cookie", "canary=always")], 100),
    Case::rule("/", &[("Cookie", "canary=never")], 0),
    Case::rule(
        "/",
        &[("X-Canary", "never"), ("Cookie", "canary=always")],
        0,
    ),
    Case::rule("/beta", &[("X-Group", "testers")], 100),
    Case::rule("/beta", &[("X-Group", "staff")], 0),
    Case::rule("/api", &[("X-Canary", "always")], API_WEIGHT),
    Case {
        host: OTHER_HOST,
        ..Case::rule("/", &[("X-Canary", "always")], 0)
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_holds_only_to_the_request() {
        let [case, ..] = SHARES;
        let seen = |canary| Seen {
            stable: case.requests - canary,
            canary,
        };
        assert!(case.holds(seen(200)));
        assert!(!case.holds(seen(199)));
        assert!(!case.holds(seen(201)));
    }

    #[test]
    fn every_case_expects_whole_requests() {
        for case in SHARES.iter().chain(&RULES).chain([&CHANGED]) {
            assert_eq!(
                case.requests * case.share % 100,
                0,
                "{}{}",
                case.host,
                case.path
            );
        }
    }
}
