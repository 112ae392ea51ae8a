use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// `in.test` is for callers from inside, `out.test` for those from outside, `all.test` for all.
fn before(backend: &Backend, proxied: bool) -> Splitter {
    let key = "splitter.io/traffic-class";
    let site = |all: Manifests, name: &str, class: &str| {
        let host = format!("{name}.test");
        all.ingress(name, &host, "/", "Prefix", "app", &[(key, class)])
    };
    let manifests = Manifests::new();
    let manifests = site(manifests, "in", "east-west");
    let manifests = site(manifests, "out", "north-south");
    let manifests = site(manifests, "all", "all").service("app", &[backend.addr()]);
    Splitter::start_with(&manifests, |settings| {
        settings.use_proxy_protocol = proxied;
        settings.use_forwarded_headers = !proxied;
        settings.dataplane.ranges.cluster = vec!["10.0.0.0/8".parse().unwrap()];
        settings.dataplane.ranges.nodes = vec!["192.0.2.7".parse().unwrap()];
    })
}

#[test]
fn a_location_is_for_one_side_and_a_believed_header_can_only_say_outside() {
    let backend = Backend::named("main");
    let splitter = before(&backend, false);
    // Callers are on the node itself, which is inside.
    for (fields, inside) in [
        ("", true),
        ("X-Forwarded-For: 10.1.2.3\r\n", true),
        ("X-Forwarded-For: 203.0.113.1\r\n", false),
        // What stands behind another node's address is not known.
        ("X-Forwarded-For: 192.0.2.7\r\n", false),
        ("X-Forwarded-For: 203.0.113.1, 10.1.2.3\r\n", false),
    ] {
        let status = |host: &str| splitter.get_with(host, "/", fields).status;
        let expected = if inside { (200, 403) } else { (403, 200) };
        assert_eq!(
            (status("in.test"), status("out.test")),
            expected,
            "{fields}"
        );
        assert_eq!(status("all.test"), 200, "{fields}");
    }
    assert_eq!(splitter.faults("class-denied"), 5.0);
    splitter
        .get_with("in.test", "/", "X-Forwarded-For: 203.0.113.1\r\n")
        .assert_own(403);
    assert!(splitter.problems().is_empty(), "{:?}", splitter.problems());
}

#[test]
fn whom_a_proxy_header_names_is_where_the_caller_is() {
    let backend = Backend::named("main");
    let splitter = before(&backend, true);
    for (address, status) in [("203.0.113.1", 403), ("10.1.2.3", 200)] {
        let mut client = splitter.client();
        client.send(format!("PROXY TCP4 {address} 198.51.100.1 12345 80\r\n"));
        // Not believed at all.
        let fields = "X-Forwarded-For: 10.1.2.3\r\nForwarded: for=10.1.2.3\r\n";
        let answer = client.get_with("in.test", "/", fields);
        assert_eq!(answer.status, status, "{address}");
    }
    assert_eq!(backend.seen().len(), 1);
}
