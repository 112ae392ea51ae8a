use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use splitter_tests::backend::{self, Backend};
use splitter_tests::client::Client;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, TlsClient, connect, try_connect};
use splitter_tests::tls_backend::TlsBackend;
use splitter_tests::{PATIENCE, eventually};

use super::{noise, secure};

const ON: (&str, &str) = ("ssl-passthrough", "true");

/// `pods.test` is left to its pods, `ours.test` ends here.
struct Site {
    /// Whom the pods are signed by.
    pods: Authority,
    ours: Authority,
    main: TlsBackend,
    plain: Backend,
    splitter: Splitter,
}

/// Everything but what the case is about.
fn manifests(ours: &Authority, plain: &Backend, main: SocketAddr) -> Manifests {
    Manifests::new()
        .tls("ours", &["ours.test"])
        .main("ours", "ours.test", "/", "plain")
        .tls("", &[])
        .service("plain", &[plain.addr()])
        .service("main", &[main])
        .raw(&ours.issue(&["ours.test"]).secret("ours"))
}

fn start(manifests: &Manifests) -> Splitter {
    Splitter::start_with(manifests, |settings| {
        secure(settings);
        settings.class.ssl_passthrough = true;
    })
}

impl Site {
    fn new(annotations: &[(&str, &str)]) -> Self {
        let (pods, ours) = (Authority::new("pods"), Authority::new("ours"));
        let main = TlsBackend::new(&pods.issue(&["pods.test"]));
        let plain = Backend::named("plain");
        let all = [&[ON], annotations].concat();
        let manifests = manifests(&ours, &plain, main.addr());
        let manifests = manifests.ingress("pods", "pods.test", "/", "Prefix", "main", &all);
        Site {
            splitter: start(&manifests),
            pods,
            ours,
            main,
            plain,
        }
    }

    fn config(&self) -> Arc<ClientConfig> {
        Arc::new(self.pods.client())
    }

    fn client(&self) -> TlsClient {
        connect(self.splitter.https(), "pods.test", &self.config())
    }

    /// Connections that were counted with this status.
    fn counted(&self, status: &str) -> f64 {
        let labels = [("method", "CONNECT"), ("status", status)];
        let metrics = self.splitter.metrics();
        metrics.sum("nginx_ingress_controller_requests", &labels)
    }
}

#[test]
fn the_pods_own_certificate_is_shown_and_nobody_looks_inside() {
    let site = Site::new(&[]);
    let mut client = site.client();
    assert_eq!(client.get("pods.test", "/a").text(), "/a");
    // Nor is it a matter of ours what is asked for.
    assert_eq!(client.get("ours.test", "/b").text(), "/b");
    assert_eq!(site.main.asked()[0].name.as_deref(), Some("pods.test"));
    let ours = Arc::new(site.ours.client());
    let mut other = connect(site.splitter.https(), "ours.test", &ours);
    assert_eq!(other.get("ours.test", "/").text(), "plain");
    assert_eq!(site.plain.seen().len(), 1);
    // On the plain port the host is served as ever.
    assert_ne!(site.splitter.get("pods.test", "/").status, 404);
    drop(client);
    eventually("it is counted once it is over", || {
        site.counted("200") + site.counted("499") == 1.0
    });
    let handshakes = "splitter_tls_handshakes_total";
    site.splitter
        .expect_sum(handshakes, &[("result", "passed")], 1.0);
}

#[test]
fn without_the_flag_tls_ends_here_and_that_is_told() {
    let (ours, plain) = (Authority::new("ours"), Backend::named("plain"));
    let manifests = Manifests::new()
        .tls("ours", &["ours.test"])
        .ingress("pods", "ours.test", "/", "Prefix", "plain", &[ON])
        .service("plain", &[plain.addr()])
        .raw(&ours.issue(&["ours.test"]).secret("ours"));
    let splitter = Splitter::start_with(&manifests, secure);
    let config = Arc::new(ours.client());
    let mut client = connect(splitter.https(), "ours.test", &config);
    assert_eq!(client.get("ours.test", "/").text(), "plain");
    assert_eq!(splitter.problems(), ["pods: passthrough-off"]);
}

#[test]
fn weights_split_connections_to_the_one() {
    let (pods, ours) = (Authority::new("pods"), Authority::new("ours"));
    let pair = pods.issue(&["pods.test"]);
    let (main, next) = (TlsBackend::new(&pair), TlsBackend::new(&pair));
    let plain = Backend::named("plain");
    let with = |weight: &str| {
        let rules = [
            ("canary-weight", weight),
            ("canary-by-header", "X-Canary"),
            ("canary-by-cookie", "canary"),
        ];
        manifests(&ours, &plain, main.addr())
            .ingress("pods", "pods.test", "/", "Prefix", "main", &[ON])
            .canary("next", "pods.test", "/", "next", &rules)
            .service("next", &[next.addr()])
    };
    let splitter = start(&with("20"));
    let config = Arc::new(pods.client());
    for _ in 0..100 {
        let mut client = connect(splitter.https(), "pods.test", &config);
        assert_eq!(client.get("pods.test", "/x").status, 200);
    }
    assert_eq!((main.connections(), next.connections()), (80, 20));
    eventually("all are counted", || {
        let canary = [("canary", "demo-next-80"), ("method", "CONNECT")];
        let metrics = splitter.metrics();
        metrics.sum("nginx_ingress_controller_requests", &canary) == 20.0
    });
    splitter.apply(&with("100"));
    eventually("the weight is taken over", || {
        let before = next.connections();
        connect(splitter.https(), "pods.test", &config).get("pods.test", "/x");
        next.connections() > before
    });
}

#[test]
fn an_endpoint_that_refuses_is_passed_by_and_none_at_all_is_told() {
    let (pods, ours) = (Authority::new("pods"), Authority::new("ours"));
    let main = TlsBackend::new(&pods.issue(&["pods.test"]));
    let plain = Backend::named("plain");
    let base = |main| {
        manifests(&ours, &plain, main)
            .ingress("pods", "pods.test", "/", "Prefix", "main", &[ON])
            .ingress("gone", "gone.test", "/", "Prefix", "gone", &[ON])
            .ingress("empty", "empty.test", "/", "Prefix", "empty", &[ON])
            .service("gone", &[backend::refusing()])
            .service("empty", &[])
    };
    let manifests = base(main.addr()).endpoint("main", 7, backend::refusing(), "ready: true");
    let splitter = start(&manifests);
    let config = Arc::new(pods.client());
    for _ in 0..6 {
        let mut client = connect(splitter.https(), "pods.test", &config);
        assert_eq!(client.get("pods.test", "/x").text(), "/x");
    }
    for (host, fault) in [
        ("gone.test", "upstream-refused"),
        ("empty.test", "no-endpoint"),
    ] {
        let error = try_connect(splitter.https(), host, &config).err().unwrap();
        assert!(
            error.to_string().contains("InternalError"),
            "{host}: {error}"
        );
        eventually("it is counted", || splitter.faults(fault) == 1.0);
    }
}

#[test]
fn who_may_not_call_is_refused_before_a_pod_hears_of_it() {
    for (annotation, fault) in [
        (("denylist-source-range", "127.0.0.0/8"), "address-denied"),
        (("splitter.io/traffic-class", "north-south"), "class-denied"),
    ] {
        let site = Site::new(&[annotation]);
        let refused = try_connect(site.splitter.https(), "pods.test", &site.config());
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("AccessDenied"), "{annotation:?}: {error}");
        eventually("it is counted", || site.splitter.faults(fault) == 1.0);
        assert_eq!(site.main.connections(), 0);
        assert_eq!(site.counted("403"), 1.0);
    }
    let site = Site::new(&[("limit-connections", "1")]);
    let mut held = site.client();
    assert_eq!(held.get("pods.test", "/").text(), "/");
    assert!(try_connect(site.splitter.https(), "pods.test", &site.config()).is_err());
    drop(held);
    eventually("there is room again", || {
        try_connect(site.splitter.https(), "pods.test", &site.config()).is_ok()
    });
}

#[test]
fn what_only_requests_can_be_asked_closes_it() {
    let (pods, people) = (Authority::new("pods"), Authority::new("people"));
    let ours = Authority::new("ours");
    let main = TlsBackend::new(&pods.issue(&["pods.test"]));
    let plain = Backend::named("plain");
    let notes = [ON, ("auth-tls-secret", "demo/people")];
    let manifests = manifests(&ours, &plain, main.addr())
        .ingress("pods", "pods.test", "/", "Prefix", "main", &notes)
        .raw(&splitter_tests::tls::secret(
            "people",
            &[("ca.crt", people.pem())],
        ));
    let splitter = start(&manifests);
    let config = Arc::new(pods.client());
    assert!(try_connect(splitter.https(), "pods.test", &config).is_err());
    eventually("it is counted", || splitter.faults("guard-broken") == 1.0);
    assert_eq!(splitter.problems(), ["pods: passthrough-guarded"]);
    assert_eq!(main.connections(), 0);
}

#[test]
fn the_most_specific_host_says_whose_tls_it_is() {
    let (pods, ours) = (Authority::new("pods"), Authority::new("ours"));
    let main = TlsBackend::new(&pods.issue(&["*.w.test", "alias.test"]));
    let plain = Backend::named("plain");
    let pair = ours.issue(&["mine.w.test"]);
    let notes = [ON, ("server-alias", "alias.test")];
    let manifests = manifests(&ours, &plain, main.addr())
        .ingress("wild", "*.w.test", "/", "Prefix", "main", &notes)
        .main("paths", "*.w.test", "/unseen", "plain")
        .ingress("rootless", "rootless.test", "/x", "Prefix", "plain", &[ON])
        .ingress("any", "", "/", "Prefix", "plain", &[ON])
        .tls("mine", &["mine.w.test"])
        .main("mine", "mine.w.test", "/", "plain")
        .raw(&pair.secret("mine"));
    let splitter = start(&manifests);
    let config = Arc::new(pods.client());
    for name in ["a.w.test", "B.W.test", "alias.test"] {
        let mut client = connect(splitter.https(), name, &config);
        assert_eq!(client.get(name, "/unseen").text(), "/unseen", "{name}");
    }
    let mut client = connect(splitter.https(), "mine.w.test", &Arc::new(ours.client()));
    assert_eq!(client.get("mine.w.test", "/").text(), "plain");
    // Not one of its names, nor a name at all.
    assert!(try_connect(splitter.https(), "a.b.w.test", &config).is_err());
    assert_eq!(main.connections(), 3);
    let told = [
        "any: passthrough-without-root",
        "rootless: passthrough-without-root",
        "wild: passthrough-paths",
    ];
    assert_eq!(splitter.problems(), told);
}

#[test]
fn a_hello_in_pieces_is_one_hello_and_its_name_counts() {
    let site = Site::new(&[]);
    let name = ServerName::try_from("pods.test").unwrap();
    let mut tls = ClientConnection::new(site.config(), name).unwrap();
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    // In records of 7 bytes, each in two segments.
    let records = hello[5..].chunks(7);
    let mut stream = TcpStream::connect(site.splitter.https()).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for record in records {
        stream.write_all(&[22, 3, 1]).unwrap();
        let rest = [&[0, record.len() as u8], record].concat();
        stream.write_all(&rest).unwrap();
    }
    while tls.is_handshaking() {
        tls.complete_io(&mut stream).unwrap();
    }
    let mut client = Client::over(StreamOwned::new(tls, stream));
    assert_eq!(client.get("pods.test", "/x").text(), "/x");
}

#[test]
fn what_is_no_hello_is_ended_as_without_passthrough() {
    let site = Site::new(&[]);
    let answer = splitter_tests::client::get(site.splitter.https(), "pods.test", "/");
    answer.assert_own(400);
    let long = noise(7, 100_000);
    for head in [
        b"\x16\x03\x01\x00\x00".to_vec(),
        b"\x16\x03\x01\x00\x04\x01\xff\xff\xff".to_vec(),
        b"\x16\x03\x01\x00\x01\x02".to_vec(),
        [&b"\x16\x03\x01\x40\x00\x01\x00\xff\xff"[..], &long].concat(),
        long,
    ] {
        let mut client = Client::connect(site.splitter.https());
        client.send(&head);
        client.finish();
        let mut rest = Vec::new();
        let _ = client.reader().read_to_end(&mut rest);
        assert!(rest.len() < 64, "{rest:?}");
    }
    let failed = || {
        let metrics = site.splitter.metrics();
        metrics.sum("splitter_tls_handshakes_total", &[("result", "failed")])
    };
    eventually("all are counted", || failed() == 6.0);
    assert_eq!(site.main.connections(), 0);
    assert_eq!(site.client().get("pods.test", "/x").text(), "/x");
}

#[test]
fn half_a_close_goes_through_and_so_do_bytes_both_ways() {
    // No TLS at all behind it: what comes is what was sent.
    let echo = Backend::scripted(|conversation| {
        let mut bytes = Vec::new();
        conversation.reader().read_to_end(&mut bytes).unwrap();
        conversation.send(bytes);
        conversation.finish();
    });
    let (ours, plain) = (Authority::new("ours"), Backend::named("plain"));
    let manifests = manifests(&ours, &plain, echo.addr());
    let manifests = manifests.ingress("pods", "pods.test", "/", "Prefix", "main", &[ON]);
    let splitter = start(&manifests);
    let config = Arc::new(Authority::new("pods").client());
    let name = ServerName::try_from("pods.test").unwrap();
    let mut tls = ClientConnection::new(config, name).unwrap();
    let mut sent = Vec::new();
    tls.write_tls(&mut sent).unwrap();
    sent.extend(noise(3, 3_000_000));
    let mut stream = TcpStream::connect(splitter.https()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&sent).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    assert!(back == sent, "{} of {} bytes", back.len(), sent.len());
    eventually("it is counted", || {
        let labels = [("method", "CONNECT"), ("status", "200")];
        let metrics = splitter.metrics();
        metrics.sum("nginx_ingress_controller_requests", &labels) == 1.0
    });
}

#[test]
fn a_name_that_is_not_said_is_nobodys() {
    let site = Site::new(&[]);
    let mut config = site.ours.client();
    config.enable_sni = false;
    // The default certificate is of nobody whom the client trusts.
    let refused = try_connect(site.splitter.https(), "pods.test", &Arc::new(config));
    assert!(refused.is_err());
    assert_eq!(site.main.connections(), 0);
}
