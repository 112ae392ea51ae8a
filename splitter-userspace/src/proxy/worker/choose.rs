//! Where a request belongs, and who answers it.

use std::sync::Arc;

use http::request;

use super::{Place, Worker};
use crate::model::{Backend, Location, LocationId};
use crate::proxy::fault::Fault;
use crate::proxy::journal::Journal;
use crate::routing::{Aim, Decision, Found, Live, Shown, SlotId, decide, held, normalize, resolve};

/// Who is to answer.
pub struct Chosen {
    /// The Variant, and why.
    pub decision: Decision,
    /// How its Endpoint is chosen.
    pub aim: Aim,
    /// The Variant's Backend.
    pub backend: Option<Arc<Backend>>,
}

impl Worker {
    /// Finds the Location of a request and notes it in `journal`.
    ///
    /// # Errors
    /// The fault to answer with.
    pub fn find(&self, host: &str, path: &str, journal: &mut Journal) -> Result<Place, Fault> {
        let current = journal.current().clone();
        let live = &current.live;
        let host = normalize(host).ok_or(Fault::BadHost)?;
        let id = match live.router.find(&host, path) {
            Found::Location(id) => id,
            Found::Ambiguous => return Err(Fault::AmbiguousPath),
            Found::NoHost | Found::NoPath(_) => return Err(Fault::NoLocation),
        };
        journal.location = Some(id);
        Ok(Place { current, id })
    }

    /// Chooses the Variant that answers a request at `place`; notes it in `journal`.
    ///
    /// # Errors
    /// The fault to answer with.
    pub fn choose(
        &self,
        place: &Place,
        host: &str,
        parts: &request::Parts,
        journal: &mut Journal,
    ) -> Result<Arc<Backend>, Fault> {
        let live = &place.current.live;
        let location = place.location().ok_or(Fault::NoLocation)?;
        let split = &location.split;
        let affinity = split.affinity();
        // Only some of what follows from a policy of the Split looks at it.
        let host = split.policy.as_ref().and_then(|_| normalize(host));
        let host = host.as_deref().unwrap_or_default();
        let shown = Shown {
            headers: &parts.headers,
            method: parts.method.as_str(),
            host,
            path: parts.uri.path(),
            query: parts.uri.query().unwrap_or_default(),
            client: journal.caller(),
            held: affinity.and_then(|affinity| held(affinity, &parts.headers)),
        };
        let chosen = self.choose_by(live, place.id, location, &shown)?;
        journal.decision = Some(chosen.decision);
        if split.policy.is_some() {
            journal.aim = chosen.aim;
        }
        chosen.backend.ok_or(Fault::NoEndpoint)
    }

    /// Chooses the Variant that answers whoever shows this, at a Location.
    ///
    /// # Errors
    /// When no Variant has an Endpoint.
    pub fn choose_by(
        &self,
        live: &Live,
        id: LocationId,
        location: &Location,
        shown: &Shown<'_>,
    ) -> Result<Chosen, Fault> {
        let split = &location.split;
        let slot = live.slot(id).unwrap_or(SlotId::NONE);
        let weights = self.weights.weights(slot);
        let mut blocks = self.blocks.borrow_mut();
        let mut draw = blocks.slot(slot, &weights);
        let decision = decide(split, shown, &weights, &mut draw);
        let resolved =
            resolve(&live.snapshot, location, decision).map_err(|_| Fault::NoEndpoint)?;
        let decision = resolved.decision;
        self.weights.count(slot, decision.variant);
        let policy = split.policy.as_ref();
        Ok(Chosen {
            decision,
            aim: policy.map_or_else(Aim::default, |it| Aim::of(it, decision.variant, shown)),
            backend: live.snapshot.backend(resolved.backend).cloned(),
        })
    }
}
