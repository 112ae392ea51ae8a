//! What is split without HTTP: annotations of Services, and ConfigMaps that open ports.

use std::fmt::Write as _;

use super::support::objects;
use crate::config::{ClassSettings, L4Settings};
use crate::k8s::{Translation, Translator, translate};
use crate::model::{L4, L4SplitBy, Severity};

/// A Service of `ns` with an annotation `split` and others, and these ports, each `name number protocol`.
fn service(name: &str, annotations: &[(&str, &str)], ports: &[&str]) -> String {
    service_of(name, annotations, ports, "clusterIP: 10.96.0.7")
}

fn service_of(name: &str, annotations: &[(&str, &str)], ports: &[&str], spec: &str) -> String {
    let mut notes = String::new();
    for (key, value) in annotations {
        write!(
            notes,
            "splitter.io/{key}: {}, ",
            serde_json::to_string(value).unwrap()
        )
        .unwrap();
    }
    let port = |text: &&str, target: bool| {
        let mut words = text.split(' ');
        let (name, number, protocol) = (
            words.next().unwrap(),
            words.next().unwrap(),
            words.next().unwrap(),
        );
        let number: u16 = number.parse().unwrap();
        let number = if target { number + 1000 } else { number };
        let name = if name == "-" {
            String::new()
        } else {
            format!("name: {name}, ")
        };
        format!("{{{name}port: {number}, protocol: {protocol}}}")
    };
    let list = |target| {
        ports
            .iter()
            .map(|it| port(it, target))
            .collect::<Vec<_>>()
            .join(", ")
    };
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: ns, annotations: {{{notes}}}}}\n\
         spec: {{{spec}, ports: [{}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{name: {name}-1, namespace: ns, labels: {{kubernetes.io/service-name: {name}}}}}\n\
         addressType: IPv4\nports: [{}]\n\
         endpoints: [{{addresses: [10.0.0.1]}}, {{addresses: [10.0.0.2], conditions: {{ready: false}}}}]\n---\n",
        list(false),
        list(true),
    )
}

fn map(name: &str, entries: &[(&str, &str)]) -> String {
    let mut text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: in}}\ndata:\n"
    );
    for (key, value) in entries {
        writeln!(text, "  {key:?}: {value:?}").unwrap();
    }
    text + "---\n"
}

fn settings() -> ClassSettings {
    ClassSettings {
        l4: L4Settings {
            tcp_services: Some("in/tcp".parse().unwrap()),
            udp_services: Some("in/udp".parse().unwrap()),
            taken: vec![("--http", "0.0.0.0:80".parse().unwrap())],
        },
        ..ClassSettings::default()
    }
}

/// Without the ConfigMaps, of which these tests are not.
fn split(services: &[String]) -> Translation {
    translate(&objects(&services.concat()), &ClassSettings::default())
}

fn opened(tcp: &[(&str, &str)], udp: &[(&str, &str)], services: &[String]) -> Translation {
    let text = map("tcp", tcp) + &map("udp", udp) + &services.concat();
    translate(&objects(&text), &settings())
}

/// A line a Service port: `service/ns/app:80 north-south connection: stable=90@1 next=10@1`, with the
/// number of Endpoints.
fn shown(l4: &L4) -> Vec<String> {
    let services = l4.services.iter().map(|it| {
        let variants = it.variants.iter().map(|variant| {
            let (name, weight, count) = (&variant.name, variant.weight, variant.endpoints.len());
            format!(" {name}={weight}@{count}")
        });
        let scope = serde_json::to_value(it.scope).unwrap();
        let by = serde_json::to_value(it.split_by).unwrap();
        let text = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
        format!(
            "{} {} {}:{}",
            it.key,
            text(&scope),
            text(&by),
            variants.collect::<String>()
        )
    });
    let listeners = l4.listeners.iter().map(|it| {
        let key = &l4.service(it.service).unwrap().key;
        let proxy = match (it.accept_proxy, it.send_proxy) {
            (false, false) => "",
            (true, false) => " accept",
            (false, true) => " send",
            (true, true) => " accept send",
        };
        format!("{} {} -> {key}{proxy}", it.transport, it.port)
    });
    services.chain(listeners).collect()
}

/// Object, field and code of each Problem, but for Splits that no port leads to: most of these tests
/// open none.
fn problems(translation: &Translation) -> Vec<String> {
    let all = translation.problems.iter();
    let all = all.filter(|it| it.code != "split-unused");
    all.map(|it| {
        let mark = if it.severity == Severity::Error {
            "!"
        } else {
            ""
        };
        let field = it.field.replace("metadata.annotations.splitter.io/", "");
        format!("{} {field} {mark}{}", it.object.name, it.code)
    })
    .collect()
}

const WEB: &[&str] = &["web 80 TCP"];

#[test]
fn a_service_is_split_with_the_ports_of_the_same_name() {
    let ports = ["web 80 TCP", "dns 53 UDP"];
    let translation = split(&[
        service("app", &[("split", "app-canary=10, app-next=0.5")], &ports),
        service("app-canary", &[], &["dns 5353 UDP", "web 8080 TCP"]),
        service("app-next", &[], &ports),
    ]);
    assert_eq!(problems(&translation), [""; 0]);
    assert_eq!(
        shown(&translation.snapshot.l4),
        [
            "service/ns/app:53/UDP all connection: stable=895@2 app-canary=100@2 app-next=5@2",
            "service/ns/app:80 all connection: stable=895@2 app-canary=100@2 app-next=5@2",
        ]
    );
    let web = &translation.snapshot.l4.services[1];
    assert_eq!(
        web.cluster_addresses,
        ["10.96.0.7".parse::<std::net::IpAddr>().unwrap()]
    );
    let canary = &web.variants[1];
    assert_eq!(
        (canary.key.port, canary.endpoints[0].addr.port()),
        (8080, 9080)
    );
}

#[test]
fn scope_and_key_are_as_the_service_says() {
    let notes = [
        ("split", "n=5"),
        ("split-by", "source-address"),
        ("split-scope", "north-south"),
    ];
    let translation = split(&[service("app", &notes, WEB), service("n", &[], WEB)]);
    assert_eq!(problems(&translation), [""; 0]);
    assert_eq!(
        shown(&translation.snapshot.l4),
        ["service/ns/app:80 north-south source-address: stable=95@2 n=5@2"]
    );
}

#[test]
fn what_is_wrong_with_a_service_is_told_and_leaves_its_share_with_it() {
    let other = || service("n", &[], WEB);
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
    let cases: &[Case<'_>] = &[
        (&[("split", "n")], "split !split-invalid", ""),
        (&[("split", "n=60,m=60")], "split !split-invalid", ""),
        (
            &[("split", "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1")],
            "split !split-invalid",
            "",
        ),
        (
            &[("split", "gone=10,n=5")],
            "split !service-not-found",
            "stable=95@2 n=5@2",
        ),
        (
            &[("split", "app=10,n=5")],
            "split !split-self",
            "stable=95@2 n=5@2",
        ),
        (
            &[("split", "n=5"), ("split-by", "port")],
            "split-by !split-by-invalid",
            "stable=95@2 n=5@2",
        ),
        (
            &[("split", "n=5"), ("split-scope", "x")],
            "split-scope !split-scope-invalid",
            "stable=95@2 n=5@2",
        ),
        (&[("split-scope", "all")], "split-scope split-missing", ""),
        (&[("splitt", "n=5")], "splitt annotation-unknown", ""),
    ];
    for (notes, problem, variants) in cases {
        let translation = split(&[service("app", notes, WEB), other()]);
        assert_eq!(
            problems(&translation),
            [format!("app {problem}")],
            "{notes:?}"
        );
        let shown = shown(&translation.snapshot.l4);
        match *variants {
            "" => assert_eq!(shown, [""; 0], "{notes:?}"),
            variants => assert!(shown[0].ends_with(variants), "{notes:?}: {shown:?}"),
        }
    }
}

#[test]
fn ports_that_do_not_fit_are_told_for_each() {
    let translation = split(&[
        service(
            "app",
            &[("split", "n=10")],
            &["web 80 TCP", "api 81 TCP", "sig 82 SCTP"],
        ),
        service("n", &[], &["web 80 TCP", "api 81 UDP"]),
    ]);
    assert_eq!(
        problems(&translation),
        [
            "app split !split-port-missing",
            "app spec.ports[2].protocol split-protocol-unsupported"
        ]
    );
    assert_eq!(
        shown(&translation.snapshot.l4),
        [
            "service/ns/app:80 all connection: stable=90@2 n=10@2",
            "service/ns/app:81 all connection: stable=100@2",
        ]
    );
    let missing = translation
        .problems
        .iter()
        .find(|it| it.code == "split-port-missing")
        .unwrap();
    assert!(
        missing.message.contains("it has 80 (web)"),
        "{}",
        missing.message
    );
}

#[test]
fn what_the_service_says_of_its_clients_holds_for_its_split() {
    let split_of = |spec: &str, more: &[(&str, &str)]| {
        let annotations = [&[("split", "next=10")], more].concat();
        let services = [
            service_of("app", &annotations, WEB, spec),
            service("next", &[], WEB),
        ];
        split(&services)
    };
    let by = |translation: &Translation| translation.snapshot.l4.services[0].split_by;
    let sticky = "clusterIP: 10.96.0.7, sessionAffinity: ClientIP";
    assert_eq!(by(&split_of(sticky, &[])), L4SplitBy::SourceAddress);
    // What is written about the Split itself counts more.
    let asked = [("split-by", "connection")];
    assert_eq!(by(&split_of(sticky, &asked)), L4SplitBy::Connection);
    let plain = "clusterIP: 10.96.0.7, sessionAffinity: None";
    assert_eq!(by(&split_of(plain, &[])), L4SplitBy::Connection);
}

#[test]
fn addresses_that_lead_to_a_nodes_own_endpoints_are_left_to_the_cluster() {
    let spec = "clusterIP: 10.96.0.7, externalIPs: [198.51.100.7]";
    let found = |policies: &str, scope: &str| {
        let annotations = [("split", "next=10"), ("split-scope", scope)];
        let services = [
            service_of("app", &annotations, WEB, &format!("{spec}{policies}")),
            service("next", &[], WEB),
        ];
        let translation = split(&services);
        let app = &translation.snapshot.l4.services[0];
        let counts = (app.cluster_addresses.len(), app.external_addresses.len());
        (counts, problems(&translation))
    };
    assert_eq!(found("", "all"), ((1, 1), vec![]));
    let inside = ", internalTrafficPolicy: Local";
    let told = "app spec.internalTrafficPolicy split-local-only".to_owned();
    assert_eq!(found(inside, "all"), ((0, 1), vec![told]));
    assert_eq!(found(inside, "north-south"), ((0, 1), vec![]));
    let outside = ", externalTrafficPolicy: Local";
    let told = "app spec.externalTrafficPolicy split-local-only".to_owned();
    assert_eq!(found(outside, "all"), ((1, 0), vec![told]));
    assert_eq!(found(outside, "east-west"), ((1, 0), vec![]));
}

#[test]
fn external_and_headless_services_are_told() {
    let external = "type: ExternalName, externalName: db.example";
    let translation = split(&[
        service_of("app", &[("split", "n=10")], WEB, external),
        service("n", &[], WEB),
        service("b", &[("split", "app=10")], WEB),
        service_of(
            "c",
            &[("split", "n=10"), ("split-scope", "east-west")],
            WEB,
            "clusterIP: None",
        ),
    ]);
    assert_eq!(
        problems(&translation),
        [
            "app split !split-external-name",
            "b split !split-external-name",
            "c split-scope split-headless",
        ]
    );
    let headless = &translation.snapshot.l4.services[1];
    assert_eq!(
        (&*headless.key.service, headless.cluster_addresses.len()),
        ("c", 0)
    );
}

#[test]
fn ports_are_opened_as_ingress_nginx_does() {
    let translation = opened(
        &[
            ("5432", "ns/db:5432"),
            ("5433", "ns/db:psql:PROXY"),
            ("5434", "ns/db:psql::proxy"),
            ("5435", "ns/db:5432:PROXY:PROXY"),
        ],
        &[("53", "ns/db:dns")],
        &[
            service("db", &[("split", "n=10")], &["psql 5432 TCP", "dns 53 UDP"]),
            service("n", &[], &["psql 5432 TCP", "dns 53 UDP"]),
        ],
    );
    assert_eq!(problems(&translation), [""; 0]);
    assert_eq!(
        shown(&translation.snapshot.l4),
        [
            "service/ns/db:53/UDP all connection: stable=90@2 n=10@2",
            "service/ns/db:5432 all connection: stable=90@2 n=10@2",
            "TCP 5432 -> service/ns/db:5432",
            "TCP 5433 -> service/ns/db:5432 accept",
            "TCP 5434 -> service/ns/db:5432 send",
            "TCP 5435 -> service/ns/db:5432 accept send",
            "UDP 53 -> service/ns/db:53/UDP",
        ]
    );
}

#[test]
fn a_bad_entry_opens_nothing_and_the_others_stay() {
    let external = "type: ExternalName, externalName: db.example";
    let translation = opened(
        &[
            ("80", "ns/db:5432"),
            ("http", "ns/db:5432"),
            ("70000", "ns/db:5432"),
            ("5000", "ns/db"),
            ("5001", "db:5432"),
            ("5002", "ns/db:5433"),
            ("5003", "ns/gone:1"),
            ("5004", "ns/out:1"),
            ("5005", "ns/db:5432:PROXY:PROXY:PROXY"),
            ("5006", "ns/db:dns"),
            ("5007", "ns/db:5432:prox"),
            ("05007", "ns/db:5432"),
        ],
        &[("80", "ns/db:dns:PROXY")],
        &[
            service("db", &[], &["psql 5432 TCP", "dns 53 UDP"]),
            service_of("out", &[], WEB, external),
        ],
    );
    let mut found = problems(&translation);
    found.sort();
    let mut expected = [
        "tcp data.80 !l4-port-taken",
        "tcp data.http !l4-port-invalid",
        "tcp data.70000 !l4-port-invalid",
        "tcp data.5000 !l4-entry-invalid",
        "tcp data.5001 !l4-entry-invalid",
        "tcp data.5002 !port-not-found",
        "tcp data.5003 !service-not-found",
        "tcp data.5004 !l4-external-name",
        "tcp data.5005 !l4-entry-invalid",
        "tcp data.5006 !port-not-found",
        "tcp data.5007 l4-proxy-invalid",
        "tcp data.5007 !l4-port-twice",
        "udp data.80 l4-proxy-invalid",
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(
        shown(&translation.snapshot.l4)[2..],
        [
            "TCP 5007 -> service/ns/db:5432",
            "UDP 80 -> service/ns/db:53/UDP"
        ]
    );
}

#[test]
fn config_maps_that_are_not_there_and_services_without_endpoints_are_told() {
    let bare = "apiVersion: v1\nkind: Service\nmetadata: {name: db, namespace: ns}\n\
                spec: {ports: [{port: 5432}]}\n---\n";
    let text = map("tcp", &[("5432", "ns/db:5432")]) + bare;
    let translation = translate(&objects(&text), &settings());
    assert_eq!(
        problems(&translation),
        ["db  l4-no-endpoints", "udp  configmap-not-found"]
    );
    assert_eq!(
        shown(&translation.snapshot.l4),
        [
            "service/ns/db:5432 all connection: stable=1@0",
            "TCP 5432 -> service/ns/db:5432"
        ]
    );
}

#[test]
fn what_did_not_change_is_the_same_allocation() {
    let at = |share: &str| {
        let text = map("tcp", &[("5432", "ns/db:5432")])
            + &map("udp", &[])
            + &service("db", &[("split", share)], &["psql 5432 TCP"])
            + &service("n", &[], &["psql 5432 TCP"])
            + &service("other", &[("split", "n=5")], &["psql 5432 TCP"]);
        objects(&text)
    };
    let mut translator = Translator::default();
    let first = translator.translate(&at("n=10"), &settings()).snapshot.l4;
    let next = translator.translate(&at("n=20"), &settings()).snapshot.l4;
    let same = |index: usize| std::sync::Arc::ptr_eq(&first.services[index], &next.services[index]);
    assert_eq!((same(0), same(1)), (false, true));
    let endpoints = |l4: &L4| l4.services[0].variants[1].endpoints.clone();
    assert!(std::sync::Arc::ptr_eq(
        &endpoints(&first),
        &endpoints(&next)
    ));
    assert_eq!(next, translate(&at("n=20"), &settings()).snapshot.l4);
}

#[test]
fn a_split_that_nothing_follows_is_told() {
    let unused = |tcp: &[(&str, &str)], scope: &str, address: &str| {
        let notes = [("split", "n=10"), ("split-scope", scope)];
        let services = [
            service_of("db", &notes, &["sql 5432 TCP"], address),
            service("n", &[], &["sql 5432 TCP"]),
        ];
        let translation = opened(tcp, &[], &services);
        let all = translation.problems.iter();
        all.filter(|it| it.code == "split-unused").count()
    };
    let (own, none) = ("clusterIP: 10.96.0.1", "clusterIP: None");
    let tcp = [("5432", "ns/db:5432")];
    for (opened, scope, address, told) in [
        (&tcp[..], "all", none, 0),
        (&tcp, "north-south", own, 0),
        (&tcp, "east-west", own, 0),
        (&tcp, "east-west", none, 1),
        (&[], "all", own, 0),
        (&[], "all", none, 1),
        (&[], "north-south", own, 1),
    ] {
        assert_eq!(unused(opened, scope, address), told, "{scope} {address}");
    }
}
