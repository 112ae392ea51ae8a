//! Token buckets in one number.

use splitter_common::Limit;

/// The memory of one bucket, shared by all CPUs.
pub trait Bucket {
    /// When it is full again, in nanoseconds of the monotonic clock.
    fn full_at(&self) -> u64;
    /// Starts it anew.
    fn set(&self, full_at: u64);
    /// Moves that time on; not lost when several CPUs do it at once.
    fn advance(&self, by: u64);
}

/// Takes one token; false when there is none left.
///
/// The bucket is the moment at which it would be full again: each token moves it 1/rate seconds
/// on, and no token is left when that moment is further than the whole burst away. A bucket that
/// two CPUs find full at once may give one token too many.
#[inline(always)]
pub fn take(bucket: &impl Bucket, limit: Limit, now: u64) -> bool {
    if limit.rate == 0 {
        return true;
    }
    let token = (1_000_000_000 / limit.rate).max(1);
    let depth = u64::from(token) * u64::from(limit.burst.max(1));
    let full_at = bucket.full_at();
    if full_at <= now {
        bucket.set(now + u64::from(token));
        return true;
    }
    if full_at - now + u64::from(token) > depth {
        return false;
    }
    bucket.advance(u64::from(token));
    true
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::cell::Cell;

    use super::*;

    struct One(Cell<u64>);

    impl Bucket for One {
        fn full_at(&self) -> u64 {
            self.0.get()
        }
        fn set(&self, full_at: u64) {
            self.0.set(full_at);
        }
        fn advance(&self, by: u64) {
            self.0.set(self.0.get() + by);
        }
    }

    const SECOND: u64 = 1_000_000_000;

    fn taken(bucket: &One, limit: Limit, now: u64, tries: u32) -> u32 {
        (0..tries)
            .map(|_| u32::from(take(bucket, limit, now)))
            .sum()
    }

    #[test]
    fn a_burst_then_the_rate() {
        let bucket = One(Cell::new(0));
        let limit = Limit {
            rate: 100,
            burst: 10,
        };
        assert_eq!(taken(&bucket, limit, 5 * SECOND, 1000), 10);
        assert_eq!(taken(&bucket, limit, 5 * SECOND + SECOND / 20, 1000), 5);
        // A long pause fills it to the burst and not beyond.
        assert_eq!(taken(&bucket, limit, 50 * SECOND, 1000), 10);
    }

    #[test]
    fn no_rate_is_no_limit() {
        let bucket = One(Cell::new(u64::MAX));
        assert_eq!(taken(&bucket, Limit::default(), 0, 100), 100);
    }

    #[test]
    fn a_limit_without_burst_gives_one_at_a_time() {
        let bucket = One(Cell::new(0));
        let limit = Limit { rate: 1, burst: 0 };
        assert_eq!(taken(&bucket, limit, SECOND, 5), 1);
        assert_eq!(taken(&bucket, limit, 2 * SECOND, 5), 1);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let bucket = One(Cell::new(0));
        let limit = Limit {
            rate: u32::MAX,
            burst: u32::MAX,
        };
        assert!(take(&bucket, limit, u64::MAX / 2));
        assert!(take(&bucket, limit, u64::MAX / 2));
    }
}
