//! Others who want the places of those that are there.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use socket2::{Domain, Protocol, Socket, Type};
use splitter::model::Transport;
use splitter_common::MAX_FLOWS;
use splitter_tests::bpf::Namespace;
use splitter_tests::bpf::forwarder::segment;
use splitter_tests::eventually;

use crate::fixture::{ASKED, HERE, Objects, Place, hear};

/// More flows than there is room for.
const FORGED: u32 = MAX_FLOWS;

#[test]
fn connections_that_are_open_outlast_a_flood_in_forged_names() {
    let mut place = Place::stopped(&Objects {
        db: vec![HERE[0]],
        ..Objects::default()
    });
    place.start("--l4-flow-limit off");
    let out = &place.site.nodes.out;
    let mut kept: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = out.run(|| Place::connect(ASKED));
            hear(&mut stream);
            stream
        })
        .collect();
    let asked: SocketAddr = ASKED.parse().unwrap();
    eventually("every place was wanted by others", || {
        flood(out, asked);
        place.reason("new") > f64::from(MAX_FLOWS)
    });
    for stream in &mut kept {
        stream.write_all(b"ping").unwrap();
        let mut back = [0; 4];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"ping");
    }
}

/// Asks for connections in many names.
fn flood(out: &Namespace, asked: SocketAddr) {
    out.run(|| {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP)).unwrap();
        socket.set_header_included_v4(true).unwrap();
        for number in 0..FORGED {
            // 198.18.0.0/15 is for benches.
            let from = SocketAddr::from((Ipv4Addr::from_bits(0xc612_0000 | number), 40_000));
            let frame = segment(from, asked, Transport::Tcp);
            let packet = &frame[14..14 + 40];
            // Twice, as the kernel would rather keep what was asked for again. A full queue is as much as there
            // can be.
            for _ in 0..2 {
                let _full = socket.send_to(packet, &asked.into());
            }
        }
    });
}
