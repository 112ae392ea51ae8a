//! Real connections in namespaces: who lands in which pool, and what stays as it was.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use splitter::dataplane::{CpuSets, Policy};
use splitter_common::{Class, Fallback, Pool};
use splitter_tests::bpf::kernel::ranges;
use splitter_tests::bpf::net::let_go;
use splitter_tests::bpf::{Loaded, Namespace, Nodes};

/// A listener that answers each connection with its pool's name, and what it saw of it.
struct Pooled {
    listener: TcpListener,
    name: &'static str,
}

impl Pooled {
    fn accept(&self) -> (SocketAddr, SocketAddr) {
        let (mut stream, peer) = self.listener.accept().unwrap();
        stream.write_all(self.name.as_bytes()).unwrap();
        (stream.local_addr().unwrap(), peer)
    }
}

fn pools(loaded: &mut Loaded, addr: &str, local: &str) -> [Pooled; 2] {
    let Loaded { kernel, nodes, .. } = loaded;
    let bind = |name| Pooled {
        listener: nodes.node.listen(local),
        name,
    };
    let pools = [bind("north-south"), bind("east-west")];
    let sockets = [
        (Pool::NorthSouth, pools[0].listener.as_fd()),
        (Pool::EastWest, pools[1].listener.as_fd()),
    ];
    let addr = addr.parse().unwrap();
    nodes
        .node
        .run(|| kernel.pools.publish(addr, Fallback::OtherPool, &sockets))
        .unwrap();
    pools
}

/// Connects from a namespace and reads the name of the pool that answers.
fn answer(from: &Namespace, to: &str) -> (String, SocketAddr) {
    from.run(|| {
        let mut stream = TcpStream::connect(to).unwrap_or_else(|error| panic!("{to}: {error}"));
        let local = stream.local_addr().unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        (text, local)
    })
}

/// Connects, and checks the pool and the addresses that it saw.
fn lands_in(from: &Namespace, to: &str, pool: &Pooled) {
    thread::scope(|scope| {
        let accepted = scope.spawn(|| pool.accept());
        let (name, client) = answer(from, to);
        assert_eq!(name, pool.name, "from {} to {to}", from.name());
        let (local, peer) = accepted.join().unwrap();
        // Nothing on the way has changed either end's address.
        assert_eq!(local, to.parse().unwrap());
        assert_eq!(peer, client);
    });
}

#[test]
fn the_same_address_answers_from_the_pool_of_the_caller() {
    let mut loaded = Loaded::new(&Policy::default());
    let [north_south, east_west] = pools(&mut loaded, "0.0.0.0:80", "127.0.0.1:0");
    let nodes = &loaded.nodes;
    lands_in(&nodes.out, "203.0.113.1:80", &north_south);
    lands_in(&nodes.out, "10.244.0.1:80", &north_south);
    lands_in(&nodes.pod, "203.0.113.1:80", &east_west);
    lands_in(&nodes.pod, "10.244.0.1:80", &east_west);
    for local in ["127.0.0.1:80", "203.0.113.1:80", "10.244.0.1:80"] {
        lands_in(&nodes.node, local, &east_west);
    }
    let counts = loaded.counts();
    assert_eq!(counts.class(Class::NorthSouth).lookups, 2);
    assert_eq!(counts.class(Class::EastWest).lookups, 2);
    assert_eq!(counts.class(Class::Local).lookups, 3);
    assert!(
        counts.class(Class::NorthSouth).packets >= 6,
        "XDP counts on the NIC: {counts:?}"
    );
}

#[test]
fn and_so_it_is_with_ipv6() {
    let mut loaded = Loaded::new(&Policy::default());
    let [north_south, east_west] = pools(&mut loaded, "[::]:80", "[::1]:0");
    let nodes = &loaded.nodes;
    lands_in(&nodes.out, "[2001:db8::1]:80", &north_south);
    lands_in(&nodes.pod, "[2001:db8::1]:80", &east_west);
    lands_in(&nodes.pod, "[fd00:244::1]:80", &east_west);
    lands_in(&nodes.node, "[::1]:80", &east_west);
    lands_in(&nodes.node, "[2001:db8::1]:80", &east_west);
}

#[test]
fn with_syn_cookies_every_connection_still_works() {
    let mut loaded = Loaded::new(&Policy::default());
    let [north_south, east_west] = pools(&mut loaded, "0.0.0.0:80", "127.0.0.1:0");
    let nodes = &loaded.nodes;
    nodes
        .node
        .run(|| std::fs::write("/proc/sys/net/ipv4/tcp_syncookies", "2").unwrap());
    for _ in 0..20 {
        lands_in(&nodes.out, "203.0.113.1:80", &north_south);
        lands_in(&nodes.pod, "203.0.113.1:80", &east_west);
    }
    // SYN and ACK each asked: the cookies were really in use.
    assert_eq!(loaded.counts().class(Class::NorthSouth).lookups, 40);
}

#[test]
fn a_real_listener_on_the_port_gets_nothing_until_we_are_gone() {
    let mut loaded = Loaded::new(&Policy::default());
    let real = Pooled {
        listener: loaded.nodes.node.listen("0.0.0.0:80"),
        name: "kernel",
    };
    let [north_south, east_west] = pools(&mut loaded, "0.0.0.0:80", "127.0.0.1:0");
    lands_in(&loaded.nodes.out, "203.0.113.1:80", &north_south);
    lands_in(&loaded.nodes.pod, "203.0.113.1:80", &east_west);
    // Without sockets, nothing is swallowed.
    let_go((north_south, east_west));
    lands_in(&loaded.nodes.out, "203.0.113.1:80", &real);
    assert_eq!(loaded.counts().reason("steer-kernel"), 1);
    let Loaded { kernel, nodes, .. } = loaded;
    let_go(kernel);
    lands_in(&nodes.out, "203.0.113.1:80", &real);
}

/// Another node, which the outside forwards for: its own address is 198.18.0.9, its pod's
/// 10.244.9.7.
fn second_node(loaded: &Loaded) -> Namespace {
    let peer = Namespace::new("peer");
    let Nodes { out, node, .. } = &loaded.nodes;
    out.ip(&format!(
        "link add far type veth peer name en0 netns {}",
        peer.name()
    ));
    for (namespace, device, address) in [
        (out, "far", "198.18.0.1/24"),
        (&peer, "en0", "198.18.0.9/24"),
    ] {
        namespace.ip(&format!("link set {device} up"));
        namespace.ip(&format!("addr add {address} dev {device}"));
    }
    peer.ip("addr add 10.244.9.7/32 dev lo");
    peer.ip("route add default via 198.18.0.1");
    out.ip("route add 10.244.9.0/24 via 198.18.0.9");
    out.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap());
    node.ip("route add 198.18.0.0/24 via 203.0.113.2");
    node.ip("route add 10.244.9.0/24 via 203.0.113.2");
    peer
}

/// Connects from this address of the namespace's own.
fn lands_in_from(from: &Namespace, source: &str, to: &str, pool: &Pooled) {
    thread::scope(|scope| {
        let accepted = scope.spawn(|| pool.accept());
        let name = from.run(|| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            let source: SocketAddr = format!("{source}:0").parse().unwrap();
            socket.bind(&source.into()).unwrap();
            let to: SocketAddr = to.parse().unwrap();
            socket.connect(&to.into()).unwrap();
            let (mut stream, mut text) = (TcpStream::from(socket), String::new());
            stream.read_to_string(&mut text).unwrap();
            text
        });
        assert_eq!(name, pool.name, "from {source}");
        let (_, peer) = accepted.join().unwrap();
        assert_eq!(peer.ip().to_string(), source);
    });
}

#[test]
fn other_nodes_and_their_pods() {
    let mut loaded = Loaded::new(&Policy::default());
    let [north_south, east_west] = pools(&mut loaded, "0.0.0.0:80", "127.0.0.1:0");
    let peer = second_node(&loaded);
    let to = "203.0.113.1:80";
    // Nobody has said yet that it is a node: it is outside, and so is its pod, whose range does
    // not travel on the wire of such a cluster.
    lands_in_from(&peer, "198.18.0.9", to, &north_south);
    lands_in_from(&peer, "10.244.9.7", to, &north_south);
    assert!(loaded.counts().reason("seen-cluster") >= 3);
    let mut ranges = ranges();
    ranges.nodes.push("198.18.0.9".parse().unwrap());
    let native = Policy {
        native_routing: true,
        ..Policy::default()
    };
    loaded.set(&ranges, &native);
    lands_in_from(&peer, "198.18.0.9", to, &east_west);
    lands_in_from(&peer, "10.244.9.7", to, &east_west);
    let counts = loaded.counts();
    assert_eq!(counts.class(Class::Node).lookups, 1);
    assert_eq!(counts.class(Class::EastWest).lookups, 1);
    // Nodes may be given the other pool: others hide behind their addresses.
    let mut apart = native.clone();
    apart.pool[Class::Node as usize] = Pool::NorthSouth;
    loaded.set(&ranges, &apart);
    lands_in_from(&peer, "198.18.0.9", to, &north_south);
    lands_in_from(&peer, "10.244.9.7", to, &east_west);
}

#[test]
fn spoofed_sources_from_the_wire_reach_nobody() {
    let mut loaded = Loaded::new(&Policy::default());
    let _pools = pools(&mut loaded, "0.0.0.0:80", "127.0.0.1:0");
    let Loaded { nodes, .. } = &loaded;
    // Without the kernel's own source check, which would hide ours.
    let off = ["all", "en0"].map(|name| format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"));
    nodes.node.run(|| {
        off.iter()
            .for_each(|path| std::fs::write(path, "0").unwrap())
    });
    nodes.out.ip("addr add 10.244.0.99/32 dev wire");
    nodes.out.ip("addr add fd00:244::99/128 dev wire nodad");
    for (source, to) in [
        ("10.244.0.99:0", "203.0.113.1:80"),
        ("[fd00:244::99]:0", "[2001:db8::1]:80"),
    ] {
        let before = loaded.counts().reason("drop-own-pods");
        let refused = nodes.out.run(|| {
            let (source, to): (SocketAddr, SocketAddr) =
                (source.parse().unwrap(), to.parse().unwrap());
            let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).unwrap();
            socket.bind(&source.into()).unwrap();
            socket.connect_timeout(&to.into(), Duration::from_millis(200))
        });
        assert!(refused.is_err(), "{source}");
        assert!(loaded.counts().reason("drop-own-pods") > before, "{source}");
    }
    assert_eq!(loaded.counts().reason("steer-assigned"), 0);
}

#[test]
fn connections_work_on_the_cpus_of_their_pool() {
    let policy = Policy {
        cpus: CpuSets {
            of: [vec![0], vec![1]],
        },
        ..Policy::default()
    };
    let mut loaded = Loaded::new(&policy);
    let [north_south, east_west] = pools(&mut loaded, "0.0.0.0:80", "127.0.0.1:0");
    let nodes = &loaded.nodes;
    nodes.whole_checksums();
    for _ in 0..10 {
        lands_in(&nodes.out, "203.0.113.1:80", &north_south);
        lands_in(&nodes.pod, "203.0.113.1:80", &east_west);
    }
    let moved = loaded.counts().reason("pass-moved");
    assert!(moved >= 30, "{moved} packets of ten connections were moved");
}

#[test]
fn pools_are_swapped_under_load_without_a_reset() {
    let mut loaded = Loaded::new(&Policy::default());
    let stop = AtomicBool::new(false);
    let done = AtomicU32::new(0);
    let serve = |pool: Pooled, stop: &AtomicBool| {
        pool.listener.set_nonblocking(true).unwrap();
        let mut quiet = 0;
        // After the end, until what was waiting is served.
        while quiet < 50 {
            match pool.listener.accept() {
                Ok((mut stream, _)) => {
                    stream.set_nonblocking(false).unwrap();
                    stream.write_all(pool.name.as_bytes()).unwrap();
                    quiet = 0;
                }
                Err(_) if stop.load(Ordering::Relaxed) => {
                    quiet += 1;
                    thread::yield_now();
                }
                Err(_) => thread::yield_now(),
            }
        }
    };
    let first = pools(&mut loaded, "0.0.0.0:80", "127.0.0.1:0");
    thread::scope(|scope| {
        let stop = &stop;
        let done = &done;
        for pool in first {
            scope.spawn(move || serve(pool, stop));
        }
        let out = &loaded.nodes.out;
        let client = scope.spawn(move || {
            out.run(|| {
                while done.load(Ordering::Relaxed) < 3000 {
                    let mut text = String::new();
                    let mut stream = TcpStream::connect("203.0.113.1:80").unwrap();
                    stream.read_to_string(&mut text).unwrap();
                    assert_eq!(text, "north-south");
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        let mut swaps = 0;
        let mut kernel = loaded.kernel;
        while !client.is_finished() {
            // A swap for every 50 connections.
            if done.load(Ordering::Relaxed) < swaps * 50 {
                thread::yield_now();
                continue;
            }
            swaps += 1;
            let next = loaded
                .nodes
                .node
                .run(|| TcpListener::bind("127.0.0.1:0").unwrap());
            let sockets = [(Pool::NorthSouth, next.as_fd())];
            let addr = "0.0.0.0:80".parse().unwrap();
            let publish = || kernel.pools.publish(addr, Fallback::OtherPool, &sockets);
            loaded.nodes.node.run(publish).unwrap();
            let pool = Pooled {
                listener: next,
                name: "north-south",
            };
            scope.spawn(move || serve(pool, stop));
        }
        stop.store(true, Ordering::Relaxed);
        client.join().unwrap();
        assert!(swaps >= 20, "only {swaps} swaps");
    });
}
