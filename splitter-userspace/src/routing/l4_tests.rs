use super::*;
use crate::model::{L4Scope, L4Variant};

fn endpoints(port: u16, states: &[L4State]) -> Arc<[L4Endpoint]> {
    let all = (1u8..).zip(states).map(|(host, state)| L4Endpoint {
        addr: SocketAddr::from(([10, 0, 0, host], port)),
        state: *state,
    });
    all.collect()
}

fn key(service: &str) -> L4Key {
    L4Key {
        namespace: "shop".into(),
        service: service.into(),
        port: 5432,
        transport: Transport::Tcp,
    }
}

fn service(variants: &[(&str, u32, Arc<[L4Endpoint]>)]) -> Arc<L4Service> {
    let variants = variants.iter().map(|(name, weight, endpoints)| L4Variant {
        name: (*name).into(),
        key: key(name),
        weight: *weight,
        endpoints: Arc::clone(endpoints),
    });
    Arc::new(L4Service {
        key: key("db"),
        scope: L4Scope::All,
        split_by: L4SplitBy::Connection,
        cluster_addresses: Vec::new(),
        external_addresses: Vec::new(),
        variants: variants.collect(),
    })
}

fn live(service: Arc<L4Service>) -> Arc<L4Live> {
    let l4 = L4 {
        services: vec![service],
        listeners: Vec::new(),
    };
    l4_live(&[], &l4, &[SlotId(0)])[0].clone()
}

fn flow(port: u16) -> Flow {
    let client = SocketAddr::from(([192, 0, 2, 1], port));
    l4_flow(
        Transport::Tcp,
        client,
        SocketAddr::from(([203, 0, 113, 1], 5432)),
    )
}

const READY: L4State = L4State::Ready;

#[test]
fn all_ports_are_split_by_the_weights_and_over_the_endpoints() {
    let stable = endpoints(1, &[READY, READY]);
    let it = live(service(&[
        ("stable", 90, stable),
        ("next", 10, endpoints(2, &[READY])),
    ]));
    let weights = it.service.weights();
    let (mut canary, mut first) = (0, 0);
    for port in 0..=u16::MAX {
        let choice = it
            .choose(&flow(port), &weights, L4Taken::NorthSouth)
            .unwrap();
        assert_eq!(choice.reason, L4Reason::Weight);
        canary += usize::from(choice.variant == 1);
        let endpoint = it.endpoints(choice.variant, &flow(port))[0];
        first += usize::from(endpoint == SocketAddr::from(([10, 0, 0, 1], 1)));
    }
    assert_eq!(canary, 6554);
    // Half of 58,982, to within six deviations.
    assert!((28_760..30_220).contains(&first), "{first}");
}

#[test]
fn a_split_is_for_its_scope_only() {
    let both = [
        ("stable", 0, endpoints(1, &[READY])),
        ("next", 100, endpoints(2, &[READY])),
    ];
    let mut east_west = (*service(&both)).clone();
    east_west.scope = L4Scope::EastWest;
    let it = live(Arc::new(east_west));
    let weights = it.service.weights();
    let variant = |taken| it.choose(&flow(7), &weights, taken).unwrap();
    assert_eq!(variant(L4Taken::EastWest).variant, 1);
    let outside = variant(L4Taken::NorthSouth);
    assert_eq!((outside.variant, outside.reason), (STABLE, L4Reason::Only));
}

#[test]
fn a_canary_without_endpoints_gives_way_and_stable_does_not() {
    let none = endpoints(2, &[L4State::Unready]);
    let some = endpoints(1, &[READY]);
    let gives_way = live(service(&[
        ("stable", 0, some.clone()),
        ("next", 100, none.clone()),
    ]));
    let weights = gives_way.service.weights();
    let choice = gives_way
        .choose(&flow(1), &weights, L4Taken::NorthSouth)
        .unwrap();
    assert_eq!(
        (choice.variant, choice.reason),
        (STABLE, L4Reason::Fallback)
    );
    let stays = live(service(&[("stable", 100, none), ("next", 0, some)]));
    let weights = stays.service.weights();
    assert_eq!(stays.choose(&flow(1), &weights, L4Taken::NorthSouth), None);
}

#[test]
fn draining_ones_are_offered_last_and_unready_ones_keep_what_they_have() {
    let mixed = endpoints(1, &[READY, L4State::Draining, L4State::Unready]);
    let it = live(service(&[("stable", 1, mixed)]));
    let offered = it.endpoints(0, &flow(3));
    assert_eq!(offered, [SocketAddr::from(([10, 0, 0, 1], 1))]);
    assert!(it.keeps(SocketAddr::from(([10, 0, 0, 3], 1))));
    assert!(!it.keeps(SocketAddr::from(([10, 0, 0, 4], 1))));
    let draining = endpoints(1, &[L4State::Draining, L4State::Unready]);
    let it = live(service(&[("stable", 1, draining)]));
    assert_eq!(it.endpoints(0, &flow(3)).len(), 1);
}

#[test]
fn a_flow_is_offered_other_endpoints_each_once() {
    let it = live(service(&[("stable", 1, endpoints(1, &[READY; 5]))]));
    for port in 0..100 {
        let mut offered = it.endpoints(0, &flow(port));
        assert_eq!(offered.len(), L4_TRIES);
        offered.sort_unstable();
        offered.dedup();
        assert_eq!(offered.len(), L4_TRIES);
    }
    assert!(it.endpoints(1, &flow(0)).is_empty());
}

#[test]
fn what_did_not_change_is_taken_over() {
    let stable = endpoints(1, &[READY]);
    let one = service(&[
        ("stable", 90, stable.clone()),
        ("next", 10, endpoints(2, &[READY])),
    ]);
    let before = [live(one.clone())];
    let mut other = (*one).clone();
    other.variants[1].weight = 20;
    let l4 = |service: Arc<L4Service>| L4 {
        services: vec![service],
        listeners: Vec::new(),
    };
    let same = l4_live(&before, &l4(one), &[SlotId(0)]);
    assert!(Arc::ptr_eq(&same[0], &before[0]));
    let next = l4_live(&before, &l4(Arc::new(other)), &[SlotId(0)]);
    assert!(Arc::ptr_eq(&next[0].rings[0], &before[0].rings[0]));
    assert_eq!(next[0].service.weights().values[1], 20);
}

#[test]
fn families_and_transports_are_told_apart() {
    let v4 = l4_flow(
        Transport::Tcp,
        "192.0.2.1:9".parse().unwrap(),
        "192.0.2.2:53".parse().unwrap(),
    );
    let mapped = l4_flow(
        Transport::Tcp,
        "[::ffff:192.0.2.1]:9".parse().unwrap(),
        "[::ffff:192.0.2.2]:53".parse().unwrap(),
    );
    assert_eq!(v4, mapped);
    let udp = l4_flow(
        Transport::Udp,
        "192.0.2.1:9".parse().unwrap(),
        "192.0.2.2:53".parse().unwrap(),
    );
    assert_ne!(v4, udp);
}
