//! Rings of Endpoints as Maglev makes them (Eisenbud and others, NSDI 2016): each Endpoint has its part
//! of the ring to within one place, and when one comes or goes, few places change hands.
//!
//! A kernel program needs only the finished ring: a place is one look at an array.

/// Places of a ring: the first of these primes that has a hundred for each Endpoint, or the last. Few sizes,
/// as a ring of another size is another ring; and a small one, as most Services have few Endpoints and each
/// ring takes memory of the kernel.
pub const SIZES: [u32; 3] = [509, 4093, 65_521];

/// What holds a place of an Endpoint's order on the ring.
struct Turn {
    /// Its next place, before it is known whether that is free.
    next: u32,
    step: u32,
    /// What it has saved of its weight, until it is enough for a place.
    saved: u64,
    weight: u64,
    /// How many places are still to become its own.
    left: u32,
}

/// A ring: by place, the number of an Endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    places: Box<[u16]>,
}

impl Ring {
    /// Makes the ring of Endpoints, given by a hash of their name and their weight. The same ones in the
    /// same order give the same ring on every node. Those without weight have no place; nor have those
    /// past the 65,536th.
    pub fn of(endpoints: &[(u64, u32)]) -> Self {
        let used = endpoints.iter().filter(|(_, weight)| *weight > 0).count();
        if used == 0 {
            return Ring::default();
        }
        let fits = SIZES.into_iter().find(|size| used <= *size as usize / 100);
        let [.., largest] = SIZES;
        Self::with_size(endpoints, fits.unwrap_or(largest))
    }

    /// A ring of `size` places, which must be a prime above 2, so that each order meets every place.
    fn with_size(endpoints: &[(u64, u32)], size: u32) -> Self {
        const FREE: u32 = u32::MAX;
        let mut turns: Vec<Turn> = endpoints
            .iter()
            .take(usize::from(u16::MAX) + 1)
            .map(|(name, weight)| turn(*name, *weight, size))
            .collect();
        apportion(&mut turns, size);
        // In each round everybody saves his weight, and pays the largest weight for a place: so also
        // small weights get their part.
        let price = turns.iter().map(|it| it.weight).max().unwrap_or(0);
        if price == 0 {
            return Ring::default();
        }
        let mut places = vec![FREE; size as usize];
        let mut free = size;
        'rounds: loop {
            for (number, turn) in (0..).zip(&mut turns) {
                turn.saved += turn.weight;
                if turn.saved < price || turn.left == 0 {
                    continue;
                }
                turn.saved -= price;
                turn.left -= 1;
                if let Some(place) = next_free(turn, size, &places, FREE)
                    && let Some(place) = places.get_mut(place as usize)
                {
                    *place = number;
                    free -= 1;
                }
                if free == 0 {
                    break 'rounds;
                }
            }
        }
        Ring {
            places: places.into_iter().map(|it| it as u16).collect(),
        }
    }

    /// How many places there are; 0 without an Endpoint.
    pub fn len(&self) -> u32 {
        self.places.len() as u32
    }

    /// Whether there is no Endpoint on it.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The numbers of Endpoints by place.
    pub fn places(&self) -> &[u16] {
        &self.places
    }

    /// The numbers of Endpoints from a place on, each as often as it is met: the first is whose place it
    /// is, the next ones stand in for it.
    pub fn from(&self, place: u32) -> impl Iterator<Item = usize> + '_ {
        let at = (place as usize).min(self.places.len());
        let (before, after) = self.places.split_at(at);
        after.iter().chain(before).map(|it| usize::from(*it))
    }
}

fn turn(name: u64, weight: u32, size: u32) -> Turn {
    let (low, high) = (name & 0xffff_ffff, name >> 32);
    Turn {
        next: (low % u64::from(size)) as u32,
        step: (high % u64::from(size - 1)) as u32 + 1,
        saved: 0,
        weight: u64::from(weight),
        left: 0,
    }
}

/// Says how many of `size` places each is to have: its part in whole places, and the places that are
/// left over for those whose parts were cut the most. The rounds alone would let what is cut of many
/// small parts add up in a large one.
fn apportion(turns: &mut [Turn], size: u32) {
    let total: u64 = turns.iter().map(|it| it.weight).sum();
    let mut cut = Vec::with_capacity(turns.len());
    let mut over = size;
    for (number, turn) in turns.iter_mut().enumerate() {
        let part = turn.weight * u64::from(size);
        turn.left = part.checked_div(total).unwrap_or(0) as u32;
        over -= turn.left;
        cut.push((part.checked_rem(total).unwrap_or(0), number));
    }
    // The largest first; of equal ones the first.
    cut.sort_by_key(|(rest, number)| (std::cmp::Reverse(*rest), *number));
    for (_, number) in cut.into_iter().take(over as usize) {
        if let Some(turn) = turns.get_mut(number) {
            turn.left += 1;
        }
    }
}

fn next_free(turn: &mut Turn, size: u32, places: &[u32], free: u32) -> Option<u32> {
    for _ in 0..size {
        let place = turn.next;
        turn.next = (place + turn.step) % size;
        if places.get(place as usize) == Some(&free) {
            return Some(place);
        }
    }
    None
}

#[cfg(test)]
#[path = "maglev_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
