//! What a Split has beside Variants, weights and rules.

use std::sync::Arc;

use super::attach::Attached;
use super::mains::Draft;
use super::policy::affinity;
use super::report::Problems;
use crate::model::keyed::{Keyed, Purpose};
use crate::model::{Affinity, BackendKey, Balance, Mirror, Side, SplitKey, SplitPolicy};

/// The policy of one Location's Split.
pub(super) fn of(draft: &Draft<'_>, problems: &mut Problems) -> SplitPolicy {
    let wish = &draft.wish;
    let canaries = || draft.canaries.iter().map(|it| &it.canary.own);
    let response_header = canaries().find_map(|own| own.response_header.clone());
    let mirrors = (1..).zip(canaries()).filter_map(|(variant, own)| {
        let per_million = own.mirror?;
        Some(Mirror {
            variant,
            per_million,
        })
    });
    SplitPolicy {
        affinity: wish.affinity.as_ref().map(|wish| affinity(draft, wish)),
        key: key(draft, problems),
        balances: balances(draft),
        response_header: wish.response_header.clone().or(response_header),
        mirrors: mirrors.collect(),
    }
}

/// The key of the oldest canary that has one: a request has one place on the line of the weights.
fn key(draft: &Draft<'_>, problems: &mut Problems) -> Option<SplitKey> {
    let keyed = |it: &Attached<'_>| it.canary.own.key.clone();
    let first = draft.canaries.iter().find_map(keyed)?;
    for it in &draft.canaries {
        if keyed(it).is_some_and(|key| key != first) {
            problems.warn(
                &it.view.subject,
                it.place.to_string(),
                "hash-by-differs",
                format!(
                    "an older canary of {} has another canary-hash-by",
                    draft.key
                ),
                "the older one's counts for both there",
            );
        }
    }
    Some(first)
}

/// By Variant: what the canary says, else what the main Ingress says. Nothing when all are in turn.
fn balances(draft: &Draft<'_>) -> Vec<Balance> {
    let main = draft.wish.balance.clone().unwrap_or_default();
    let canaries = draft.canaries.iter().map(|it| {
        let own = it.canary.balance.clone();
        own.unwrap_or_else(|| main.clone())
    });
    let all: Vec<Balance> = [main.clone()].into_iter().chain(canaries).collect();
    match all.iter().all(|it| *it == Balance::RoundRobin) {
        true => Vec::new(),
        false => all,
    }
}

fn affinity(draft: &Draft<'_>, wish: &affinity::Wish) -> Affinity {
    let path = wish.cookie.path.as_ref().unwrap_or(&draft.key.path);
    let mut sides = vec![Side {
        tag: tag(&draft.stable.key, 0),
        sticky: true,
    }];
    for (index, it) in draft.canaries.iter().enumerate() {
        let older = draft.canaries.get(..index).unwrap_or_default();
        let alike = older
            .iter()
            .filter(|older| older.target.key == it.target.key);
        sides.push(Side {
            tag: tag(&it.target.key, alike.count()),
            sticky: !it.canary.legacy,
        });
    }
    Affinity {
        mode: wish.mode,
        cookie: Arc::clone(&wish.cookie),
        path: Arc::clone(path),
        sides,
    }
}

/// Names a Variant by its Service port, so that clients stay when a canary becomes stable. `nth`
/// tells canaries of one Location on one Service port apart.
fn tag(key: &BackendKey, nth: usize) -> u64 {
    let mut hash = Keyed::new(Purpose::Variant);
    for part in [&key.namespace, &key.service, &key.port] {
        hash.add(part.as_bytes());
    }
    hash.add(&(nth as u64).to_le_bytes());
    hash.finish()
}
