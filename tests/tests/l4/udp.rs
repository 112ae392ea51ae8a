//! Datagrams.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use splitter::config::{L4Settings, Settings};
use splitter::model::Transport;
use splitter::routing::l4_flow;
use splitter_common::variant_at;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::{PATIENCE, eventually};

/// Answers each datagram with its name, a blank and what it got.
fn named(name: &'static str) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = socket.local_addr().unwrap();
    // Lives as long as the test.
    std::thread::spawn(move || {
        let mut data = [0; 65_535];
        while let Ok((length, from)) = socket.recv_from(&mut data) {
            let mut answer = format!("{name} ").into_bytes();
            answer.extend_from_slice(&data[..length]);
            let _ = socket.send_to(&answer, from);
        }
    });
    addr
}

fn slice(service: &str, endpoint: Option<SocketAddr>) -> String {
    let Some(endpoint) = endpoint else {
        return String::new();
    };
    let (ip, port) = (endpoint.ip(), endpoint.port());
    format!(
        "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{name: {service}-1, namespace: demo, labels: {{kubernetes.io/service-name: {service}}}}}\n\
         addressType: IPv4\nports: [{{name: dns, port: {port}, protocol: UDP}}]\n\
         endpoints: [{{addresses: [\"{ip}\"]}}]\n"
    )
}

fn site(port: u16, split: u32, dns: Option<SocketAddr>, next: Option<SocketAddr>) -> Manifests {
    let ports = "ports: [{name: dns, port: 53, protocol: UDP}]";
    let text = format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: udp, namespace: demo}}\n\
         data: {{\"{port}\": \"demo/dns:53\"}}\n\
         ---\napiVersion: v1\nkind: Service\n\
         metadata: {{name: dns, namespace: demo, annotations: {{splitter.io/split: next={split}}}}}\n\
         spec: {{{ports}}}\n\
         ---\napiVersion: v1\nkind: Service\nmetadata: {{name: next, namespace: demo}}\nspec: {{{ports}}}\n"
    );
    Manifests::new().raw(&(text + &slice("dns", dns) + &slice("next", next)))
}

fn start(manifests: &Manifests, change: impl FnOnce(&mut Settings)) -> Splitter {
    Splitter::start_with(manifests, |settings| {
        settings.class.l4 = L4Settings {
            udp_services: Some("demo/udp".parse().unwrap()),
            ..L4Settings::default()
        };
        settings.workers = 2;
        change(settings);
    })
}

/// A port that leads to two servers, in equal parts.
pub fn names(port: u16, dns: SocketAddr, next: SocketAddr) -> Splitter {
    start(&site(port, 50, Some(dns), Some(next)), |_| {})
}

fn free_port() -> u16 {
    let held = UdpSocket::bind("[::]:0").unwrap();
    held.local_addr().unwrap().port()
}

fn client(to: (IpAddr, u16)) -> UdpSocket {
    let any = match to.0 {
        IpAddr::V4(_) => "127.0.0.1:0",
        IpAddr::V6(_) => "[::1]:0",
    };
    let socket = UdpSocket::bind(any).unwrap();
    // Only answers from the address that was asked are taken.
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn ask(socket: &UdpSocket, text: &str) -> String {
    socket.send(text.as_bytes()).unwrap();
    let mut data = [0; 65_535];
    let length = socket.recv(&mut data).unwrap();
    String::from_utf8_lossy(&data[..length]).into_owned()
}

const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

#[test]
fn each_socket_has_the_variant_that_the_pure_function_says_and_keeps_it() {
    let port = free_port();
    let (dns, next) = (Some(named("dns")), Some(named("next")));
    let splitter = start(&site(port, 40, dns, next), |_| {});
    let weights = [60, 40, 0, 0, 0, 0, 0, 0];
    let mut kept = Vec::new();
    for _ in 0..60 {
        let socket = client((LOOPBACK, port));
        let (from, to) = (socket.local_addr().unwrap(), socket.peer_addr().unwrap());
        let point = l4_flow(Transport::Udp, from, to).point();
        let name = ["dns", "next"][variant_at(&weights, point)];
        assert_eq!(ask(&socket, "one"), format!("{name} one"));
        kept.push((name, socket));
    }
    splitter.apply(&site(port, 100, dns, next));
    eventually("the weight is in force", || {
        splitter.dump("/config_dump")["weights"][0]["variants"][1]["live"] == 100
    });
    for (name, socket) in &kept {
        assert_eq!(ask(socket, "two"), format!("{name} two"));
    }
    assert_eq!(ask(&client((LOOPBACK, port)), "new"), "next new");
    for name in [
        "splitter_l4_connections_total",
        "splitter_l4_open_connections",
    ] {
        splitter.expect_sum(name, &[("protocol", "UDP")], 61.0);
    }
}

#[test]
fn answers_come_from_the_address_that_was_asked_in_both_families() {
    let port = free_port();
    let splitter = start(&site(port, 0, Some(named("dns")), None), |_| {});
    for ip in [
        LOOPBACK,
        IpAddr::from([127, 0, 0, 7]),
        "::1".parse().unwrap(),
    ] {
        assert_eq!(ask(&client((ip, port)), "x"), "dns x");
    }
    // As long as they get over loopback.
    let long = "y".repeat(60_000);
    assert_eq!(ask(&client((LOOPBACK, port)), &long).len(), 60_004);
    drop(splitter);
}

#[test]
fn a_silent_session_ends_and_the_next_datagram_begins_another() {
    let port = free_port();
    let manifests = site(port, 0, Some(named("dns")), None);
    let splitter = start(&manifests, |settings| {
        settings.l4.udp_idle = Duration::from_millis(100);
    });
    let socket = client((LOOPBACK, port));
    assert_eq!(ask(&socket, "a"), "dns a");
    eventually("it ends", || {
        splitter.metrics().sum("splitter_l4_open_connections", &[]) == 0.0
    });
    assert_eq!(ask(&socket, "b"), "dns b");
    eventually("both are counted", || {
        splitter.metrics().sum("splitter_l4_connections_total", &[]) >= 2.0
    });
    assert_eq!(splitter.metrics().sum("splitter_l4_cut_total", &[]), 0.0);
}

#[test]
fn sessions_are_bounded_and_what_is_refused_is_counted() {
    let port = free_port();
    let manifests = site(port, 0, Some(named("dns")), None);
    let splitter = start(&manifests, |settings| {
        settings.workers = 1;
        settings.l4.max_sessions = 2;
    });
    let open = [(); 2].map(|()| client((LOOPBACK, port)));
    for socket in &open {
        assert_eq!(ask(socket, "a"), "dns a");
    }
    let third = client((LOOPBACK, port));
    third.send(b"a").unwrap();
    let labels = [("reason", "over-limit")];
    eventually("it is counted", || {
        splitter.metrics().sum("splitter_l4_refused_total", &labels) >= 1.0
    });
    for socket in &open {
        assert_eq!(ask(socket, "b"), "dns b");
    }
}

#[test]
fn an_endpoint_that_is_gone_gives_its_sessions_to_others() {
    let port = free_port();
    let (one, two) = (named("one"), named("two"));
    let splitter = start(&site(port, 0, Some(one), None), |_| {});
    let socket = client((LOOPBACK, port));
    assert_eq!(ask(&socket, "a"), "one a");
    splitter.apply(&site(port, 0, Some(two), None));
    let labels = [("reason", "endpoint-gone")];
    eventually("the session is cut", || {
        splitter.metrics().sum("splitter_l4_cut_total", &labels) == 1.0
    });
    assert_eq!(ask(&socket, "b"), "two b");
    splitter.apply(&site(port, 0, None, None));
    eventually("there is nobody", || {
        socket.send(b"c").unwrap();
        let labels = [("reason", "no-endpoint")];
        splitter.metrics().sum("splitter_l4_refused_total", &labels) >= 1.0
    });
}

#[test]
fn a_port_that_is_not_asked_for_any_more_is_free() {
    let port = free_port();
    let other = free_port();
    let dns = Some(named("dns"));
    let splitter = start(&site(port, 0, dns, None), |_| {});
    assert_eq!(ask(&client((LOOPBACK, port)), "a"), "dns a");
    splitter.apply(&site(other, 0, dns, None));
    eventually("the port is free", || {
        UdpSocket::bind(("0.0.0.0", port)).is_ok()
    });
    assert_eq!(ask(&client((LOOPBACK, other)), "b"), "dns b");
}

#[test]
fn a_port_that_somebody_has_is_a_problem() {
    let foreign = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = foreign.local_addr().unwrap().port();
    let dns = Some(named("dns"));
    let splitter = start(&site(port, 0, dns, dns), |_| {});
    assert_eq!(splitter.problems(), ["udp: l4-port-not-opened"]);
    drop(foreign);
    eventually("it is opened", || splitter.problems().is_empty());
    assert_eq!(ask(&client((LOOPBACK, port)), "a"), "dns a");
}
