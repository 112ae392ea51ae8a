use serde::Serialize;

use super::Affinity;

/// What a Split has beside Variants, weights and rules. Most have nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SplitPolicy {
    /// Keeps clients where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
}

impl SplitPolicy {
    /// Behind a pointer; none when it says nothing.
    pub fn into_shared(self) -> Option<std::sync::Arc<SplitPolicy>> {
        (self != SplitPolicy::default()).then(|| std::sync::Arc::new(self))
    }
}
