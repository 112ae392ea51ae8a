use super::{Decision, Reason};
use crate::model::{BackendId, Location, STABLE, Snapshot};

/// Who answers a request in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The decision, changed if the canary it named has no Endpoint.
    pub decision: Decision,
    /// The Backend of that Variant. It has at least one Endpoint.
    pub backend: BackendId,
}

/// Neither the chosen Variant nor one that may stand in for it has an Endpoint: the answer is 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEndpoint {
    /// The decision, as it was made.
    pub decision: Decision,
    /// The Backend of the chosen Variant, which may say why ([`crate::model::Backend::fault`]).
    pub backend: Option<BackendId>,
}

/// The Backend for a decision, with regard to who has Endpoints.
///
/// A canary answers whether or not stable has Endpoints. Stable answers for a canary without any,
/// and the reason becomes [`Reason::CanaryUnavailable`].
///
/// # Errors
/// When stable was chosen and has no Endpoint (a canary never stands in for stable), or when
/// neither the chosen canary nor stable has one.
pub fn resolve(
    snapshot: &Snapshot,
    location: &Location,
    decision: Decision,
) -> Result<Chosen, NoEndpoint> {
    let backend = |variant: usize| location.split.variants.get(variant).map(|v| v.backend);
    let available = |id: &BackendId| {
        let backend = snapshot.backend(*id);
        backend.is_some_and(|backend| backend.is_available())
    };
    if let Some(backend) = backend(decision.variant).filter(available) {
        return Ok(Chosen { decision, backend });
    }
    if decision.variant != STABLE
        && let Some(backend) = backend(STABLE).filter(available)
    {
        let decision = Decision {
            variant: STABLE,
            reason: Reason::CanaryUnavailable,
        };
        return Ok(Chosen { decision, backend });
    }
    Err(NoEndpoint {
        decision,
        backend: backend(decision.variant),
    })
}

#[cfg(test)]
mod tests;
