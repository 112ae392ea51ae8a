use super::*;
use crate::model::{
    Kind, L4Endpoint, L4Id, L4Listener, L4Scope, L4Service, L4SplitBy, L4State, L4Variant,
    ObjectRef,
};
use crate::routing::l4_live;

fn endpoint(addr: &str, state: L4State) -> L4Endpoint {
    L4Endpoint {
        addr: addr.parse().unwrap(),
        state,
    }
}

fn service(name: &str, scope: L4Scope) -> Arc<L4Service> {
    let key = |name: &str| L4Key {
        namespace: "shop".into(),
        service: name.into(),
        port: 5432,
        transport: Transport::Tcp,
    };
    let variant = |name: &str, endpoints: Vec<L4Endpoint>| L4Variant {
        name: name.into(),
        key: key(name),
        weight: 1,
        endpoints: endpoints.into(),
    };
    Arc::new(L4Service {
        key: key(name),
        scope,
        split_by: L4SplitBy::Connection,
        cluster_addresses: Vec::new(),
        external_addresses: ["198.51.100.9", "203.0.113.1"]
            .map(|it| it.parse().unwrap())
            .into(),
        variants: vec![
            variant(
                "stable",
                vec![
                    endpoint("10.244.0.7:1", L4State::Ready),
                    endpoint("10.244.0.8:1", L4State::Unready),
                ],
            ),
            variant("next", vec![endpoint("10.244.9.7:2", L4State::Ready)]),
        ],
    })
}

fn listener(port: u16, accept_proxy: bool, send_proxy: bool) -> L4Listener {
    L4Listener {
        transport: Transport::Tcp,
        port,
        service: L4Id(0),
        accept_proxy,
        send_proxy,
        object: ObjectRef::new(Kind::ConfigMap, "shop", "tcp"),
        source: "".into(),
    }
}

fn ranges() -> Ranges {
    Ranges {
        own: vec![
            "203.0.113.1".parse().unwrap(),
            "2001:db8::1".parse().unwrap(),
        ],
        pods: vec!["10.244.0.0/24".parse().unwrap()],
        ..Ranges::default()
    }
}

fn planned(scope: L4Scope, slot: SlotId, listeners: Vec<L4Listener>) -> BalancePlan {
    let l4 = L4 {
        services: vec![service("db", scope)],
        listeners,
    };
    let all = l4_live(&[], &l4, &[slot]);
    balance_plan(&all, &l4, |_, port| port != 9, &ranges())
}

fn at(addr: &str) -> AddressKey {
    key(Transport::Tcp, addr.parse().unwrap())
}

#[test]
fn open_ports_are_fronts_at_each_own_address() {
    let listeners = vec![listener(5000, false, false), listener(9, false, false)];
    let plan = planned(L4Scope::EastWest, SlotId(1), listeners);
    let fronts: Vec<_> = plan.fronts.keys().copied().collect();
    let mut wanted = [at("203.0.113.1:5000"), at("[2001:db8::1]:5000")];
    wanted.sort();
    assert_eq!(
        fronts, wanted,
        "9 is not open, and the Split is not for the outside"
    );
    assert_eq!(plan.services.len(), 1);
}

#[test]
fn ports_with_the_proxy_protocol_are_user_spaces() {
    for (accept, send) in [(true, false), (false, true)] {
        let plan = planned(
            L4Scope::EastWest,
            SlotId(1),
            vec![listener(5000, accept, send)],
        );
        assert_eq!(plan, BalancePlan::default());
    }
}

#[test]
fn external_addresses_are_fronts_where_the_service_has_a_split() {
    for scope in [L4Scope::All, L4Scope::NorthSouth] {
        let plan = planned(scope, SlotId(1), Vec::new());
        assert_eq!(
            plan.fronts.len(),
            1,
            "the node's own address is none of a Service's"
        );
        assert!(plan.fronts.contains_key(&at("198.51.100.9:5432")));
    }
    for (scope, slot) in [(L4Scope::EastWest, SlotId(1)), (L4Scope::All, SlotId::NONE)] {
        assert!(planned(scope, slot, Vec::new()).fronts.is_empty());
    }
}

#[test]
fn endpoints_are_marked_by_where_they_are_and_what_they_take() {
    let plan = planned(L4Scope::All, SlotId(1), Vec::new());
    let state = |addr| plan.targets[&at(addr)];
    let (keeps, takes, local) = (Target::KEEPS, Target::TAKES, Target::LOCAL);
    assert_eq!(state("10.244.0.7:1"), keeps | takes | local);
    assert_eq!(state("10.244.0.8:1"), keeps | local);
    assert_eq!(state("10.244.9.7:2"), keeps | takes);
}
