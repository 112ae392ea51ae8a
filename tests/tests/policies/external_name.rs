//! ExternalName Services, with a DNS server of the test's own.

use std::net::{Ipv4Addr, TcpListener};

use splitter_tests::backend::Backend;
use splitter_tests::dns::Dns;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

const ONE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const TWO: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A backend with this name on this address and port (0: any).
fn on(address: Ipv4Addr, port: u16, name: &'static str) -> Backend {
    let listener = TcpListener::bind((address, port)).unwrap();
    Backend::listening(listener, move |conversation| {
        while conversation.request().is_some() {
            let length = name.len();
            conversation.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}"
            ));
        }
    })
}

fn external(service: &str, name: &str, port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {service}, namespace: demo}}\n\
         spec: {{type: ExternalName, externalName: {name}, ports: [{{port: 80, targetPort: {port}}}]}}"
    )
}

/// The Ingress before the Service `app`, which leads to `name` on `port`.
fn manifests(name: &str, port: u16) -> Manifests {
    Manifests::new()
        .main("web", "a.test", "/", "app")
        .raw(&external("app", name, port))
}

fn start(manifests: &Manifests, dns: &Dns, allow_local: bool) -> Splitter {
    Splitter::start_with(manifests, |settings| {
        settings.names.servers = vec![dns.addr()];
        settings.names.allow_local = allow_local;
    })
}

#[test]
fn a_name_is_served_and_followed() {
    let dns = Dns::start();
    let one = on(ONE, 0, "one");
    let port = one.addr().port();
    let _two = on(TWO, port, "two");
    dns.set("db.example", &[ONE]);
    let splitter = start(&manifests("db.example", port), &dns, true);
    // The start waits for the first answer.
    assert_eq!(splitter.get("a.test", "/").text(), "one");
    dns.set("db.example", &[TWO]);
    eventually("the new address is taken up", || {
        splitter.get("a.test", "/").text() == "two"
    });
    dns.set("db.example", &[ONE, TWO]);
    eventually("both are asked", || {
        let answers = [splitter.get("a.test", "/"), splitter.get("a.test", "/")];
        answers[0].text() != answers[1].text()
    });
    assert_eq!(splitter.problems(), [""; 0]);
}

#[test]
fn a_name_that_resolves_late_is_503_till_then() {
    let dns = Dns::start();
    let one = on(ONE, 0, "one");
    let splitter = start(&manifests("db.example", one.addr().port()), &dns, true);
    assert_eq!(splitter.get("a.test", "/").status, 503);
    eventually("the problem is told", || {
        splitter.problems() == ["app: external-name-unresolved"]
    });
    dns.set("db.example", &[ONE]);
    eventually("the name is served", || {
        splitter.get("a.test", "/").status == 200
    });
    eventually("the problem is gone", || splitter.problems().is_empty());
}

#[test]
fn a_name_that_goes_keeps_its_last_address() {
    let dns = Dns::start();
    let one = on(ONE, 0, "one");
    dns.set("db.example", &[ONE]);
    let splitter = start(&manifests("db.example", one.addr().port()), &dns, true);
    assert_eq!(splitter.get("a.test", "/").status, 200);
    dns.set("db.example", &[]);
    eventually("the problem is told", || {
        splitter.problems() == ["app: external-name-unresolved"]
    });
    assert_eq!(splitter.get("a.test", "/").text(), "one");
    dns.set("db.example", &[ONE]);
    eventually("the problem is gone", || splitter.problems().is_empty());
    assert_eq!(splitter.get("a.test", "/").text(), "one");
}

/// Whoever may write a Service must not reach what listens on the node alone.
#[test]
fn a_name_of_the_node_itself_is_refused() {
    let dns = Dns::start();
    let one = on(ONE, 0, "one");
    let port = one.addr().port();
    dns.set("evil.example", &[ONE]);
    for name in ["evil.example", "localhost", "127.0.0.1"] {
        let splitter = start(&manifests(name, port), &dns, false);
        eventually("the problem is told", || {
            splitter.problems() == ["app: external-name-local"]
        });
        assert_eq!(splitter.get("a.test", "/").status, 503, "{name}");
    }
    assert_eq!(one.connections(), 0);
}

#[test]
fn names_that_nobody_uses_are_not_looked_up() {
    let dns = Dns::start();
    let one = on(ONE, 0, "one");
    dns.set("db.example", &[ONE]);
    let unused =
        manifests("db.example", one.addr().port()).raw(&external("other", "no.example", 1));
    let splitter = start(&unused, &dns, true);
    assert_eq!(splitter.get("a.test", "/").status, 200);
    let pods = Manifests::new()
        .main("web", "a.test", "/", "app")
        .service("app", &[one.addr()])
        .raw(&external("other", "db.example", 1));
    let only_pods = start(&pods, &dns, true);
    let asked = dns.asked();
    assert!(asked > 0);
    drop(splitter);
    let asked = dns.asked();
    for _ in 0..3 {
        assert_eq!(only_pods.get("a.test", "/").status, 200);
    }
    assert_eq!(dns.asked(), asked);
}

#[test]
fn a_canary_may_be_outside() {
    let dns = Dns::start();
    let (stable, next) = (Backend::named("stable"), on(ONE, 0, "next"));
    dns.set("next.example", &[ONE]);
    let manifests = Manifests::new()
        .main("web", "a.test", "/", "app")
        .canary(
            "c",
            "a.test",
            "/",
            "next",
            &[("canary-by-header", "x-next")],
        )
        .service("app", &[stable.addr()])
        .raw(&external("next", "next.example", next.addr().port()));
    let splitter = start(&manifests, &dns, true);
    assert_eq!(splitter.get("a.test", "/").text(), "stable");
    assert_eq!(
        splitter
            .get_with("a.test", "/", "x-next: always\r\n")
            .text(),
        "next"
    );
}
