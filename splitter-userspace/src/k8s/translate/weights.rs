//! Weights of the canaries of one Location on a common scale.

use super::canary_weight::{DEFAULT_TOTAL, MAX_TOTAL, scale};

/// One canary's wish: `weight` out of `total`, weight at most total.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    pub weight: u32,
    pub total: u32,
}

/// What a Location's Variants get.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Common {
    /// The stable Variant's part.
    pub stable: u32,
    /// The canaries' parts, as many as shares.
    pub canaries: Vec<u32>,
    /// Canaries that get less than they ask for as older ones took the rest, and what they ask
    /// for.
    pub cut: Vec<(usize, u32)>,
    /// Canaries whose share cannot be written exactly on the common scale.
    pub rounded: Vec<usize>,
    /// The sum of all parts.
    pub total: u32,
}

/// Brings the shares, oldest canary first, to one total: the least common multiple of the totals of
/// those that have a weight, as long as it is at most [`MAX_TOTAL`]. What is left is stable's.
pub(super) fn common(shares: &[Share]) -> Common {
    let (total, exact) = common_total(shares);
    let mut left = total;
    let mut common = Common {
        stable: 0,
        canaries: Vec::new(),
        cut: Vec::new(),
        rounded: Vec::new(),
        total,
    };
    for (index, share) in shares.iter().enumerate() {
        let wanted = scale(u64::from(share.weight), u64::from(share.total), total);
        if !exact.get(index).copied().unwrap_or(true) {
            common.rounded.push(index);
        }
        if wanted > left {
            common.cut.push((index, wanted));
        }
        let given = wanted.min(left);
        left -= given;
        common.canaries.push(given);
    }
    common.stable = left;
    common
}

/// The total, and for each share whether it divides it.
fn common_total(shares: &[Share]) -> (u32, Vec<bool>) {
    let oldest = shares.first().map_or(DEFAULT_TOTAL, |share| share.total);
    let mut total: Option<u32> = None;
    let exact = shares.iter().map(|share| {
        if share.weight == 0 {
            // Nothing of any total is nothing.
            return true;
        }
        match lcm(total.unwrap_or(1), share.total) {
            Some(common) => total = Some(common),
            None => return false,
        }
        true
    });
    let exact = exact.collect();
    (total.unwrap_or(oldest), exact)
}

fn lcm(a: u32, b: u32) -> Option<u32> {
    let lcm = u64::from(a) / u64::from(gcd(a, b)).max(1) * u64::from(b);
    u32::try_from(lcm).ok().filter(|lcm| *lcm <= MAX_TOTAL)
}

fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
