//! Changes under connections that are forwarded.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};

use splitter_tests::eventually;

use crate::fixture::{
    ASKED, HERE, HERE_TOO, NAMES, Objects, Place, THERE, THERE_TOO, ask_udp, hear,
};

/// Says something and gets it back.
fn echo(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"ping")?;
    let mut back = [0; 4];
    stream.read_exact(&mut back)?;
    assert_eq!(&back, b"ping");
    Ok(())
}

/// An open connection of the client outside, and who has it.
fn open(place: &Place) -> (TcpStream, String) {
    place.site.nodes.out.run(|| {
        let mut stream = Place::connect(ASKED);
        let (name, _) = hear(&mut stream);
        (stream, name)
    })
}

#[test]
fn a_change_of_weights_moves_new_connections_only() {
    for (stable, canary) in [(HERE[0], THERE[0]), (THERE[0], HERE[0])] {
        let mut objects = Objects {
            db: vec![stable],
            next: vec![canary],
            weight: "0",
        };
        let place = Place::new(&objects);
        let mut before: Vec<_> = (0..8).map(|_| open(&place)).collect();
        objects.weight = "100";
        place.follow(&objects);
        let (_, after) = open(&place);
        for (stream, name) in &mut before {
            assert_ne!(*name, after);
            echo(stream).unwrap();
        }
        // Not a packet of theirs was lost or led elsewhere.
        assert_eq!(place.reason("gone") + place.reason("no-flow"), 0.0);
    }
}

#[test]
fn an_endpoint_more_moves_nothing_and_one_that_is_gone_resets_what_it_had() {
    for (one, other) in [(HERE[0], HERE_TOO[0]), (THERE[0], THERE_TOO[0])] {
        let mut objects = Objects {
            db: vec![one],
            ..Objects::default()
        };
        let place = Place::new(&objects);
        let (mut stays, first) = open(&place);
        objects.db.push(other);
        place.write(&objects);
        eventually("the other one answers, too", || open(&place).1 != first);
        echo(&mut stays).unwrap();
        objects.db.remove(0);
        place.write(&objects);
        eventually("the first one is gone", || match echo(&mut stays) {
            Ok(()) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
                true
            }
        });
        assert!(place.reason("gone") > 0.0);
        assert_ne!(open(&place).1, first);
    }
}

#[test]
fn without_an_endpoint_user_space_refuses_and_the_next_one_is_found() {
    let mut objects = Objects {
        db: vec![HERE[0]],
        ..Objects::default()
    };
    let place = Place::new(&objects);
    assert_eq!(open(&place).1, "here");
    objects.db.clear();
    place.write(&objects);
    eventually("it is refused", || place.try_ask(ASKED).is_err());
    eventually("it has come to user space", || {
        let _refused = place.try_ask(ASKED);
        place.reason("no-endpoint") > 0.0
    });
    objects.db.push(THERE[0]);
    place.write(&objects);
    eventually("the next one answers", || {
        place.try_ask(ASKED).is_ok_and(|(name, _)| name == "there")
    });
}

#[test]
fn datagrams_of_an_endpoint_that_is_gone_go_to_another_one() {
    let mut objects = Objects {
        db: vec![HERE[0]],
        ..Objects::default()
    };
    let place = Place::new(&objects);
    let socket = place
        .site
        .nodes
        .out
        .run(|| UdpSocket::bind("0.0.0.0:0").unwrap());
    assert_eq!(ask_udp(&socket, NAMES, b"who").0, "here");
    objects.db = vec![THERE[0]];
    place.write(&objects);
    eventually("the other one answers", || {
        ask_udp(&socket, NAMES, b"who").0 == "there"
    });
}

#[test]
fn a_connection_that_began_in_user_space_stays_there() {
    let objects = Objects {
        db: vec![THERE[0]],
        ..Objects::default()
    };
    let place = Place::new(&objects);
    let mut kept = None;
    eventually("one is left to user space", || {
        // Nobody has asked for the Endpoint's Ethernet address then; the splitter does, every 5 s.
        place.site.nodes.node.ip("neigh flush dev en0");
        let (stream, name) = open(&place);
        assert_eq!(name, "there");
        kept = Some(stream);
        place.reason("no-way") > 0.0
    });
    let mut stream = kept.unwrap();
    eventually("the next ones are forwarded", || {
        open(&place);
        place.reason("new") > 0.0
    });
    echo(&mut stream).unwrap();
    place
        .site
        .expect_sum("splitter_l4_open_connections", &[], 1.0);
}

#[test]
fn what_a_flood_brings_is_left_to_user_space() {
    let objects = Objects {
        db: vec![HERE[0]],
        ..Objects::default()
    };
    let mut place = Place::stopped(&objects);
    place.start("--l4-flow-limit 1:1");
    for _ in 0..20 {
        assert_eq!(open(&place).1, "here");
    }
    assert!(place.reason("too-many") > 0.0);
    assert!(place.reason("new") > 0.0);
    // More where a client had to ask twice.
    let all = place.reason("too-many") + place.reason("new");
    assert!(all >= 20.0, "{all}");
}
