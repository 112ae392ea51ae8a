//! Consistent hashing: a key always finds the same Endpoint, and when Endpoints come or go only the
//! keys of those move.

use crate::model::keyed::endpoint_token;
use crate::model::{Backend, Endpoint, EndpointState};

/// Points that each Endpoint has on the ring, while there is room.
const POINTS: usize = 160;

/// The most points of a ring; with more Endpoints each has fewer. 16 bytes each.
const MAX_POINTS: usize = 65_536;

/// The Endpoints of one Backend by hash: the ready ones, or the draining ones when none is.
pub(super) struct Ring {
    /// Sorted; the second is an index into the Backend's Endpoints.
    points: Vec<(u64, u32)>,
    /// The same Endpoints by their token, sorted.
    tokens: Vec<(u64, u32)>,
}

impl Ring {
    pub(super) fn of(backend: &Backend) -> Self {
        let ready = |endpoint: &Endpoint| endpoint.state == EndpointState::Ready;
        let any_ready = backend.endpoints.iter().any(ready);
        let used = (0u32..)
            .zip(&backend.endpoints)
            .filter(|(_, endpoint)| ready(endpoint) == any_ready);
        let mut tokens: Vec<(u64, u32)> = used
            .map(|(index, endpoint)| (endpoint_token(endpoint.addr), index))
            .collect();
        tokens.sort_unstable();
        let each = (MAX_POINTS / tokens.len().max(1)).clamp(1, POINTS) as u64;
        let mut points: Vec<(u64, u32)> = tokens
            .iter()
            .flat_map(|(token, index)| (0..each).map(|nth| (point(*token, nth), *index)))
            .collect();
        points.sort_unstable();
        Ring { points, tokens }
    }

    /// How many Endpoints are on it.
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The index of the Endpoint with this token.
    pub(super) fn named(&self, token: u64) -> Option<usize> {
        let place = self.tokens.binary_search_by_key(&token, |entry| entry.0);
        let (_, index) = self.tokens.get(place.ok()?)?;
        Some(*index as usize)
    }

    /// Indices of Endpoints in the order in which a key meets them, each as often as it has points.
    /// The first is the key's own; the next ones stand in for it.
    pub(super) fn from(&self, key: u64) -> impl Iterator<Item = usize> + '_ {
        let start = self.points.partition_point(|(point, _)| *point < key);
        let (before, after) = self
            .points
            .split_at_checked(start)
            .unwrap_or((&[], &self.points));
        after.iter().chain(before).map(|(_, index)| *index as usize)
    }

    /// Fills `found` with the first Endpoints that a key meets, each once, and says how many there
    /// are. Looks at no more points than that takes on average, many times over.
    pub(super) fn first(&self, key: u64, found: &mut [usize]) -> usize {
        let most = found.len() * POINTS;
        let mut count = 0;
        for index in self.from(key).take(most) {
            let known = found
                .get(..count)
                .is_some_and(|known| known.contains(&index));
            if known {
                continue;
            }
            let Some(place) = found.get_mut(count) else {
                break;
            };
            *place = index;
            count += 1;
        }
        count
    }
}

/// The finalizer of splitmix64: all bits of the result depend on all of the input.
fn point(token: u64, nth: u64) -> u64 {
    let mut hash = token.wrapping_add(nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::model::EndpointState::{Draining, Ready};
    use crate::routing::fixtures::backend;

    /// Keys spread evenly over all there are.
    fn keys() -> impl Iterator<Item = u64> {
        (0..10_000u64).map(|nth| point(7, nth))
    }

    fn of(numbers: &[u8]) -> (Backend, Ring) {
        let endpoints: Vec<_> = numbers.iter().map(|number| (*number, Ready)).collect();
        let backend = backend("app", &endpoints);
        let ring = Ring::of(&backend);
        (backend, ring)
    }

    fn owner((backend, ring): &(Backend, Ring), key: u64) -> std::net::SocketAddr {
        backend.endpoints[ring.from(key).next().unwrap()].addr
    }

    #[test]
    fn keys_are_spread() {
        let four = of(&[1, 2, 3, 4]);
        let mut counts = std::collections::BTreeMap::new();
        for key in keys() {
            *counts.entry(owner(&four, key)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 4);
        for count in counts.values() {
            assert!((1_800..3_200).contains(count), "{counts:?}");
        }
    }

    #[test]
    fn only_keys_of_what_changed_move() {
        let (four, five) = (of(&[1, 2, 3, 4]), of(&[1, 2, 3, 4, 5]));
        let newest = five.0.endpoints[4].addr;
        let moved: Vec<_> = keys()
            .filter(|key| owner(&four, *key) != owner(&five, *key))
            .collect();
        assert!((1_000..3_000).contains(&moved.len()), "{}", moved.len());
        for key in moved {
            assert_eq!(owner(&five, key), newest);
        }
    }

    #[test]
    fn endpoints_are_found_by_their_tokens() {
        let (backend, ring) = of(&[1, 2, 3]);
        for (index, endpoint) in backend.endpoints.iter().enumerate() {
            assert_eq!(ring.named(endpoint_token(endpoint.addr)), Some(index));
        }
        assert_eq!(ring.named(1), None);
    }

    #[test]
    fn draining_ones_are_used_when_there_is_nothing_else() {
        let mixed = Ring::of(&backend("app", &[(1, Draining), (2, Ready)]));
        assert!(mixed.from(0).all(|index| index == 1));
        assert_eq!(mixed.len(), 1);
        let draining = Ring::of(&backend("app", &[(1, Draining), (2, Draining)]));
        assert_eq!(draining.len(), 2);
        let none = Ring::of(&backend("app", &[]));
        assert_eq!((none.len(), none.from(5).next()), (0, None));
    }
}
