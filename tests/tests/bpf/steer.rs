//! The sk_lookup program by test runs: a connection in, the chosen socket's cookie out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd as _;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use socket2::SockRef;
use splitter::dataplane::{Cidr, Classifier, Policy, Prefixes, Ranges};
use splitter_common::{Class, Fallback, Pool, Role, Spoof, SpoofAction};
use splitter_tests::bpf::Loaded;
use splitter_tests::bpf::kernel::address;
use splitter_tests::bpf::net::let_go;
use splitter_tests::bpf::packet::syn;
use splitter_tests::bpf::run::{self, LookupRun};

const TCP: u32 = 6;

/// Where a look-up comes in. In a test run its interface has the number 0, so the table says what
/// that one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Nic,
    Bridge,
}

fn cookie(listener: &TcpListener) -> u64 {
    SockRef::from(listener).cookie().unwrap()
}

/// Two listeners of a pool each, in the node.
struct Sockets {
    north_south: TcpListener,
    east_west: TcpListener,
}

impl Sockets {
    fn new(loaded: &Loaded, local: &str) -> Sockets {
        let bind = || {
            loaded
                .nodes
                .node
                .run(|| TcpListener::bind((address(local), 0)).unwrap())
        };
        Sockets {
            north_south: bind(),
            east_west: bind(),
        }
    }

    fn publish(&self, loaded: &mut Loaded, addr: &str, fallback: Fallback) {
        let pools = [
            (Pool::NorthSouth, self.north_south.as_fd()),
            (Pool::EastWest, self.east_west.as_fd()),
        ];
        publish(loaded, addr, fallback, &pools);
    }
}

fn publish(
    loaded: &mut Loaded,
    addr: &str,
    fallback: Fallback,
    pools: &[(Pool, std::os::fd::BorrowedFd<'_>)],
) {
    let addr = addr.parse().unwrap();
    let Loaded { kernel, nodes, .. } = loaded;
    nodes
        .node
        .run(|| kernel.pools.publish(addr, fallback, pools))
        .unwrap();
}

fn ask(loaded: &mut Loaded, protocol: u32, peer: &str, local: &str, by: By) -> LookupRun {
    let external = [if by == By::Nic { 0 } else { 1 }];
    loaded.set_external(&external);
    let peer = SocketAddr::new(address(peer), 40000);
    let program = loaded.program("steer");
    run::lookup(program, protocol, peer, local.parse().unwrap(), 1).unwrap()
}

#[test]
fn each_class_is_given_its_pool() {
    let mut loaded = Loaded::quiet(&Policy::default());
    let sockets = Sockets::new(&loaded, "127.0.0.1");
    sockets.publish(&mut loaded, "0.0.0.0:80", Fallback::OtherPool);
    let (outside, inside) = (cookie(&sockets.north_south), cookie(&sockets.east_west));
    let nic = By::Nic;
    for (peer, by, wanted) in [
        ("198.51.100.7", nic, outside),
        ("10.244.0.7", By::Bridge, inside),
        ("10.244.9.7", By::Bridge, inside),
        // On the NIC, pods are not believed.
        ("10.244.0.7", nic, outside),
        ("10.244.9.7", nic, outside),
        ("203.0.113.9", nic, inside),
        // The node's own traffic carries the number of the NIC.
        ("203.0.113.1", nic, inside),
        ("127.0.0.1", By::Bridge, inside),
        // Of no range that is known, and not from the wire.
        ("198.51.100.7", By::Bridge, outside),
    ] {
        let run = ask(&mut loaded, TCP, peer, "203.0.113.1:80", by);
        assert_eq!((run.verdict, run.cookie), (1, wanted), "{peer} on {by:?}");
        // Asked again, the same: SYN cookies need it.
        assert_eq!(
            ask(&mut loaded, TCP, peer, "203.0.113.1:80", by).cookie,
            wanted
        );
    }
    let counts = loaded.counts();
    assert_eq!(counts.reason("steer-assigned"), 18);
    assert_eq!(counts.class(Class::Local).lookups, 4);
}

#[test]
fn ipv6_has_its_own_listeners() {
    let mut loaded = Loaded::quiet(&Policy::default());
    let sockets = Sockets::new(&loaded, "::1");
    sockets.publish(&mut loaded, "[::]:80", Fallback::OtherPool);
    let (outside, inside) = (cookie(&sockets.north_south), cookie(&sockets.east_west));
    let nic = By::Nic;
    for (peer, by, wanted) in [
        ("2001:db8:9::7", nic, outside),
        ("fd00:244::7", By::Bridge, inside),
        ("fd00:244::7", nic, outside),
        ("2001:db8::9", nic, inside),
        ("2001:db8::1", nic, inside),
        ("fe80::7", nic, outside),
        ("::1", By::Bridge, inside),
    ] {
        let run = ask(&mut loaded, TCP, peer, "[2001:db8::1]:80", by);
        assert_eq!((run.verdict, run.cookie), (1, wanted), "{peer} on {by:?}");
    }
    // An IPv6 listener has nothing to do with IPv4.
    assert_eq!(
        ask(&mut loaded, TCP, "198.51.100.7", "203.0.113.1:80", nic).cookie,
        0
    );
}

#[test]
fn everything_else_is_untouched() {
    let mut loaded = Loaded::quiet(&Policy::default());
    let sockets = Sockets::new(&loaded, "127.0.0.1");
    sockets.publish(&mut loaded, "0.0.0.0:80", Fallback::Reset);
    let untouched = LookupRun {
        verdict: 1,
        cookie: 0,
        nanoseconds: 0.0,
    };
    let nic = By::Nic;
    let mut asked = 0;
    for port in [22, 79, 81, 443, 10250] {
        for peer in ["198.51.100.7", "10.244.0.7", "203.0.113.1"] {
            let run = ask(&mut loaded, TCP, peer, &format!("203.0.113.1:{port}"), nic);
            let run = LookupRun {
                nanoseconds: 0.0,
                ..run
            };
            assert_eq!(run, untouched, "{peer} to {port}");
            asked += 1;
        }
    }
    // UDP to the same port.
    let run = ask(&mut loaded, 17, "198.51.100.7", "203.0.113.1:80", nic);
    assert_eq!((run.verdict, run.cookie), (1, 0));
    assert_eq!(loaded.counts().reason("steer-not-ours"), asked + 1);
}

#[test]
fn an_exact_address_is_ours_alone() {
    let mut loaded = Loaded::quiet(&Policy::default());
    let exact = Sockets::new(&loaded, "127.0.0.1");
    exact.publish(&mut loaded, "203.0.113.1:80", Fallback::OtherPool);
    let nic = By::Nic;
    let chosen =
        |loaded: &mut Loaded, local: &str| ask(loaded, TCP, "198.51.100.7", local, nic).cookie;
    assert_eq!(
        chosen(&mut loaded, "203.0.113.1:80"),
        cookie(&exact.north_south)
    );
    assert_eq!(chosen(&mut loaded, "203.0.113.2:80"), 0);
    // Beside it, every other address.
    let every = Sockets::new(&loaded, "127.0.0.1");
    every.publish(&mut loaded, "0.0.0.0:80", Fallback::OtherPool);
    assert_eq!(
        chosen(&mut loaded, "203.0.113.1:80"),
        cookie(&exact.north_south)
    );
    assert_eq!(
        chosen(&mut loaded, "203.0.113.2:80"),
        cookie(&every.north_south)
    );
    loaded
        .kernel
        .pools
        .withdraw("203.0.113.1:80".parse().unwrap())
        .unwrap();
    assert_eq!(
        chosen(&mut loaded, "203.0.113.1:80"),
        cookie(&every.north_south)
    );
    loaded
        .kernel
        .pools
        .withdraw("0.0.0.0:80".parse().unwrap())
        .unwrap();
    assert_eq!(chosen(&mut loaded, "203.0.113.1:80"), 0);
}

#[test]
fn an_empty_pool_falls_back_as_the_listener_says() {
    let mut loaded = Loaded::quiet(&Policy::default());
    let sockets = Sockets::new(&loaded, "127.0.0.1");
    let outside = cookie(&sockets.north_south);
    let only = [(Pool::NorthSouth, sockets.north_south.as_fd())];
    let nic = By::Nic;
    for (fallback, wanted, reason) in [
        (Fallback::OtherPool, (1, outside), "steer-other-pool"),
        (Fallback::Kernel, (1, 0), "steer-kernel"),
        (Fallback::Reset, (0, 0), "steer-reset"),
    ] {
        publish(&mut loaded, "0.0.0.0:80", fallback, &only);
        let run = ask(&mut loaded, TCP, "10.244.0.7", "203.0.113.1:80", By::Bridge);
        assert_eq!((run.verdict, run.cookie), wanted, "{fallback:?}");
        assert_eq!(loaded.counts().reason(reason), 1);
        let run = ask(&mut loaded, TCP, "198.51.100.7", "203.0.113.1:80", nic);
        assert_eq!(run.cookie, outside);
    }
    // A socket that is closed leaves its place by itself.
    publish(&mut loaded, "0.0.0.0:80", Fallback::OtherPool, &only);
    let_go(sockets);
    let run = ask(&mut loaded, TCP, "198.51.100.7", "203.0.113.1:80", nic);
    assert_eq!((run.verdict, run.cookie), (1, 0));
}

#[test]
fn the_pool_of_a_class_can_be_configured() {
    let mut policy = Policy::default();
    policy.pool[Class::Node as usize] = Pool::NorthSouth;
    let mut loaded = Loaded::quiet(&policy);
    let sockets = Sockets::new(&loaded, "127.0.0.1");
    sockets.publish(&mut loaded, "0.0.0.0:80", Fallback::OtherPool);
    let run = ask(&mut loaded, TCP, "203.0.113.9", "203.0.113.1:80", By::Nic);
    assert_eq!(run.cookie, cookie(&sockets.north_south));
}

#[test]
fn sockets_that_could_not_answer_are_refused() {
    let mut loaded = Loaded::quiet(&Policy::default());
    let foreign = loaded
        .nodes
        .pod
        .run(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let addr = "0.0.0.0:80".parse().unwrap();
    let Loaded { kernel, nodes, .. } = &mut loaded;
    let pools = [(Pool::NorthSouth, foreign.as_fd())];
    let result = nodes
        .node
        .run(|| kernel.pools.publish(addr, Fallback::OtherPool, &pools));
    let text = result.unwrap_err().to_string();
    assert!(text.contains("another network namespace"), "{text}");
}

/// An address from few values, so that ranges and addresses meet.
fn close() -> BoxedStrategy<IpAddr> {
    let byte = prop_oneof![
        Just(0u8),
        Just(1),
        Just(10),
        Just(127),
        Just(244),
        Just(255)
    ];
    let v6 = proptest::array::uniform16(byte.clone()).prop_map(IpAddr::from);
    let v4 = proptest::array::uniform4(byte);
    let mapped = v4
        .clone()
        .prop_map(|addr| IpAddr::from(std::net::Ipv4Addr::from(addr).to_ipv6_mapped()));
    prop_oneof![4 => v4.prop_map(IpAddr::from), 3 => v6, 1 => mapped].boxed()
}

fn some_ranges() -> impl Strategy<Value = Ranges> {
    let len = prop_oneof![Just(8u8), Just(16), Just(17), Just(24), Just(31)];
    let range = (close(), len)
        .prop_map(|(addr, len)| Cidr::cut(addr.to_canonical(), len))
        .boxed();
    let many = proptest::collection::vec(range, 0..8).boxed();
    let hosts = proptest::collection::vec(close(), 0..6).boxed();
    (hosts.clone(), many.clone(), many, hosts).prop_map(|(own, pods, cluster, nodes)| Ranges {
        own,
        pods,
        cluster,
        nodes,
    })
}

/// The class whose counter moved between two states, by what `of` reads of it.
fn moved(
    before: &splitter::dataplane::Counts,
    after: &splitter::dataplane::Counts,
    of: impl Fn(splitter::dataplane::ClassCount) -> u64,
) -> Vec<Class> {
    let differs = |class: &Class| of(after.class(*class)) != of(before.class(*class));
    Class::ALL.into_iter().filter(differs).collect()
}

/// How many random tables: fewer in an emulated machine, which says so.
fn cases() -> u32 {
    let text = std::env::var("SPLITTER_TEST_CASES").unwrap_or_else(|_| "48".to_owned());
    text.parse().unwrap()
}

/// What a peer of that family connects to.
fn local_for(peer: IpAddr) -> &'static str {
    match peer {
        IpAddr::V4(_) => "203.0.113.1:80",
        IpAddr::V6(_) => "[2001:db8::1]:80",
    }
}

#[test]
fn xdp_sk_lookup_and_user_space_agree_on_every_class() {
    let policy = Policy {
        spoof: [SpoofAction::Off; Spoof::COUNT],
        ..Policy::default()
    };
    let mut loaded = Loaded::quiet(&policy);
    let sockets = [
        Sockets::new(&loaded, "127.0.0.1"),
        Sockets::new(&loaded, "::1"),
    ];
    sockets[0].publish(&mut loaded, "0.0.0.0:80", Fallback::OtherPool);
    sockets[1].publish(&mut loaded, "[::]:80", Fallback::OtherPool);
    let nic = 2;
    let roles = HashMap::from([(nic, Role::External)]);
    let case = (
        some_ranges(),
        any::<bool>(),
        proptest::collection::vec(close(), 24),
    );
    let mut runner = TestRunner::new(Config::with_cases(cases()));
    let loaded = std::cell::RefCell::new(loaded);
    let result = runner.run(&case, |(ranges, native_routing, peers)| {
        let policy = Policy {
            native_routing,
            ..policy.clone()
        };
        let mut loaded = loaded.borrow_mut();
        loaded.set(&ranges, &policy);
        let prefixes = Prefixes::new(&ranges).0;
        let user = Classifier::with_interfaces(prefixes, roles.clone(), native_routing);
        for (by, ifindex) in [(By::Nic, nic), (By::Bridge, nic + 1)] {
            for peer in &peers {
                let wanted = vec![user.classify(*peer, ifindex).class];
                let local = local_for(*peer);
                let before = loaded.counts();
                ask(&mut loaded, TCP, &peer.to_string(), local, by);
                let middle = loaded.counts();
                let lookup = moved(&before, &middle, |count| count.lookups);
                prop_assert_eq!(&lookup, &wanted, "sk_lookup: {} on {:?}", peer, by);
                if by == By::Nic {
                    run::xdp(loaded.program("ingress"), &syn(*peer), 1).unwrap();
                    let xdp = moved(&middle, &loaded.counts(), |count| count.packets);
                    prop_assert_eq!(&xdp, &wanted, "XDP: {}", peer);
                }
            }
        }
        Ok(())
    });
    result.unwrap();
}
