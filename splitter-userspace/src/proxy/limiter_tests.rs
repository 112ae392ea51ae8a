#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::telemetry::{ControllerLabels, LIMIT_EVICTIONS, Registry};

fn limiter(entries: usize) -> Arc<Limiter> {
    let registry = Registry::new(&ControllerLabels::default());
    Limiter::with_entries(entries, registry.counter(&LIMIT_EVICTIONS, &[]))
}

fn limits(per_second: u32, per_minute: u32, connections: u32) -> RateLimits {
    let rate = |limit: u32| {
        (limit > 0).then_some(Rate {
            limit,
            burst: limit * 5,
        })
    };
    RateLimits {
        zone: "shop/web".into(),
        per_second: rate(per_second),
        per_minute: rate(per_minute),
        connections: (connections > 0).then_some(connections),
        exempt: "10.0.0.0/8".parse().unwrap(),
        rate_status: 503,
        connections_status: 503,
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

const CLIENT: &str = "192.0.2.1";
const MS: u64 = 1_000_000;

/// How many of `n` requests at `now` get through.
fn passed(limiter: &Arc<Limiter>, limits: &RateLimits, client: &str, n: u32, now: Nanos) -> u32 {
    let enter = |_: &u32| limiter.enter(limits, ip(client), now).is_ok();
    u32::try_from((0..n).filter(enter).count()).unwrap()
}

#[test]
fn the_burst_and_one_come_at_once_and_then_one_for_each_period() {
    let (limiter, limits) = (limiter(1024), limits(2, 0, 0));
    assert_eq!(passed(&limiter, &limits, CLIENT, 100, 0), 11);
    assert_eq!(passed(&limiter, &limits, CLIENT, 9, 499 * MS), 0);
    assert_eq!(passed(&limiter, &limits, CLIENT, 9, 500 * MS), 1);
    assert_eq!(passed(&limiter, &limits, CLIENT, 9, 2000 * MS), 3);
    assert_eq!(passed(&limiter, &limits, CLIENT, 100, 60_000 * MS), 11);
}

#[test]
fn a_minute_is_sixty_seconds_and_both_limits_hold() {
    let (one, both) = (limits(0, 6, 0), limits(1, 6, 0));
    let limiter = limiter(1024);
    assert_eq!(passed(&limiter, &one, CLIENT, 100, 0), 31);
    assert_eq!(passed(&limiter, &one, CLIENT, 9, 9_999 * MS), 0);
    assert_eq!(passed(&limiter, &one, CLIENT, 9, 10_000 * MS), 1);
    // What one limit refuses is not counted by the other.
    let other = "192.0.2.2";
    assert_eq!(passed(&limiter, &both, other, 100, 0), 6);
    let mut sum = 6;
    for second in 1..=100 {
        sum += passed(&limiter, &both, other, 100, second * 1000 * MS);
    }
    assert_eq!(sum, 31 + 10, "31 at the start and 10 in 100 seconds");
}

#[test]
fn clients_zones_and_exemptions_are_apart() {
    let (limiter, web) = (limiter(1024), limits(1, 0, 0));
    let other = RateLimits {
        zone: "shop/other".into(),
        ..web.clone()
    };
    assert_eq!(passed(&limiter, &web, CLIENT, 9, 0), 6);
    assert_eq!(passed(&limiter, &web, "192.0.2.2", 9, 0), 6);
    assert_eq!(passed(&limiter, &other, CLIENT, 9, 0), 6);
    assert_eq!(passed(&limiter, &web, "::ffff:192.0.2.1", 9, 0), 0);
    assert_eq!(passed(&limiter, &web, "2001:db8:0:1::1", 9, 0), 6);
    assert_eq!(passed(&limiter, &web, "2001:db8:0:1:ffff::2", 9, 0), 0);
    assert_eq!(passed(&limiter, &web, "2001:db8:0:2::1", 9, 0), 6);
    assert_eq!(passed(&limiter, &web, "10.1.1.1", 1000, 0), 1000);
}

#[test]
fn requests_in_hand_are_given_back() {
    let (limiter, limits) = (limiter(1024), limits(0, 0, 2));
    let enter = || limiter.enter(&limits, ip(CLIENT), 0);
    let (first, second) = (enter().unwrap(), enter().unwrap());
    assert_eq!(enter().err(), Some(Refused::Connections));
    drop(first);
    let third = enter().unwrap();
    assert_eq!(enter().err(), Some(Refused::Connections));
    drop((second, third));
    assert_eq!(
        passed(&limiter, &limits, CLIENT, 100, 0),
        100,
        "each at its time"
    );
}

#[test]
fn workers_together_pass_exactly_what_is_allowed() {
    const WORKERS: u32 = 4;
    let (limiter, limits) = (limiter(1024), limits(20, 0, 0));
    let (passed, barrier) = (AtomicU32::new(0), Barrier::new(WORKERS as usize));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                // The same clock for all: a thousand requests in each of ten rounds.
                for round in 0..10 {
                    barrier.wait();
                    for _ in 0..250 {
                        let now = round * 1000 * MS;
                        if limiter.enter(&limits, ip(CLIENT), now).is_ok() {
                            passed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(passed.into_inner(), 101 + 9 * 20);
}

#[test]
fn workers_together_hold_no_more_than_is_allowed() {
    let (limiter, limits) = (limiter(1024), limits(0, 0, 3));
    let (open, most) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    let Ok(held) = limiter.enter(&limits, ip(CLIENT), 0) else {
                        continue;
                    };
                    let now = open.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    open.fetch_sub(1, Ordering::SeqCst);
                    drop(held);
                }
            });
        }
    });
    assert!(most.into_inner() <= 3);
    assert_eq!(
        passed(&limiter, &limits, CLIENT, 9, 0),
        9,
        "all are given back"
    );
}

#[test]
fn the_table_is_bounded_and_forgets_what_loses_nothing_first() {
    let (limiter, limits) = (limiter(64), limits(1, 0, 0));
    for n in 0..10_000u32 {
        // Each a minute after the other: all before it have earned everything.
        let client = IpAddr::from((0xC000_0000 + n).to_be_bytes());
        let entered = limiter.enter(&limits, client, u64::from(n) * 60_000 * MS);
        assert!(entered.is_ok());
    }
    let held: usize = limiter
        .shards
        .iter()
        .map(|it| it.lock().unwrap().entries.len())
        .sum();
    assert!(held <= 64, "{held}");
    assert_eq!(limiter.evictions.get(), 0);
    let late = 10_000 * 60_000 * MS;
    for n in 0..1_000u32 {
        let client = IpAddr::from((0xC100_0000 + n).to_be_bytes());
        assert!(limiter.enter(&limits, client, late).is_ok());
    }
    assert!(limiter.evictions.get() > 900, "{}", limiter.evictions.get());
}

#[test]
fn who_has_a_request_in_hand_is_never_forgotten() {
    let (limiter, limits) = (limiter(64), limits(0, 0, 1));
    let mut held = Vec::new();
    let mut full = 0;
    for n in 0..1_000u32 {
        let client = IpAddr::from((0xC000_0000 + n).to_be_bytes());
        match limiter.enter(&limits, client, 0) {
            Ok(guard) => held.push((client, guard)),
            Err(refused) => {
                assert_eq!(refused, Refused::Full);
                full += 1;
            }
        }
    }
    assert!(held.len() <= 64 && full >= 936, "{} {full}", held.len());
    for (client, _guard) in &held {
        let again = limiter.enter(&limits, *client, 0).err();
        assert_eq!(again, Some(Refused::Connections));
    }
}
