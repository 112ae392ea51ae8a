//! Choosing an Endpoint with regard to the request: by its session, by a hash key, by speed.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use super::pick::Picker;
use super::ring::Ring;
use super::{Health, Shown, Tick, alike};
use crate::model::keyed::endpoint_token;
use crate::model::{
    AffinityMode, Backend, BackendKey, Balance, Endpoint, EndpointState, Snapshot, SplitPolicy,
};

/// How often chance is asked for a key whose Endpoint can be used.
const TRIES: usize = 20;

/// The most Endpoints that share a hash key.
const SHARERS_MAX: usize = 64;

/// How the Endpoint for one request is chosen, and what comes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aim {
    /// Whose turn it is.
    #[default]
    Turn,
    /// The faster of two.
    Faster,
    /// The one of a hash key, or one of so many that share it.
    Key(u64, Option<NonZeroU16>),
    /// The one of the client's session.
    Session(Session),
}

impl Aim {
    /// For a request that this Variant answers.
    pub fn of(policy: &SplitPolicy, variant: usize, shown: &Shown<'_>) -> Self {
        match &policy.affinity {
            Some(affinity) if affinity.is_sticky(variant) => {
                let held = shown.held.filter(|held| held.variant == variant);
                Aim::Session(Session {
                    mode: affinity.mode,
                    change_on_failure: affinity.cookie.change_on_failure,
                    held: held.map(|held| held.key),
                    issue: None,
                })
            }
            _ => match policy.balances.get(variant) {
                None | Some(Balance::RoundRobin) => Aim::Turn,
                Some(Balance::Ewma) => Aim::Faster,
                Some(Balance::Hash(by)) => {
                    alike::key(by, shown).map_or(Aim::Turn, |key| Aim::Key(key, by.subset))
                }
            },
        }
    }
}

/// A client's session with one Variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// How its Endpoint is kept.
    pub mode: AffinityMode,
    /// Whether it goes on elsewhere, with a new cookie, when its Endpoint fails.
    pub change_on_failure: bool,
    /// The Endpoint that the client's cookie names, if it names one of this Variant.
    pub held: Option<u64>,
    /// What the client's cookie is to name from now on, if it changes.
    pub issue: Option<u64>,
}

/// One worker's rings, by Backend.
#[derive(Default)]
pub(super) struct Rings(hashbrown::HashMap<BackendKey, Entry, foldhash::fast::RandomState>);

struct Entry {
    /// What the ring was made of.
    of: Arc<Backend>,
    ring: Ring,
}

impl Rings {
    /// The ring of a Backend. Made at its first request, and again when its Endpoints changed.
    fn get(&mut self, backend: &Arc<Backend>) -> &Ring {
        let entry = self.0.entry(backend.key.clone()).or_insert_with(|| Entry {
            of: Arc::clone(backend),
            ring: Ring::of(backend),
        });
        if !Arc::ptr_eq(&entry.of, backend) {
            if entry.of.endpoints != backend.endpoints {
                entry.ring = Ring::of(backend);
            }
            entry.of = Arc::clone(backend);
        }
        &entry.ring
    }

    /// Drops the rings of Backends that are gone.
    pub(super) fn keep(&mut self, snapshot: &Snapshot) {
        let backends = &snapshot.backends;
        self.0
            .retain(|key, _| backends.find_by(|backend| backend.key.cmp(key)).is_some());
    }
}

/// Which Endpoints of a Backend can be used now for one request.
struct Usable<'a> {
    backend: &'a Backend,
    health: &'a Health,
    excluded: &'a [SocketAddr],
    now: Tick,
}

impl Usable<'_> {
    fn get(&self, index: usize) -> Option<Endpoint> {
        let endpoint = self.backend.endpoints.get(index)?;
        let addr = endpoint.addr;
        let usable = !self.excluded.contains(&addr) && !self.health.is_ejected(addr, self.now);
        usable.then_some(*endpoint)
    }

    /// The key's own Endpoint, or the next on the ring that can be used.
    fn nearest(&self, ring: &Ring, key: u64) -> Option<Endpoint> {
        ring.from(key).find_map(|index| self.get(index))
    }
}

impl Picker {
    /// The Endpoint of `backend` for a request that was already tried at `excluded`, chosen as
    /// `aim` says; what comes of it is noted there. Where the aim leads nowhere it is whose turn it
    /// is. Allocates when a ring has to be made: see [`Rings::get`].
    pub fn aimed(
        &mut self,
        backend: &Arc<Backend>,
        aim: &mut Aim,
        excluded: &[SocketAddr],
        now: Tick,
    ) -> Option<Endpoint> {
        let aimed = match aim {
            Aim::Turn => None,
            Aim::Faster => self.faster(backend, excluded, now),
            Aim::Key(key, subset) => self.alike(backend, *key, *subset, excluded, now),
            Aim::Session(session) => match session.mode {
                AffinityMode::Persistent => self.persistent(backend, session, excluded, now),
                AffinityMode::Balanced => self.balanced(backend, session, excluded, now),
            },
        };
        aimed.or_else(|| self.pick(backend, excluded, now))
    }

    /// An Endpoint has answered after this time; `now` is on any clock that does not go back.
    pub fn answered_after(&mut self, addr: SocketAddr, took: Duration, now: Duration) {
        self.loads.answered(addr, took, now);
    }

    /// The faster of two Endpoints that chance chooses.
    fn faster(
        &mut self,
        backend: &Backend,
        excluded: &[SocketAddr],
        now: Tick,
    ) -> Option<Endpoint> {
        let usable = Usable {
            backend,
            health: &self.health,
            excluded,
            now,
        };
        let ready = |endpoint: &Endpoint| endpoint.state == EndpointState::Ready;
        let (mut one, count) = (None::<Endpoint>, backend.endpoints.len());
        for _ in 0..TRIES {
            let index = self.rng.usize(..count.max(1));
            match (usable.get(index).filter(ready), one) {
                (Some(other), Some(one)) if other != one => {
                    let now = Duration::from_millis(now.0);
                    let better = self.loads.better(one.addr, other.addr, now);
                    return Some(if better == Some(other.addr) {
                        other
                    } else {
                        one
                    });
                }
                (Some(other), None) => one = Some(other),
                _ => {}
            }
        }
        one
    }

    /// The Endpoint of a key, or one of the `subset` that share it: any of them that can be used.
    fn alike(
        &mut self,
        backend: &Arc<Backend>,
        key: u64,
        subset: Option<NonZeroU16>,
        excluded: &[SocketAddr],
        now: Tick,
    ) -> Option<Endpoint> {
        let ring = self.rings.get(backend);
        let usable = Usable {
            backend,
            health: &self.health,
            excluded,
            now,
        };
        let size = usize::from(subset.map_or(1, NonZeroU16::get)).min(ring.len());
        if size > 1 {
            let mut sharers = [usize::MAX; SHARERS_MAX];
            let sharers = sharers.get_mut(..size)?;
            let found = ring.first(key, sharers);
            let turn = self.rng.usize(..found.max(1));
            let (before, after) = sharers.get(..found)?.split_at_checked(turn)?;
            let found = after
                .iter()
                .chain(before)
                .find_map(|index| usable.get(*index));
            if found.is_some() {
                return found;
            }
        }
        usable.nearest(ring, key)
    }

    /// The Endpoint that the cookie names; whose turn it is when that cannot be used.
    fn persistent(
        &mut self,
        backend: &Arc<Backend>,
        session: &mut Session,
        excluded: &[SocketAddr],
        now: Tick,
    ) -> Option<Endpoint> {
        let ring = self.rings.get(backend);
        let known = session.held.and_then(|token| ring.named(token));
        let usable = Usable {
            backend,
            health: &self.health,
            excluded,
            now,
        };
        if let Some(endpoint) = known.and_then(|index| usable.get(index)) {
            return Some(endpoint);
        }
        let endpoint = self.pick(backend, excluded, now)?;
        if known.is_none() || session.change_on_failure {
            session.issue = Some(endpoint_token(endpoint.addr));
        }
        Some(endpoint)
    }

    /// The Endpoint of the cookie's key on the ring, or one near it; of a new key when there is
    /// none.
    fn balanced(
        &mut self,
        backend: &Arc<Backend>,
        session: &mut Session,
        excluded: &[SocketAddr],
        now: Tick,
    ) -> Option<Endpoint> {
        let ring = self.rings.get(backend);
        let usable = Usable {
            backend,
            health: &self.health,
            excluded,
            now,
        };
        let own = |key| ring.from(key).next().and_then(|index| usable.get(index));
        if let Some(key) = session.held {
            let found = own(key);
            if found.is_some() || !session.change_on_failure {
                return found.or_else(|| usable.nearest(ring, key));
            }
        }
        let mut key = self.rng.u64(..);
        for _ in 1..TRIES {
            if own(key).is_some() {
                break;
            }
            key = self.rng.u64(..);
        }
        session.issue = Some(key);
        usable.nearest(ring, key)
    }
}

#[cfg(test)]
mod tests;
