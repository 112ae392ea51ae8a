//! Who is given what, and sees whom.

use super::*;

#[test]
fn tcp_and_udp_of_both_families_are_given_their_variant_and_see_whom_they_asked() {
    for (weights, expected) in [([1, 0], "stable"), ([0, 1], "canary")] {
        let place = Place::split(weights);
        place.client(|| {
            for addr in OWN {
                assert_eq!(ask(addr), expected);
                assert_eq!(ask_connected(addr), expected);
                assert_eq!(ask_from(&datagrams(addr), addr), expected);
            }
        });
        // Nobody else is concerned.
        place.node.run(|| {
            for addr in OWN {
                assert_eq!(ask(addr), "cluster");
                assert_eq!(ask_from(&datagrams(addr), addr), "cluster");
            }
        });
    }
}

#[test]
fn ipv4_from_a_socket_of_ipv6_is_the_same() {
    let place = Place::split([0, 1]);
    place.client(|| {
        let mapped = "[::ffff:10.96.0.10]:7000";
        assert_eq!(ask(mapped), "canary");
        assert_eq!(ask_connected(mapped), "canary");
        assert_eq!(ask_from(&datagrams(mapped), mapped), "canary");
    });
}

#[test]
fn shares_are_exact_and_those_of_the_pure_function() {
    const CONNECTS: u64 = 8_192;
    let mut place = Place::split([1, 0]);
    let mut turn = 0;
    for weights in [[100, 0], [999, 1], [90, 10], [50, 50], [0, 100]] {
        place.weigh(weights);
        let before = place.chosen();
        place.client(|| {
            for _ in 0..CONNECTS {
                let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
                socket.connect(OWN[0]).unwrap();
            }
        });
        let after = place.chosen();
        let canary = after[1] - before[1];
        assert_eq!(after[0] - before[0] + canary, CONNECTS);
        let wanted = f64::from(weights[1]) / f64::from(weights[0] + weights[1]);
        let share = canary as f64 / CONNECTS as f64;
        assert!((share - wanted).abs() < 0.001, "{weights:?}: {share}");
        assert_eq!(canary, expected(weights, turn..turn + CONNECTS));
        turn += CONNECTS;
    }
    assert_eq!(place.counts().get("split"), Some(&(5 * CONNECTS)));
}

/// How many of these turns are the canary's. The UDP Service is the second of two.
fn expected(weights: [u32; 2], turns: std::ops::Range<u64>) -> u64 {
    let mut service = ServiceValue {
        turn: 1,
        ..ServiceValue::default()
    };
    for list in &mut service.lists[..2] {
        *list = EndpointList { list: 0, len: 1 };
    }
    let mut all = [0; MAX_VARIANTS];
    all[..2].copy_from_slice(&weights);
    let picked = turns.map(|turn| {
        let draw = ConnectDraw {
            turn,
            ..ConnectDraw::default()
        };
        service.pick(&all, &draw).variant
    });
    picked.filter(|variant| *variant == 1).count() as u64
}

#[test]
fn a_pod_keeps_its_variant_where_that_is_asked_for() {
    let mut place = Place::split([50, 50]);
    place.plan(&service(|it| it.split_by = L4SplitBy::SourceAddress));
    let first = place.client(|| ask(OWN[0]));
    place.client(|| {
        for _ in 0..30 {
            assert_eq!(ask(OWN[0]), first);
            assert_eq!(ask(OWN[1]), first);
        }
    });
}

#[test]
fn new_weights_move_what_is_new_and_nothing_else() {
    let mut place = Place::split([1, 0]);
    let (stream, socket) = place.client(|| {
        let socket = datagrams(OWN[0]);
        assert_eq!(ask_from(&socket, OWN[0]), "stable");
        (TcpStream::connect(OWN[0]).unwrap(), socket)
    });
    place.weigh([0, 1]);
    place.client(|| {
        assert_eq!(ask(OWN[0]), "canary");
        assert_eq!(ask_from(&datagrams(OWN[0]), OWN[0]), "canary");
        // A socket that has asked already stays with whom it has.
        assert_eq!(ask_from(&socket, OWN[0]), "stable");
    });
    let mut text = String::new();
    (&stream).read_to_string(&mut text).unwrap();
    assert_eq!(text, "stable");
    assert!(place.counts()["kept"] >= 1);
}

#[test]
fn an_endpoint_that_is_gone_is_given_to_nobody_and_left_by_those_who_had_it() {
    let mut place = Place::split([0, 1]);
    let socket = place.client(|| {
        let socket = datagrams(OWN[0]);
        assert_eq!(ask_from(&socket, OWN[0]), "canary");
        socket
    });
    place.plan(&service(|it| it.variants[1].endpoints = Arc::new([])));
    place.client(|| {
        assert_eq!(ask(OWN[0]), "stable");
        assert_eq!(ask_from(&socket, OWN[0]), "stable");
    });
    assert_eq!(place.counts()["fallback"], 2);
    // One that only takes nothing new keeps what it has.
    let unready = |it: &mut L4Service| {
        let endpoints = it.variants[0].endpoints.iter().map(|it| L4Endpoint {
            state: L4State::Unready,
            ..*it
        });
        it.variants[0].endpoints = endpoints.collect();
    };
    place.plan(&service(unready));
    place.weigh([1, 0]);
    place.client(|| {
        assert_eq!(ask_from(&socket, OWN[0]), "stable");
        assert_eq!(ask_from(&datagrams(OWN[0]), OWN[0]), "cluster");
    });
}

#[test]
fn without_endpoints_or_a_split_the_cluster_answers() {
    let mut place = Place::split([1, 1]);
    let none = |it: &mut L4Service| {
        for variant in &mut it.variants {
            variant.endpoints = Arc::new([]);
        }
    };
    place.plan(&service(none));
    place.client(|| {
        for addr in OWN {
            assert_eq!(ask(addr), "cluster");
            assert_eq!(ask_connected(addr), "cluster");
            assert_eq!(ask_from(&datagrams(addr), addr), "cluster");
        }
    });
    assert_eq!(place.counts()["no-endpoint"], 6);
    place.plan(&[]);
    assert_eq!(place.state(), HookState::Waiting);
    eventually("the hooks are gone", || {
        place.client(|| ask(OWN[0])) == "cluster"
    });
}

#[test]
fn a_socket_that_asks_several_services_knows_them_apart() {
    let place = Place::split([1, 0]);
    place.client(|| {
        let socket = UdpSocket::bind("[::]:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        for addr in [OWN[1], "[::ffff:10.96.0.10]:7000", OWN[1]] {
            assert_eq!(ask_from(&socket, addr), "stable");
        }
        // And who is asked by its own address is seen by it.
        assert_eq!(ask_from(&socket, CANARY[1]), "canary");
    });
}

#[test]
fn a_socket_that_is_connected_elsewhere_afterwards_sees_that() {
    let place = Place::split([1, 0]);
    place.client(|| {
        let socket = datagrams(OWN[0]);
        socket.connect(OWN[0]).unwrap();
        assert_eq!(socket.peer_addr().unwrap(), OWN[0].parse().unwrap());
        socket.connect(STABLE[0]).unwrap();
        assert_eq!(socket.peer_addr().unwrap(), STABLE[0].parse().unwrap());
    });
}

#[test]
fn changes_under_way_refuse_nobody() {
    let mut place = Place::split([1, 1]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (node, cgroup) = (&place.node, &place.cgroup);
    let kernel = place.kernel.as_mut().unwrap();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    node.entry()();
                    cgroup.enter();
                    let mut asked = 0;
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) || asked < 50 {
                        assert_ne!(ask(OWN[0]), "cluster");
                        assert_ne!(ask_from(&datagrams(OWN[0]), OWN[0]), "cluster");
                        asked += 1;
                    }
                })
            })
            .collect();
        for round in 0..40 {
            let services = service(|it| {
                // The canary comes and goes.
                if round % 2 == 0 {
                    it.variants[1].endpoints = Arc::new([]);
                }
            });
            let faults = kernel.split_connects(&planned(&services));
            assert!(faults.is_empty(), "{faults:?}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for client in clients {
            client.join().unwrap();
        }
    });
    let counts = place.counts();
    assert!(!counts.contains_key("missing"), "{counts:?}");
    assert!(!counts.contains_key("unsettled"), "{counts:?}");
}
