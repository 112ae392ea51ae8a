//! The keyed split: which place on the line of the weights a client has.

use std::net::IpAddr;

use super::{Shown, seen};
use crate::model::SplitKey;
use crate::model::keyed::{Keyed, Purpose};

/// The place of the request's key, as a fraction of 2^64; none for a request that has no key.
///
/// A canary with `w` of `t` (and none before it) has the places below `w / t`, whatever `t` is. So
/// when it gets more, whoever was there stays there.
pub fn place(key: &SplitKey, shown: &Shown<'_>) -> Option<u64> {
    match key {
        SplitKey::Header(name) => seen::header(shown.headers, name).map(|value| of(&value)),
        SplitKey::Cookie(name) => seen::cookies(shown.headers, name).next().map(of),
        SplitKey::Query(name) => seen::query(shown.query, name).map(|value| of(&value)),
        SplitKey::Client => (!shown.client.is_unspecified()).then(|| of_address(shown.client)),
    }
}

/// The point below `total` at a place.
pub fn point(place: u64, total: u32) -> u32 {
    // The place is below 2^64, so this is below the total.
    ((u128::from(place) * u128::from(total)) >> 64) as u32
}

/// The place of a text. Texts that differ only in the number at their end, as those of users often
/// do, have places in equal parts of the line: of 65,536 in a row (from a multiple of it on) each has
/// a part of its own. Other texts are spread as evenly as a hash is, which is by chance.
fn of(key: &[u8]) -> u64 {
    let Some((text, number)) = numbered(key) else {
        return hash(key);
    };
    let mut group = Keyed::new(Purpose::Place);
    group.add(text);
    group.add(&(number >> 16).to_le_bytes());
    let part = shuffle((number & 0xffff) as u16, group.finish());
    u64::from(part) << 48 | hash(key) >> 16
}

fn hash(key: &[u8]) -> u64 {
    let mut hash = Keyed::new(Purpose::Place);
    hash.add(key);
    hash.finish()
}

/// A text and the number at its end, of at most 15 digits; longer ones belong to the text.
fn numbered(key: &[u8]) -> Option<(&[u8], u64)> {
    const MOST: usize = 15;
    let digits = key.iter().rev().take(MOST);
    let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
    let (text, number) = key.split_at_checked(key.len() - digits)?;
    let digit = |sum: u64, byte: &u8| sum * 10 + u64::from(byte - b'0');
    (digits > 0).then(|| (text, number.iter().fold(0, digit)))
}

/// The place of an address. The 65,536 addresses that differ only in their last two bytes have
/// places in as many equal parts of the line: they are split evenly, and not only on average.
fn of_address(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => of_octets(&address.octets()),
        IpAddr::V6(address) => of_octets(&address.octets()),
    }
}

fn of_octets(octets: &[u8]) -> u64 {
    let Some((network, host)) = octets.split_last_chunk::<2>() else {
        return hash(octets);
    };
    let part = shuffle(u16::from_be_bytes(*host), hash(network));
    u64::from(part) << 48 | hash(octets) >> 16
}

/// A permutation of the numbers below 65,536, another for each key: a Feistel network of bytes.
fn shuffle(number: u16, key: u64) -> u16 {
    let [mut left, mut right] = number.to_be_bytes();
    for round in 0..4 {
        let mixed =
            (key.rotate_left(16 * round) ^ u64::from(right)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (left, right) = (right, left ^ (mixed >> 56) as u8);
    }
    u16::from_be_bytes([left, right])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::collections::BTreeSet;
    use std::net::{Ipv4Addr, Ipv6Addr};

    use http::HeaderMap;
    use proptest::prelude::*;

    use super::*;
    use crate::routing::fixtures::headers;

    /// The share, in points, of `places` that `weight` of `total` gets.
    fn points(places: &[u64], weight: u32, total: u32) -> f64 {
        let hits = places
            .iter()
            .filter(|place| point(**place, total) < weight)
            .count();
        hits as f64 * 100.0 / places.len() as f64
    }

    fn network(of: impl Fn(u16) -> IpAddr) -> Vec<u64> {
        (0..=u16::MAX).map(|host| of_address(of(host))).collect()
    }

    fn v4(network: u16) -> Vec<u64> {
        super::tests::network(|host| {
            IpAddr::V4(Ipv4Addr::from(u32::from(network) << 16 | u32::from(host)))
        })
    }

    fn v6(network: u128) -> Vec<u64> {
        super::tests::network(|host| IpAddr::V6(Ipv6Addr::from(network << 16 | u128::from(host))))
    }

    #[test]
    fn addresses_of_one_network_are_split_exactly() {
        let networks = [
            v4(0x0a00),
            v4(0xc0a8),
            v4(0),
            v6(0x2001_0db8 << 80),
            v6(1 << 100),
        ];
        for places in &networks {
            let parts: BTreeSet<u64> = places.iter().map(|place| place >> 48).collect();
            assert_eq!(parts.len(), 65_536);
            for weight in [1, 5, 10, 33, 50, 99] {
                let share = points(places, weight, 100);
                assert!(
                    (share - f64::from(weight)).abs() < 0.002,
                    "{weight}: {share}"
                );
            }
        }
        // Parts of a network are spread too: 256 pods of one node are not all on one side.
        for node in networks[0].chunks(256) {
            assert!((5.0..22.0).contains(&points(node, 128, 1000)));
        }
    }

    #[test]
    fn texts_with_a_number_at_their_end_are_split_exactly() {
        for (kind, first) in [("user-", 0), ("", 0), ("9x", 7 << 16), ("u", 1 << 40)] {
            let key = |number: u64| of(format!("{kind}{number}").as_bytes());
            let places: Vec<u64> = (first..first + 65_536).map(key).collect();
            for (weight, total) in [(1, 1000), (5, 1000), (5, 100), (10, 100), (1, 2), (90, 100)] {
                let wanted = f64::from(weight) / f64::from(total) * 100.0;
                let share = points(&places, weight, total);
                assert!(
                    (share - wanted).abs() < 0.002,
                    "{kind}: {weight} of {total} got {share}"
                );
            }
            // A part of them is spread too: the first thousand are not all on one side.
            assert!(
                (5.0..16.0).contains(&points(&places[..1000], 10, 100)),
                "{kind}"
            );
        }
        assert_eq!(numbered(b"user-007"), Some((&b"user-"[..], 7)));
        assert_eq!(
            numbered(b"1234567890123456"),
            Some((&b"1"[..], 234_567_890_123_456))
        );
        assert_eq!((numbered(b"user"), numbered(b"")), (None, None));
        assert_ne!(of(b"user-007"), of(b"user-7"));
    }

    /// 65,536 keys are split to within 0.2 points where that is five times what chance gives, and
    /// to within five times the deviation of chance elsewhere. No function that sees one key at a
    /// time can do better for keys that it knows nothing of.
    #[test]
    fn other_texts_are_split_as_well_as_a_hash_can() {
        for kind in [
            "user",
            "session=",
            "",
            "a/very/long/key/that/does/not/matter/",
        ] {
            let key = |number: u32| {
                let text = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                of(format!("{kind}{text:016x}x").as_bytes())
            };
            let places: Vec<u64> = (0..65_536).map(key).collect();
            for (weight, total) in [(1, 1000), (5, 1000), (5, 100), (10, 100), (1, 2), (90, 100)] {
                let wanted = f64::from(weight) / f64::from(total);
                let deviation = (wanted * (1.0 - wanted) / 65_536.0).sqrt() * 100.0;
                let allowed = (5.0 * deviation).max(0.2);
                let share = points(&places, weight, total);
                assert!(
                    (share - wanted * 100.0).abs() < allowed,
                    "{kind}: {weight} of {total} got {share}"
                );
            }
        }
    }

    #[test]
    fn the_line_is_cut_exactly() {
        let places: Vec<u64> = (0..65_536u64).map(|part| part << 48 | 0x7fff).collect();
        for (weight, total) in [(5, 100), (1, 3), (333, 1000), (7, 1_000_000), (1, 1)] {
            let share = points(&places, weight, total);
            let wanted = f64::from(weight) / f64::from(total) * 100.0;
            assert!(
                (share - wanted).abs() < 0.002,
                "{weight} of {total}: {share}"
            );
        }
        assert_eq!(point(u64::MAX, u32::MAX), u32::MAX - 1);
        assert_eq!((point(0, 100), point(u64::MAX, 100)), (0, 99));
    }

    proptest! {
        /// Whoever has a share keeps it when the share grows, whatever the totals are.
        #[test]
        fn a_share_that_grows_keeps_what_it_had(
            place in any::<u64>(), a in 0..=1000u32, b in 0..=1000u32,
            totals in (1..=1000u32, 1..=1_000_000_000u32),
        ) {
            let (total, other) = totals;
            let (a, b) = (a.min(total), b.min(other));
            // a / total <= b / other
            let grows = u64::from(a) * u64::from(other) <= u64::from(b) * u64::from(total);
            if grows && point(place, total) < a {
                prop_assert!(point(place, other) < b);
            }
        }
    }

    #[test]
    fn shuffling_is_a_permutation() {
        for key in [0, 1, u64::MAX, of(b"a"), of(b"b")] {
            let mut seen = vec![false; 65_536];
            for number in 0..=u16::MAX {
                seen[usize::from(shuffle(number, key))] = true;
            }
            assert!(seen.iter().all(|seen| *seen), "{key}");
        }
    }

    #[test]
    fn the_key_is_where_it_is_said_to_be() {
        let headers = headers(&[("x-user", "a"), ("cookie", "u=b; U=c")]);
        let shown = Shown {
            query: "x=1&user=d%21+e&user=f",
            client: IpAddr::V6("::ffff:10.0.0.1".parse().unwrap()),
            ..Shown::of(&headers)
        };
        let of_key = |key: SplitKey| place(&key, &shown);
        let header = http::HeaderName::from_static("x-user");
        assert_eq!(of_key(SplitKey::Header(header)), Some(of(b"a")));
        assert_eq!(of_key(SplitKey::Cookie("u".into())), Some(of(b"b")));
        assert_eq!(of_key(SplitKey::Cookie("x".into())), None);
        assert_eq!(of_key(SplitKey::Query("user".into())), Some(of(b"d! e")));
        assert_eq!(of_key(SplitKey::Query("y".into())), None);
        let v4 = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(of_key(SplitKey::Client), Some(of_address(v4)));
        let empty = HeaderMap::new();
        assert_eq!(place(&SplitKey::Client, &Shown::of(&empty)), None);
    }
}
