#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const NOW: u64 = 1_700_000_000;

fn data(entries: &[(&str, &[u8])]) -> SecretData {
    let entries = entries.iter();
    let entries = entries.map(|(key, value)| ((*key).to_owned(), value.to_vec()));
    SecretData::new(entries.collect::<BTreeMap<_, _>>())
}

fn shared(key: u8, previous: Option<u8>) -> TicketSecret {
    let (own, old) = ([key; 32], previous.map(|it| [it; 32]));
    let mut entries = vec![("key", &own[..])];
    entries.extend(old.as_ref().map(|old| ("previous", &old[..])));
    TicketSecret::read(&data(&entries)).unwrap()
}

fn tickets(secret: TicketSecret, kind: u8) -> Tickets {
    Tickets::new(secret, [kind; 32])
}

#[test]
fn who_shares_the_secret_opens_for_a_period_and_the_one_behind_it() {
    let (one, other) = (tickets(shared(1, None), 0), tickets(shared(1, None), 0));
    let begin = NOW - NOW % TICKET_PERIOD;
    for issued in [begin, begin + TICKET_PERIOD - 1] {
        let ticket = one.seal(b"session", issued).unwrap();
        assert!(!ticket.windows(7).any(|it| it == b"session"));
        for (now, opens) in [
            (issued, true),
            (issued + TICKET_PERIOD, true),
            (begin + 2 * TICKET_PERIOD - 1, true),
            (begin + 2 * TICKET_PERIOD, false),
            (begin + 9 * TICKET_PERIOD, false),
            // A clock that is behind the other node's.
            (begin - 1, true),
            (begin - TICKET_PERIOD - 1, false),
        ] {
            let opened = other.open(&ticket, now);
            let expected = opens.then(|| b"session".to_vec());
            assert_eq!(opened, expected, "{issued} {now}");
        }
    }
}

#[test]
fn nobody_else_opens_and_no_other_kind_does() {
    let ticket = tickets(shared(1, None), 0).seal(b"s", NOW).unwrap();
    for other in [
        tickets(shared(2, None), 0),
        tickets(shared(1, None), 1),
        tickets(TicketSecret::random().unwrap(), 0),
    ] {
        assert_eq!(other.open(&ticket, NOW), None);
    }
    let random = TicketSecret::random().unwrap();
    let ticket = tickets(random.clone(), 0).seal(b"s", NOW).unwrap();
    assert!(tickets(random, 0).open(&ticket, NOW).is_some());
}

#[test]
fn a_secret_is_changed_in_two_steps() {
    let (old, both) = (tickets(shared(1, None), 0), tickets(shared(2, Some(1)), 0));
    let new = tickets(shared(2, None), 0);
    let of_old = old.seal(b"s", NOW).unwrap();
    let of_both = both.seal(b"s", NOW).unwrap();
    assert!(both.open(&of_old, NOW).is_some());
    assert!(new.open(&of_both, NOW).is_some());
    assert_eq!(new.open(&of_old, NOW), None);
    assert_eq!(old.open(&of_both, NOW), None);
}

#[test]
fn a_secret_that_could_be_guessed_is_none() {
    let read = |entries: &[(&str, &[u8])]| TicketSecret::read(&data(entries)).err();
    assert_eq!(read(&[]), Some(TicketSecretError::Missing));
    assert_eq!(
        read(&[("key", b"short")]),
        Some(TicketSecretError::Short("key"))
    );
    let long = [7; 32];
    let entries: [(&str, &[u8]); 2] = [("key", &long), ("previous", b"")];
    assert_eq!(read(&entries), Some(TicketSecretError::Short("previous")));
    assert_eq!(read(&[("key", &[7; 64])]), None);
}

#[test]
fn the_same_session_is_never_sealed_twice_alike() {
    let tickets = tickets(shared(1, None), 0);
    let seal = || tickets.seal(b"session", NOW).unwrap();
    assert_ne!(seal(), seal());
    let text = format!("{tickets:?} {:?}", shared(1, None));
    assert_eq!(text, "Tickets(..) TicketSecret(..)");
}

proptest! {
    #[test]
    fn whatever_comes_back_is_whole_or_nothing(
        plain in proptest::collection::vec(any::<u8>(), 0..300),
        at in any::<proptest::sample::Index>(),
        bit in 0u8..8,
        cut in any::<proptest::sample::Index>(),
    ) {
        let tickets = tickets(shared(1, None), 0);
        let good = tickets.seal(&plain, NOW).unwrap();
        prop_assert_eq!(tickets.open(&good, NOW), Some(plain));
        let mut bad = good.clone();
        bad[at.index(good.len())] ^= 1 << bit;
        prop_assert_eq!(tickets.open(&bad, NOW), None);
        prop_assert_eq!(tickets.open(&good[..cut.index(good.len())], NOW), None);
    }

    #[test]
    fn garbage_is_no_ticket(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert_eq!(tickets(shared(1, None), 0).open(&bytes, NOW), None);
    }
}
