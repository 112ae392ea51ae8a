use serde::Serialize;

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
