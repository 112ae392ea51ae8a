//! Choosing an Endpoint of a Backend: round robin, with regard to who refused lately.

use std::net::SocketAddr;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::aim::Rings;
use super::load::Loads;
use super::{Health, Tick};
use crate::model::{Backend, BackendKey, Endpoint, EndpointState, Snapshot};

/// How far round robin has come in one Backend. Kept by address, so that it goes on where it was
/// when Endpoints come and go.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    last: Option<SocketAddr>,
    start: u32,
}

impl Rotation {
    /// Begins anywhere: many workers that begin at the same Endpoint would overload it.
    pub fn new(rng: &mut fastrand::Rng) -> Self {
        Rotation {
            last: None,
            start: rng.u32(..),
        }
    }

    /// The index of the Endpoint whose turn it is.
    fn next(&self, endpoints: &[Endpoint]) -> usize {
        match self.last {
            Some(last) => endpoints.partition_point(|endpoint| endpoint.addr <= last),
            None => self.start as usize % endpoints.len().max(1),
        }
    }
}

/// The next Endpoint of `backend` for a request that was already tried at `excluded`.
///
/// In order of preference: ready and not ejected, draining and not ejected, ready, draining. So an
/// Endpoint that is shutting down is used only when none that is ready can be, and ejected ones only
/// when there is nothing else. Within one of these groups requests are spread exactly evenly.
///
/// `None` when each Endpoint is excluded, or there is none. Does not allocate.
pub fn pick(
    backend: &Backend,
    rotation: &mut Rotation,
    health: &Health,
    excluded: &[SocketAddr],
    now: Tick,
) -> Option<Endpoint> {
    let (before, after) = backend
        .endpoints
        .split_at_checked(rotation.next(&backend.endpoints))?;
    let mut best: Option<(u8, Endpoint)> = None;
    for endpoint in after.iter().chain(before) {
        if excluded.contains(&endpoint.addr) {
            continue;
        }
        let rank = rank(endpoint, health.is_ejected(endpoint.addr, now));
        if best.is_none_or(|(lowest, _)| rank < lowest) {
            best = Some((rank, *endpoint));
        }
        if rank == 0 {
            break;
        }
    }
    let (_, endpoint) = best?;
    rotation.last = Some(endpoint.addr);
    Some(endpoint)
}

fn rank(endpoint: &Endpoint, ejected: bool) -> u8 {
    match (endpoint.state, ejected) {
        (EndpointState::Ready, false) => 0,
        (EndpointState::Draining, false) => 1,
        (EndpointState::Ready, true) => 2,
        (EndpointState::Draining, true) => 3,
    }
}

/// One worker's state of all Backends, kept across Snapshots.
pub struct Picker {
    rotations: HashMap<BackendKey, Rotation, RandomState>,
    pub(super) rings: Rings,
    pub(super) loads: Loads,
    pub(super) health: Health,
    pub(super) rng: fastrand::Rng,
}

impl Picker {
    /// Nothing was picked yet. `rng` must differ between workers.
    pub fn new(rng: fastrand::Rng) -> Self {
        Picker {
            rotations: HashMap::default(),
            rings: Rings::default(),
            loads: Loads::default(),
            health: Health::new(),
            rng,
        }
    }

    /// [`pick`] with the state of this Backend. Allocates for the first request of a Backend only.
    pub fn pick(
        &mut self,
        backend: &Backend,
        excluded: &[SocketAddr],
        now: Tick,
    ) -> Option<Endpoint> {
        let rotation = match self.rotations.get_mut(&backend.key) {
            Some(rotation) => rotation,
            None => {
                let rotation = Rotation::new(&mut self.rng);
                self.rotations
                    .entry(backend.key.clone())
                    .or_insert(rotation)
            }
        };
        pick(backend, rotation, &self.health, excluded, now)
    }

    /// Who refused lately; to be told of refusals and answers.
    pub fn health(&mut self) -> &mut Health {
        &mut self.health
    }

    /// Drops what is kept of Backends that are gone. To be called for each new Snapshot; costs
    /// nothing until half of what is kept may be of no use.
    pub fn keep(&mut self, snapshot: &Snapshot) {
        self.rings.keep(snapshot);
        let backends = &snapshot.backends;
        if self.rotations.len() > 2 * backends.len() {
            self.rotations
                .retain(|key, _| backends.find_by(|backend| backend.key.cmp(key)).is_some());
        }
    }
}

#[cfg(test)]
mod tests;
