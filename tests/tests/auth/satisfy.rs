use std::net::{IpAddr, Ipv4Addr};

use splitter_tests::backend::Backend;
use splitter_tests::client::{Answer, Client};
use splitter_tests::instance::Splitter;

use super::{ASKS, basic, before};

fn from(splitter: &Splitter, last: u8, fields: &str) -> Answer {
    let source = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    let mut client = Client::connect_from(source, splitter.http());
    client.get_with("a.test", "/", fields)
}

fn site(backend: &Backend, more: &[(&str, &str)]) -> Splitter {
    before(backend, &[&ASKS[..], more].concat())
}

#[test]
fn all_must_be_passed_unless_it_says_any() {
    let backend = Backend::named("app");
    let list = ("allowlist-source-range", "127.0.0.1");
    let right = basic("ann", "secret");
    let wrong = basic("ann", "x");
    let all = site(&backend, &[list]);
    for (last, fields, status) in [(1, &right, 200), (1, &wrong, 401), (2, &right, 403)] {
        assert_eq!(from(&all, last, fields).status, status, "{last}");
    }
    let any = site(&backend, &[list, ("satisfy", "any")]);
    let none = String::new();
    for (last, fields, status) in [
        (1, &none, 200),
        (1, &wrong, 200),
        (2, &right, 200),
        (2, &wrong, 401),
        (2, &none, 401),
    ] {
        assert_eq!(from(&any, last, fields).status, status, "{last} {fields}");
    }
    assert!(from(&any, 2, &none).field("www-authenticate").is_some());
    assert_eq!(
        any.faults("address-denied"),
        0.0,
        "401 is the one that counts"
    );
}

#[test]
fn a_good_password_beats_a_deny_list_as_in_ingress_nginx() {
    let backend = Backend::named("app");
    let notes = [("denylist-source-range", "127.0.0.2"), ("satisfy", "any")];
    let splitter = site(&backend, &notes);
    assert_eq!(from(&splitter, 2, "").status, 401);
    assert_eq!(from(&splitter, 2, &basic("bob", "secret")).status, 200);
    let undecided = from(&splitter, 1, "").status;
    assert_eq!(undecided, 401, "nobody is let in for not being denied");
}

#[test]
fn preflights_and_redirects_come_before_it() {
    let backend = Backend::named("app");
    let cors = site(&backend, &[("enable-cors", "true")]);
    let mut client = cors.client();
    client.send("OPTIONS / HTTP/1.1\r\nHost: a.test\r\nOrigin: https://b.test\r\n\r\n");
    assert_eq!(client.answer("OPTIONS").status, 204);
    let refused = cors.get_with("a.test", "/", "Origin: https://b.test\r\n");
    assert_eq!(refused.status, 401);
    assert!(refused.field("access-control-allow-origin").is_some());
    let moved = site(&backend, &[("permanent-redirect", "https://c.test/")]);
    assert_eq!(moved.get("a.test", "/").status, 301);
    assert_eq!(backend.seen().len(), 0);
}
