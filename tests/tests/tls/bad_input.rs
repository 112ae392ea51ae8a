use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, SupportedProtocolVersion};
use splitter_tests::backend::Backend;
use splitter_tests::noise::Noise;
use splitter_tests::tls::shown;
use splitter_tests::{PATIENCE, eventually};

use super::Site;

/// A handshake that is made by hand.
struct ByHand {
    tls: ClientConnection,
    stream: TcpStream,
}

impl ByHand {
    fn new(site: &Site, version: &'static SupportedProtocolVersion) -> Self {
        let config = site.authority.client_with(&[version]);
        let name = ServerName::try_from("a.test").unwrap();
        let stream = TcpStream::connect(site.splitter.https()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        ByHand {
            tls: ClientConnection::new(config.into(), name).unwrap(),
            stream,
        }
    }

    /// What the client has to say next.
    fn flight(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// Sends the hello and takes the server's answer.
    fn begin(&mut self) {
        let hello = self.flight();
        self.begin_with(&hello);
    }

    fn begin_with(&mut self, hello: &[u8]) {
        self.stream.write_all(hello).unwrap();
        while !self.tls.wants_write() {
            self.tls.read_tls(&mut self.stream).unwrap();
            self.tls.process_new_packets().unwrap();
        }
    }

    /// Sends these bytes and the end, and waits for the other end.
    fn end_with(mut self, bytes: &[u8]) {
        // It may be closed before all has been sent.
        let _ = self.stream.write_all(bytes);
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest);
    }
}

/// Whether handshakes have failed this often, and everybody else is served.
fn failed_and_well(site: &Site, times: usize) {
    let failed = || site.handshakes(&[("result", "failed")]);
    eventually("all are counted", || failed() >= times as f64);
    assert_eq!(failed(), times as f64);
    let mut client = site.client();
    assert_eq!(client.get("a.test", "/x").text(), "/x");
    let open = || {
        site.splitter
            .metrics()
            .sum("splitter_connections_open", &[])
    };
    eventually("nothing else is open", || open() == 1.0);
}

fn hello_length(site: &Site, version: &'static SupportedProtocolVersion) -> usize {
    let config = site.authority.client_with(&[version]);
    let name = ServerName::try_from("a.test").unwrap();
    let mut bytes = Vec::new();
    let mut tls = ClientConnection::new(config.into(), name).unwrap();
    tls.write_tls(&mut bytes).unwrap()
}

#[test]
fn truncated_handshakes_are_ended() {
    let site = Site::new();
    let mut failed = 0;
    for version in [&TLS13, &TLS12] {
        let length = hello_length(&site, version);
        for cut in [1, 5, 6, 9, 40, length / 2, length - 1, length] {
            let mut client = ByHand::new(&site, version);
            let hello = client.flight();
            client.end_with(&hello[..cut]);
            failed += 1;
        }
        let mut whole = ByHand::new(&site, version);
        whole.begin();
        let length = whole.flight().len();
        whole.end_with(&[]);
        failed += 1;
        for cut in [1, 5, length / 2, length - 1] {
            let mut client = ByHand::new(&site, version);
            client.begin();
            let flight = client.flight();
            client.end_with(&flight[..cut]);
            failed += 1;
        }
    }
    failed_and_well(&site, failed);
}

/// Records by their own length.
fn records(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut records = Vec::new();
    while bytes.len() >= 5 {
        let length = 5 + usize::from(u16::from_be_bytes([bytes[3], bytes[4]]));
        let (record, rest) = bytes.split_at(length);
        records.push(record);
        bytes = rest;
    }
    records
}

#[test]
fn shuffled_and_repeated_handshakes_are_ended() {
    let site = Site::new();
    let mut failed = 0;
    let mut end = |client: ByHand, bytes: &[u8]| {
        client.end_with(bytes);
        failed += 1;
    };
    for version in [&TLS13, &TLS12] {
        let mut client = ByHand::new(&site, version);
        let hello = client.flight();
        end(client, &[&hello[..], &hello].concat());
        // What comes last in a handshake, first.
        let finished = [22, 3, 3, 0, 4, 20, 0, 0, 0];
        end(
            ByHand::new(&site, version),
            &[&finished[..], &hello].concat(),
        );
        let data = [23, 3, 3, 0, 3, 1, 2, 3];
        end(ByHand::new(&site, version), &[&data[..], &hello].concat());
        let mut client = ByHand::new(&site, version);
        client.begin();
        let flight = client.flight();
        let mut shuffled = records(&flight);
        assert!(shuffled.len() > 1, "{version:?}");
        shuffled.reverse();
        end(client, &shuffled.concat());
        let mut client = ByHand::new(&site, version);
        client.begin();
        let mut flight = client.flight();
        // One bit of what is encrypted.
        *flight.last_mut().unwrap() ^= 1;
        end(client, &flight);
    }
    failed_and_well(&site, failed);
}

/// A hello with `content` as its server_name extension.
fn hello_with(content: &[u8]) -> Vec<u8> {
    let vec16 = |content: &[u8]| [&(content.len() as u16).to_be_bytes()[..], content].concat();
    let extension = [&[0, 0], &vec16(content)[..]].concat();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 4, 0x13, 1, 0xc0, 0x2b, 1, 0]);
    body.extend(vec16(&extension));
    let length = (body.len() as u32).to_be_bytes();
    let message = [&[1], &length[1..], &body].concat();
    let records = message.chunks(1 << 14);
    records
        .flat_map(|it| [&[22, 3, 1], &vec16(it)[..]].concat())
        .collect()
}

#[test]
fn lists_of_names_without_end_are_refused() {
    let site = Site::new();
    let name = |name: &str| {
        [
            &[0],
            &(name.len() as u16).to_be_bytes()[..],
            name.as_bytes(),
        ]
        .concat()
    };
    let list = |names: &[u8]| [&(names.len() as u16).to_be_bytes()[..], names].concat();
    let many = name("a.test").repeat(7000);
    assert!(many.len() > 62_000);
    let cases = [
        list(&many),
        list(&name(&"a".repeat(60_000))),
        list(&[name("a.test"), name("b.test")].concat()),
        list(&name("a..test")),
        list(&name("")),
        list(&[]),
        b"\xff\xff".to_vec(),
    ];
    for content in &cases {
        ByHand::new(&site, &TLS13).end_with(&hello_with(content));
    }
    failed_and_well(&site, cases.len());
}

#[test]
fn a_name_that_nobody_knows_is_shown_the_default_certificate() {
    let site = Site::new();
    let addr = site.splitter.https();
    let default = shown(addr, None);
    let long = format!("{}.test", "x".repeat(63));
    for name in ["unknown.test", "sub.a.test", "test", long.as_str()] {
        assert_eq!(shown(addr, Some(name)), default, "{name}");
    }
    assert_ne!(shown(addr, Some("a.test")), default);
    assert_eq!(site.handshakes(&[("result", "failed")]), 0.0);
}

#[test]
fn nothing_is_negotiated_a_second_time() {
    let site = Site::new();
    let mut openssl = Command::new("openssl")
        .args(["s_client", "-tls1_2", "-servername", "a.test", "-connect"])
        .arg(site.splitter.https().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl is there");
    let mut input = openssl.stdin.take().unwrap();
    input.write_all(b"R\n").unwrap();
    // Its input ends with it, or with us.
    let output = openssl.wait_with_output().unwrap();
    drop(input);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("no renegotiation"), "{text}");
    assert_eq!(
        site.handshakes(&[("version", "1.2"), ("result", "full")]),
        1.0
    );
    assert_eq!(site.client().get("a.test", "/x").text(), "/x");
}

#[test]
fn a_client_that_stops_in_the_middle_is_ended_in_time() {
    let site = Site::before_with(Backend::reflecting(), |settings| {
        settings.timeouts.handshake = Duration::from_millis(300);
    });
    for version in [&TLS13, &TLS12] {
        let mut client = ByHand::new(&site, version);
        client.begin();
        let mut rest = Vec::new();
        // Nothing more is said; the connection is ended by the other side.
        let _ = client.stream.read_to_end(&mut rest);
    }
    eventually("both are counted", || {
        site.handshakes(&[("reason", "timeout")]) == 2.0
    });
}

#[test]
fn random_changes_of_a_handshake_crash_nothing() {
    let site = Site::new();
    let mut noise = Noise::new(11);
    for round in 0..60 {
        let mut client = ByHand::new(&site, &TLS13);
        let mut bytes = client.flight();
        if round % 2 == 0 {
            client.begin_with(&bytes);
            bytes = client.flight();
        }
        let random = noise.next(8).to_vec();
        let at = (usize::from(random[0]) << 8 | usize::from(random[1])) % bytes.len();
        let to = (usize::from(random[2]) << 8 | usize::from(random[3])) % bytes.len();
        match random[4] % 4 {
            0 => bytes[at] ^= random[5] | 1,
            1 => bytes.swap(at, to),
            2 => bytes.truncate(at),
            _ => bytes.rotate_left(at),
        }
        client.end_with(&bytes);
    }
    assert_eq!(site.client().get("a.test", "/x").text(), "/x");
}
