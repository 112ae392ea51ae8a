use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::vec;
use std::vec::Vec;

use splitter_common::{
    Asked, ConnectReason, EndpointKey, EndpointList, MAX_VARIANTS, PROTO_TCP, PROTO_UDP, PortKey,
    ServiceValue,
};

use super::{Services, Words, is_mapped};

/// Tables by hand, for one socket.
#[derive(Default)]
struct Host {
    services: Vec<(Words, ServiceValue)>,
    /// Rows that are seen before the lasting one, and how many have been.
    passing: Vec<ServiceValue>,
    passed: Cell<usize>,
    endpoints: HashMap<(u32, u32), Words>,
    weights: [u32; MAX_VARIANTS],
    gone: RefCell<HashSet<Words>>,
    turn: Cell<u64>,
    now: Cell<u64>,
    socket: RefCell<Option<Asked>>,
    no_memory: bool,
    reasons: RefCell<Vec<ConnectReason>>,
    chosen: RefCell<Vec<u32>>,
}

impl Services for Host {
    fn service(&self, asked: &Words) -> Option<&ServiceValue> {
        let found = self.services.iter().find(|(key, _)| key == asked)?;
        let passed = self.passed.replace(self.passed.get() + 1);
        Some(self.passing.get(passed).unwrap_or(&found.1))
    }
    fn endpoint(&self, key: EndpointKey) -> Option<&Words> {
        self.endpoints.get(&(key.list, key.place))
    }
    fn weights(&self, _slot: u32) -> [u32; MAX_VARIANTS] {
        self.weights
    }
    fn turn(&self, _turn: u32) -> u64 {
        self.turn.replace(self.turn.get() + 1)
    }
    fn client(&self) -> u64 {
        1
    }
    fn random(&self) -> u32 {
        0
    }
    fn keeps(&self, _slot: u32, endpoint: &Words) -> bool {
        !self.gone.borrow().contains(endpoint)
    }
    fn now(&self) -> u64 {
        self.now.get()
    }
    fn chosen(&self, _slot: u32, variant: u32) {
        self.chosen.borrow_mut().push(variant);
    }
    fn count(&self, reason: ConnectReason) {
        self.reasons.borrow_mut().push(reason);
    }
    fn with_asked<R>(&self, run: impl FnOnce(&mut Asked) -> R) -> Option<R> {
        self.socket.borrow_mut().as_mut().map(run)
    }
    fn with_asked_or_new<R>(&self, run: impl FnOnce(&mut Asked) -> R) -> Option<R> {
        if self.no_memory {
            return None;
        }
        Some(run(self.socket.borrow_mut().get_or_insert_default()))
    }
    fn forget(&self) {
        self.socket.take();
    }
}

/// What a function of the three says.
macro_rules! said {
    ($does:ident, $host:expr, $words:expr) => {{
        let said = Cell::new(None);
        super::$does($host, $words, |words| said.set(Some(*words)));
        said.get()
    }};
}

fn connect(host: &Host, asked: &Words) -> Option<Words> {
    said!(connect, host, asked)
}

fn send(host: &Host, asked: &Words) -> Option<Words> {
    said!(send, host, asked)
}

fn seen(host: &Host, peer: &Words) -> Option<Words> {
    said!(seen, host, peer)
}

fn at(host: u32, protocol: u8) -> Words {
    [host, 0, 0, 0, PortKey::word(53, protocol, 4)]
}

const SERVICE: u32 = 10;
const STABLE: u32 = 21;
const CANARY: u32 = 22;

/// A Service with one Endpoint for stable and one for a canary, for both protocols.
fn host(weights: [u32; 2]) -> Host {
    let mut host = Host::default();
    host.weights[..2].copy_from_slice(&weights);
    for protocol in [PROTO_TCP, PROTO_UDP] {
        let mut service = ServiceValue::default();
        for (variant, endpoint) in [STABLE, CANARY].into_iter().enumerate() {
            let list = u32::from(protocol) * 10 + variant as u32;
            service.lists[variant] = EndpointList { list, len: 1 };
            host.endpoints.insert((list, 0), at(endpoint, protocol));
        }
        host.services.push((at(SERVICE, protocol), service));
    }
    host
}

#[test]
fn a_connection_is_given_its_variant_and_knows_whom_it_asked() {
    let host = host([0, 100]);
    let given = connect(&host, &at(SERVICE, PROTO_TCP));
    assert_eq!(given, Some(at(CANARY, PROTO_TCP)));
    assert_eq!(
        seen(&host, &at(CANARY, PROTO_TCP)),
        Some(at(SERVICE, PROTO_TCP))
    );
    assert_eq!(seen(&host, &at(STABLE, PROTO_TCP)), None);
    assert_eq!(host.chosen.take(), [1]);
    assert_eq!(host.reasons.take(), [ConnectReason::Split]);
}

#[test]
fn other_addresses_are_left_alone_and_not_counted() {
    let host = host([50, 50]);
    assert_eq!(connect(&host, &at(99, PROTO_TCP)), None);
    assert_eq!(send(&host, &at(99, PROTO_UDP)), None);
    assert_eq!(seen(&host, &at(99, PROTO_UDP)), None);
    assert!(host.reasons.take().is_empty() && host.socket.take().is_none());
}

#[test]
fn datagrams_of_a_socket_stay_together_until_it_was_silent() {
    let host = host([50, 50]);
    let asked = at(SERVICE, PROTO_UDP);
    let first = send(&host, &asked);
    for _ in 0..20 {
        assert_eq!(send(&host, &asked), first);
    }
    assert_eq!(host.chosen.borrow().len(), 1);
    let mut others = HashSet::new();
    for _ in 0..20 {
        host.now
            .set(host.now.get() + splitter_common::ASKED_NANOSECONDS);
        others.insert(send(&host, &asked));
    }
    assert_eq!(others.len(), 2, "chosen anew each time");
}

#[test]
fn datagrams_leave_an_endpoint_that_is_gone_and_late_answers_are_known() {
    let mut host = host([0, 100]);
    let asked = at(SERVICE, PROTO_UDP);
    assert_eq!(send(&host, &asked), Some(at(CANARY, PROTO_UDP)));
    host.gone.borrow_mut().insert(at(CANARY, PROTO_UDP));
    host.services[1].1.lists[1].len = 0;
    assert_eq!(send(&host, &asked), Some(at(STABLE, PROTO_UDP)));
    assert_eq!(
        host.reasons.take(),
        [ConnectReason::Split, ConnectReason::Fallback]
    );
    assert_eq!(seen(&host, &at(STABLE, PROTO_UDP)), Some(asked));
}

#[test]
fn without_an_endpoint_the_cluster_answers() {
    let mut host = host([100, 0]);
    for (_, service) in &mut host.services {
        service.lists[0].len = 0;
    }
    assert_eq!(connect(&host, &at(SERVICE, PROTO_TCP)), None);
    assert_eq!(send(&host, &at(SERVICE, PROTO_UDP)), None);
    assert_eq!(host.reasons.take(), [ConnectReason::NoEndpoint; 2]);
    assert!(host.chosen.take().is_empty());
}

#[test]
fn an_endpoint_that_is_missing_is_counted_as_such() {
    let mut host = host([100, 0]);
    host.endpoints.clear();
    assert_eq!(connect(&host, &at(SERVICE, PROTO_TCP)), None);
    assert_eq!(host.reasons.take(), [ConnectReason::Missing]);
}

#[test]
fn without_memory_a_connection_is_split_and_a_datagram_is_not() {
    let mut host = host([0, 100]);
    host.no_memory = true;
    assert_eq!(
        connect(&host, &at(SERVICE, PROTO_TCP)),
        Some(at(CANARY, PROTO_TCP))
    );
    assert_eq!(send(&host, &at(SERVICE, PROTO_UDP)), None);
    assert_eq!(
        host.reasons.take(),
        [
            ConnectReason::Split,
            ConnectReason::NotRemembered,
            ConnectReason::NotRemembered
        ]
    );
}

#[test]
fn what_was_read_counts_when_the_row_is_the_same_afterwards() {
    let mut host = host([100, 0]);
    let other = |slot| ServiceValue {
        slot,
        ..ServiceValue::default()
    };
    // Seen first, then in the first try.
    host.passing = vec![other(1), other(1)];
    assert!(connect(&host, &at(SERVICE, PROTO_TCP)).is_some());
    assert_eq!(host.reasons.take(), [ConnectReason::Split]);
    host.passed.set(0);
    host.passing = (0..5).map(other).collect();
    assert_eq!(connect(&host, &at(SERVICE, PROTO_TCP)), None);
    assert_eq!(host.reasons.take(), [ConnectReason::Unsettled]);
}

#[test]
fn a_socket_for_datagrams_forgets_when_it_is_connected_elsewhere() {
    let host = host([0, 100]);
    assert!(connect(&host, &at(SERVICE, PROTO_UDP)).is_some());
    assert_eq!(connect(&host, &at(CANARY, PROTO_UDP)), None);
    assert_eq!(seen(&host, &at(CANARY, PROTO_UDP)), None);
}

#[test]
fn mapped_addresses_are_told_from_others() {
    let words = |text: &str| {
        let addr: std::net::Ipv6Addr = text.parse().unwrap();
        let all = addr.octets();
        core::array::from_fn(|n| u32::from_ne_bytes(core::array::from_fn(|m| all[4 * n + m])))
    };
    assert!(is_mapped(&words("::ffff:10.0.0.1")));
    for other in ["::", "::1", "2001:db8::ffff:0:1", "0:0:0:1:0:ffff:a00:1"] {
        assert!(!is_mapped(&words(other)), "{other}");
    }
}
