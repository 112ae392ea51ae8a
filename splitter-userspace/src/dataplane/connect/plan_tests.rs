use super::*;
use crate::model::{L4, L4Endpoint, L4Scope, L4State, L4Variant};
use crate::routing::l4_live;

fn endpoint(addr: &str, state: L4State) -> L4Endpoint {
    L4Endpoint {
        addr: addr.parse().unwrap(),
        state,
    }
}

fn service(name: &str, scope: L4Scope, addresses: &[&str]) -> L4Service {
    let key = |name: &str| L4Key {
        namespace: "shop".into(),
        service: name.into(),
        port: 5432,
        transport: Transport::Tcp,
    };
    let variant = |name: &str, weight, endpoints: Vec<L4Endpoint>| L4Variant {
        name: name.into(),
        key: key(name),
        weight,
        endpoints: endpoints.into(),
    };
    let stable = vec![
        endpoint("10.0.0.1:1", L4State::Ready),
        endpoint("10.0.0.2:1", L4State::Unready),
        endpoint("[fd00::1]:1", L4State::Ready),
    ];
    L4Service {
        key: key(name),
        scope,
        split_by: L4SplitBy::Connection,
        cluster_addresses: addresses.iter().map(|it| it.parse().unwrap()).collect(),
        external_addresses: Vec::new(),
        variants: vec![
            variant(name, 90, stable),
            variant("next", 10, vec![endpoint("10.0.0.3:2", L4State::Ready)]),
        ],
    }
}

fn planned(services: Vec<L4Service>) -> ConnectPlan {
    let slots: Vec<_> = (0..services.len() as u32).map(SlotId).collect();
    let l4 = L4 {
        services: services.into_iter().map(Arc::new).collect(),
        listeners: Vec::new(),
    };
    connect_plan(&l4_live(&[], &l4, &slots))
}

fn at(addr: &str) -> AddressKey {
    key(Transport::Tcp, addr.parse().unwrap())
}

#[test]
fn each_address_has_the_endpoints_of_its_family() {
    let plan = planned(vec![service(
        "db",
        L4Scope::All,
        &["10.96.0.1", "fd00:96::1"],
    )]);
    let lists = |addr| &plan.services[&at(addr)].lists;
    assert_eq!(
        lists("10.96.0.1:5432"),
        &[vec![at("10.0.0.1:1")], vec![at("10.0.0.3:2")]]
    );
    assert_eq!(
        lists("[fd00:96::1]:5432"),
        &[vec![at("[fd00::1]:1")], vec![]]
    );
    let kept: Vec<_> = plan.keeps.iter().map(|(slot, it)| (*slot, *it)).collect();
    assert_eq!(
        kept.len(),
        4,
        "one that takes nothing new keeps what it has"
    );
    assert!(kept.contains(&(0, at("10.0.0.2:1"))));
}

#[test]
fn other_services_are_left_to_the_cluster() {
    let mut alone = service("alone", L4Scope::All, &["10.96.0.3"]);
    alone.variants.truncate(1);
    let plan = planned(vec![
        service("outside", L4Scope::NorthSouth, &["10.96.0.1"]),
        service("headless", L4Scope::EastWest, &[]),
        alone,
    ]);
    assert_eq!(plan, ConnectPlan::default());
}

#[test]
fn clients_that_stay_together_are_told_from_connections() {
    let mut by_client = service("db", L4Scope::EastWest, &["10.96.0.1"]);
    by_client.split_by = L4SplitBy::SourceAddress;
    let plan = planned(vec![by_client]);
    assert_eq!(plan.services[&at("10.96.0.1:5432")].by, ConnectBy::Client);
}

#[test]
fn what_finds_no_room_is_named_and_the_rest_is_split() {
    let mut large = service("large", L4Scope::All, &["10.96.0.1"]);
    let all = (0..MAX_CONNECT_ENDPOINTS / 2 + 1).map(|number| L4Endpoint {
        addr: SocketAddr::new(
            std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).into(),
            1,
        ),
        state: L4State::Unready,
    });
    large.variants[0].endpoints = all.collect();
    let left_out = large.key.clone();
    let plan = planned(vec![large, service("small", L4Scope::All, &["10.96.0.2"])]);
    assert_eq!(plan.left_out, [left_out]);
    assert_eq!(plan.services.len(), 1);
}

#[test]
fn an_address_is_in_a_map_as_the_programs_look_for_it() {
    let found = at("10.96.0.1:5432");
    assert_eq!(
        (found.addr[..4].to_vec(), found.port.family),
        (vec![10, 96, 0, 1], 4)
    );
    assert_eq!(at("[::ffff:10.96.0.1]:5432"), found);
    let udp = key(Transport::Udp, "[fd00::1]:53".parse().unwrap());
    assert_eq!((udp.port.protocol, udp.port.family), (PROTO_UDP, 6));
}
