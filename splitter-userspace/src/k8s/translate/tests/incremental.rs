//! Translating what has changed gives what translating everything gives.

use std::net::IpAddr;
use std::sync::Arc;

use fastrand::Rng;

use super::support::{Ing, canary, main, objects};
use crate::config::{ClassSettings, Defaults};
use crate::k8s::{Objects, Resolution, Translator, translate};

/// Sequences of changes; each begins with nothing.
const SEQUENCES: u64 = 60;

/// Changes in each.
const STEPS: usize = 40;

const HOSTS: [&str; 9] = [
    "a.test",
    "www.a.test",
    "b.test",
    "*.test",
    "x.b.test",
    "*.b.test",
    "c.test",
    "",
    "bad host",
];
const PATHS: [&str; 6] = [
    "/",
    "/x",
    "/x/",
    "/y/.*",
    "/z",
    "/.well-known/acme-challenge",
];
const KINDS: [&str; 3] = ["Exact", "Prefix", "ImplementationSpecific"];
const SERVICES: [&str; 5] = ["m", "n", "c", "d", "away"];
const SECRETS: [&str; 4] = ["ca", "cert", "users", "keys"];

/// Annotations that have a say in more than their own path, and some that have not.
const NOTES: [(&str, &[&str]); 18] = [
    ("server-alias", &["c.test", "d.test,x.b.test", "?"]),
    ("from-to-www-redirect", &["true", "perhaps"]),
    ("use-regex", &["true"]),
    ("rewrite-target", &["/$1", "/"]),
    ("app-root", &["/x", "x"]),
    ("default-backend", &["m", "missing"]),
    ("service-upstream", &["true"]),
    ("auth-tls-secret", &["ns/ca", "ns/missing"]),
    ("ssl-redirect", &["false"]),
    ("affinity", &["cookie"]),
    ("limit-rps", &["5", "many"]),
    ("canary-by-header", &["x-c"]),
    ("custom-headers", &["ns/fields", "missing"]),
    ("satisfy", &["any"]),
    ("ssl-passthrough", &["true"]),
    ("ssl-ciphers", &["ECDHE-RSA-AES128-GCM-SHA256", "none"]),
    ("enable-global-auth", &["false"]),
    ("proxy-ssl-secret", &["ns/ca"]),
];

/// Annotations that read an object only beside others, under our own prefix, which some of them need.
const TOGETHER: [&[(&str, &str)]; 12] = [
    &[("auth-type", "basic"), ("auth-secret", "users")],
    &[
        ("auth-type", "basic"),
        ("auth-secret", "users"),
        ("auth-secret-type", "auth-map"),
    ],
    &[
        ("jwt-issuer", "i"),
        ("jwt-audiences", "a"),
        ("jwt-jwks-secret", "keys"),
    ],
    &[
        ("jwt-issuer", "i"),
        ("jwt-audiences", "a"),
        ("jwt-jwks-configmap", "fields"),
    ],
    &[
        ("jwt-issuer", "i"),
        ("jwt-audiences", "a"),
        ("jwt-jwks-url", "https://id.test/keys"),
        ("jwt-jwks-ca-secret", "ca"),
    ],
    &[("auth-url", "http://m.ns.svc.cluster.local/x")],
    &[
        ("auth-url", "https://out.example/x"),
        ("auth-url-ca-secret", "ca"),
    ],
    &[
        ("auth-url", "http://$host/x"),
        ("auth-proxy-set-headers", "fields"),
        ("auth-signin", "/in"),
    ],
    &[("backend-protocol", "HTTPS"), ("proxy-ssl-secret", "ns/ca")],
    &[
        ("backend-protocol", "GRPCS"),
        ("proxy-ssl-secret", "ns/ca"),
        ("proxy-ssl-verify", "on"),
        ("proxy-ssl-name", "pods.test"),
    ],
    &[("auth-tls-secret", "ns/ca"), ("auth-tls-match-cn", "CN=a")],
    &[("ssl-protocols", "TLSv1.3"), ("traffic-class", "east-west")],
];

/// What is said for all Ingresses, beside which headers a ConfigMap may set.
const DEFAULTS: [&[(&str, &str)]; 6] = [
    &[],
    &[("global-auth-url", "http://n.ns.svc/x")],
    &[("no-auth-locations", "/x,/z")],
    &[("ssl-protocols", "TLSv1.2"), ("proxy-body-size", "1m")],
    &[
        ("ssl-redirect", "false"),
        ("allowlist-source-range", "nobody"),
    ],
    &[("service-upstream", "true"), ("load-balance", "ewma")],
];

fn one<'a>(random: &mut Rng, all: &[&'a str]) -> &'a str {
    all[random.usize(..all.len())]
}

fn ingress(random: &mut Rng, name: &str) -> Ing {
    let mut ingress = match random.u8(..3) {
        0 => canary(name).weight(&random.u8(..110).to_string()),
        _ => main(name),
    };
    if random.bool() {
        ingress = ingress.at(random.u32(1..6));
    }
    match random.u8(..12) {
        0 => ingress = ingress.class(Some("other")),
        1 => ingress = ingress.class(None),
        _ => {}
    }
    let paths = random.usize(..4);
    if paths == 0 {
        ingress = ingress.bare("c.test");
    }
    for _ in 0..paths {
        let (host, path) = (one(random, &HOSTS), one(random, &PATHS));
        let (kind, service) = (one(random, &KINDS), one(random, &SERVICES));
        ingress = match random.u8(..8) {
            0 => ingress.bare(host),
            1 => ingress.backend(
                host,
                path,
                kind,
                &format!("{{service: {{name: {service}, port: {{name: http}}}}}}"),
            ),
            _ => ingress.path(host, path, kind, service),
        };
    }
    if random.u8(..5) == 0 {
        ingress = ingress.default_to(one(random, &SERVICES));
    }
    ingress = match random.u8(..6) {
        0 => ingress.tls(one(random, &HOSTS)),
        1 => ingress.tls_of(one(random, &HOSTS), one(random, &SECRETS)),
        _ => ingress,
    };
    let mut noted = Vec::new();
    for _ in 0..random.usize(..3) {
        let (note, values) = NOTES[random.usize(..NOTES.len())];
        if !noted.contains(&note) {
            noted.push(note);
            ingress = ingress.note(note, one(random, values));
        }
    }
    if random.u8(..3) == 0 {
        let together = TOGETHER[random.usize(..TOGETHER.len())];
        for (note, value) in together.iter().filter(|(note, _)| !noted.contains(note)) {
            ingress = ingress.raw_note(&format!("splitter.io/{note}"), value);
        }
    }
    ingress
}

fn defaults(random: &mut Rng) -> Arc<Defaults> {
    let allowed = ("global-allowed-response-headers", "x-a, x-b");
    let values = DEFAULTS[random.usize(..DEFAULTS.len())].iter();
    let values = values.chain([&allowed]);
    Arc::new(Defaults {
        values: values
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..Defaults::default()
    })
}

fn service(random: &mut Rng, name: &str) -> String {
    let spec = match random.u8(..6) {
        0 => "{type: ExternalName, externalName: out.example}".to_owned(),
        1 => "{ports: [{name: other, port: 81}]}".to_owned(),
        2 => "{clusterIP: 10.9.0.1, ports: [{name: http, port: 80}]}".to_owned(),
        _ => "{ports: [{name: http, port: 80}]}".to_owned(),
    };
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: ns}}\nspec: {spec}\n"
    )
}

fn slice(random: &mut Rng, name: &str, service: &str) -> String {
    let port = one(random, &["http", "http", "http", "else"]);
    let addresses = (0..random.u8(..4)).map(|_| match random.u8(..9) {
        0 => "{addresses: [nowhere]}".to_owned(),
        1 => {
            "{addresses: [10.0.0.9], conditions: {ready: false, serving: true, terminating: true}}"
                .to_owned()
        }
        n => format!("{{addresses: [10.0.0.{n}]}}"),
    });
    let addresses: Vec<String> = addresses.collect();
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}, \
         namespace: ns, labels: {{kubernetes.io/service-name: {service}}}}}\naddressType: IPv4\n\
         ports: [{{name: {port}, port: 8080}}]\nendpoints: [{}]\n",
        addresses.join(", ")
    )
}

fn secret(random: &mut Rng, name: &str) -> String {
    let key = one(random, &["ca.crt", "tls.crt", "auth", "jwks"]);
    let value = random.u8(..4);
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: ns}}\n\
         stringData: {{{key}: \"{value}\"}}\n"
    )
}

fn config_map(random: &mut Rng) -> String {
    let name = one(random, &["x-a", "x-b", "x c", "jwks"]);
    let value = random.u8(..3);
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: fields, namespace: ns}}\n\
         data: {{{name}: \"{value}\"}}\n"
    )
}

fn class(random: &mut Rng) -> String {
    let default = random.bool();
    let controller = one(random, &["k8s.io/ingress-nginx", "example.com/other"]);
    let name = one(random, &["nginx", "other"]);
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {{name: {name}, \
         annotations: {{ingressclass.kubernetes.io/is-default-class: \"{default}\"}}}}\n\
         spec: {{controller: {controller}}}\n"
    )
}

/// Puts what is new in the place of what has the same name, or takes that away.
macro_rules! put {
    ($objects:ident, $kind:ident, $new:expr, $gone:expr) => {{
        let new = $new.$kind.iter().next().unwrap().clone();
        let mut all: Vec<_> = $objects.$kind.iter().cloned().collect();
        match all.iter().position(|it| it.name() == new.name()) {
            // As the store of a cluster does it, or by a new list in any order.
            Some(place) if !$gone && all.len() % 3 > 0 => $objects.$kind[place] = new,
            Some(place) => {
                all.swap_remove(place);
                if !$gone {
                    all.insert(all.len() / 2, new);
                }
                $objects.$kind = all.into_iter().collect();
            }
            None if $gone => {}
            None if all.len() % 3 > 0 => $objects.$kind.extend([new]),
            None => {
                all.insert(all.len() / 2, new);
                $objects.$kind = all.into_iter().collect();
            }
        }
    }};
}

fn change(all: &mut Objects, settings: &mut ClassSettings, random: &mut Rng) {
    let gone = random.u8(..5) == 0;
    match random.u8(..20) {
        0..=8 => {
            let name = format!("i{}", random.u8(..9));
            put!(
                all,
                ingresses,
                objects(&ingress(random, &name).yaml()),
                gone
            );
        }
        9..=11 => {
            let name = one(random, &SERVICES);
            put!(all, services, objects(&service(random, name)), gone);
        }
        12..=15 => {
            let service = one(random, &SERVICES);
            let name = format!("{service}-{}", random.u8(..2));
            put!(all, slices, objects(&slice(random, &name, service)), gone);
        }
        16 => put!(all, config_maps, objects(&config_map(random)), gone),
        17 => {
            let name = one(random, &SECRETS);
            put!(all, secrets, objects(&secret(random, name)), gone);
        }
        18 => {
            let addresses: Vec<IpAddr> = vec![[10, 1, 0, random.u8(1..4)].into()];
            let error = random.bool().then(|| Arc::from("no such name"));
            let known = Resolution { addresses, error };
            all.names.known.insert("out.example".into(), known);
        }
        _ => match random.u8(..7) {
            0 => put!(all, classes, objects(&class(random)), gone),
            4 => settings.defaults = defaults(random),
            5 => settings.ssl_passthrough = !settings.ssl_passthrough,
            6 => settings.upstream_tls_verify = !settings.upstream_tls_verify,
            1 => settings.strict_nginx = !settings.strict_nginx,
            2 => all.names.allow_local = !all.names.allow_local,
            _ => settings.without_class = !settings.without_class,
        },
    }
}

#[test]
fn any_changes_come_to_what_all_objects_come_to() {
    let mut reused = 0;
    for seed in 0..SEQUENCES {
        let mut random = Rng::with_seed(seed);
        let mut settings = ClassSettings {
            defaults: defaults(&mut random),
            ..ClassSettings::default()
        };
        let mut all = Objects::default();
        let mut translator = Translator::default();
        let mut before = translate(&all, &settings);
        for step in 0..STEPS {
            for _ in 0..random.u8(1..4) {
                change(&mut all, &mut settings, &mut random);
            }
            let whole = translate(&all, &settings);
            let followed = translator.translate(&all, &settings);
            assert_eq!(followed, whole, "sequence {seed}, step {step}");
            let parted = Translator::default().translate(&all, &settings);
            assert_eq!(parted, whole, "sequence {seed}, step {step}, from nothing");
            let old = before.snapshot.locations.iter();
            let kept = old.filter(|old| {
                let new = &followed.snapshot.locations;
                new.iter().any(|new| Arc::ptr_eq(old, new))
            });
            reused += kept.count();
            before = followed;
        }
    }
    assert!(reused > 1000, "only {reused} Locations were kept");
}

/// Objects on hosts of their own.
fn apart(count: usize) -> Objects {
    let mut yaml = Vec::new();
    for number in 0..count {
        let (host, service) = (format!("h{number}.test"), format!("s{number}"));
        yaml.push(main(&format!("m{number}")).on(&host, "/", &service).yaml());
        let canary = canary(&format!("c{number}")).weight("10");
        yaml.push(canary.on(&host, "/", "canary").yaml());
        yaml.push(super::support::service("ns", &service));
    }
    yaml.push(super::support::service("ns", "canary"));
    objects(&yaml.join("---\n"))
}

#[test]
fn a_weight_touches_its_location_and_an_endpoint_its_backend() {
    let settings = ClassSettings::default();
    let mut all = apart(20);
    let mut translator = Translator::default();
    let first = translator.translate(&all, &settings).snapshot;

    let heavier = canary("c7").weight("20").on("h7.test", "/", "canary");
    put!(all, ingresses, objects(&heavier.yaml()), false);
    let second = translator.translate(&all, &settings).snapshot;
    let pairs = first.locations.iter().zip(&second.locations);
    let changed: Vec<_> = pairs.filter(|(a, b)| !Arc::ptr_eq(a, b)).collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].1.split.variants[1].weight, 20);
    let same = |(a, b): (&Arc<_>, &Arc<_>)| Arc::ptr_eq(a, b);
    assert!(first.backends.iter().zip(&second.backends).all(same));

    let mut random = Rng::with_seed(1);
    let moved = loop {
        let moved = objects(&slice(&mut random, "s7-1", "s7"));
        if moved.slices[0].object != all.slices[7].object {
            break moved;
        }
    };
    put!(all, slices, moved, false);
    let third = translator.translate(&all, &settings).snapshot;
    assert!(
        second
            .locations
            .iter()
            .zip(&third.locations)
            .all(|(a, b)| Arc::ptr_eq(a, b))
    );
    let pairs = second.backends.iter().zip(&third.backends);
    let changed: Vec<_> = pairs.filter(|(a, b)| !Arc::ptr_eq(a, b)).collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(&*changed[0].1.key.service, "s7");
}

#[test]
fn what_is_new_on_one_host_leaves_the_others_as_they_were() {
    let settings = ClassSettings::default();
    let mut all = apart(20);
    let mut translator = Translator::default();
    let first = translator.translate(&all, &settings).snapshot;
    // Its Service is in the middle of the order, so that numbers of Backends change.
    let new = main("new").on("h5.test", "/new", "s5a").yaml();
    let new = objects(&[new, super::support::service("ns", "s5a")].join("---\n"));
    all.ingresses.extend(new.ingresses.iter().cloned());
    all.services.extend(new.services.iter().cloned());
    all.slices.extend(new.slices.iter().cloned());
    let second = translator.translate(&all, &settings).snapshot;
    assert_eq!(second.locations.len(), 21);
    assert_eq!(second, translate(&all, &settings).snapshot);
    let kept = first.locations.iter().filter(|old| {
        let mut new = second.locations.iter();
        new.any(|new| Arc::ptr_eq(old, new))
    });
    // Those whose Backends come before the new one.
    assert!(kept.count() > 0);
}
