//! What a Split has beside Variants, weights and rules.

use std::sync::Arc;

use super::mains::Draft;
use super::policy::affinity;
use crate::model::keyed::{Keyed, Purpose};
use crate::model::{Affinity, BackendKey, Side, SplitPolicy};

/// The policy of one Location's Split.
pub(super) fn of(draft: &Draft<'_>) -> SplitPolicy {
    let wish = &draft.wish;
    SplitPolicy {
        affinity: wish.affinity.as_ref().map(|wish| affinity(draft, wish)),
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
