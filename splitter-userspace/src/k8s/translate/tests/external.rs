//! Services without pods: names, and Services' own addresses.

use std::net::IpAddr;

use super::support::{codes, objects, problems_of};
use crate::config::ClassSettings;
use crate::k8s::{Resolution, Translation, translate};

/// An Ingress `i` before the Service `s`, port 80, with this spec.
fn yaml(spec: &str, notes: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\n\
         metadata: {{name: i, namespace: n, annotations: {{{notes}}}}}\n\
         spec:\n  ingressClassName: nginx\n  rules:\n  - http: {{paths: [{{path: /, pathType: Prefix, \
         backend: {{service: {{name: s, port: {{number: 80}}}}}}}}]}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {{name: s, namespace: n}}\nspec: {spec}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{name: s-1, namespace: n, labels: {{kubernetes.io/service-name: s}}}}\n\
         addressType: IPv4\nports: [{{port: 8080}}]\nendpoints: [{{addresses: [10.0.0.9]}}]\n"
    )
}

fn external(name: &str, ports: &str) -> String {
    yaml(
        &format!("{{type: ExternalName, externalName: {name:?}{ports}}}"),
        "",
    )
}

/// What comes of it when this is known of `db.example`.
fn known(yaml: &str, addresses: &[&str], error: Option<&str>, allow_local: bool) -> Translation {
    let mut objects = objects(yaml);
    let resolution = Resolution {
        addresses: addresses
            .iter()
            .map(|it| it.parse::<IpAddr>().unwrap())
            .collect(),
        error: error.map(Into::into),
    };
    objects.names.known.insert("db.example".into(), resolution);
    objects.names.allow_local = allow_local;
    translate(&objects, &ClassSettings::default())
}

fn endpoints(translation: &Translation) -> Vec<String> {
    let backend = &translation.snapshot.backends[0];
    let addrs = backend.endpoints.iter().map(|it| it.addr.to_string());
    addrs.collect()
}

#[test]
fn a_name_leads_to_its_addresses_on_the_target_port() {
    for (ports, port) in [
        ("", 80),
        (", ports: [{port: 80}]", 80),
        (", ports: [{port: 80, targetPort: 8443}]", 8443),
        (", ports: [{port: 80, targetPort: web}]", 80),
        (
            ", ports: [{port: 81, targetPort: 1}, {port: 80, targetPort: 2}]",
            2,
        ),
    ] {
        let yaml = external("DB.example.", ports);
        let translation = known(&yaml, &["10.0.0.2", "10.0.0.1"], None, false);
        assert_eq!(*translation.problems, [], "{ports}");
        let expected = [format!("10.0.0.1:{port}"), format!("10.0.0.2:{port}")];
        assert_eq!(endpoints(&translation), expected, "{ports}");
        assert_eq!(
            translation.names.iter().map(|it| &**it).collect::<Vec<_>>(),
            ["db.example"]
        );
    }
}

#[test]
fn a_name_that_was_not_looked_up_has_no_endpoints_and_no_fault() {
    let translation = translate(
        &objects(&external("a.example", "")),
        &ClassSettings::default(),
    );
    assert_eq!(*translation.problems, []);
    assert_eq!(endpoints(&translation), [""; 0]);
    assert_eq!(translation.snapshot.backends[0].fault, None);
    assert_eq!(translation.names.len(), 1);
}

#[test]
fn a_name_that_does_not_resolve_keeps_what_it_had() {
    let yaml = external("db.example", "");
    let field = "spec.externalName";
    let translation = known(&yaml, &["10.0.0.1"], Some("gone"), false);
    assert_eq!(endpoints(&translation), ["10.0.0.1:80"]);
    assert_eq!(
        problems_of(&translation, "s"),
        [format!("{field} external-name-unresolved")]
    );
    let translation = known(&yaml, &[], Some("gone"), false);
    assert_eq!(endpoints(&translation), [""; 0]);
    assert_eq!(
        problems_of(&translation, "s"),
        [format!("{field} !external-name-unresolved")]
    );
}

#[test]
fn names_lead_to_nothing_of_the_node_unless_that_is_allowed() {
    let yaml = external("db.example", "");
    let all = ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1"];
    let translation = known(&yaml, &all, None, false);
    assert_eq!(endpoints(&translation), ["10.0.0.1:80"]);
    assert_eq!(codes(&translation.problems), ["!external-name-local"; 3]);
    let translation = known(&yaml, &all, None, true);
    assert_eq!(endpoints(&translation).len(), 4);
    assert_eq!(*translation.problems, []);

    for name in [
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "127.0.0.1",
        "::1",
        "169.254.169.254",
    ] {
        let translation = known(&external(name, ""), &[], None, false);
        assert_eq!(
            codes(&translation.problems),
            ["!external-name-local"],
            "{name}"
        );
        assert_eq!(translation.names.len(), 0, "{name}");
        assert_eq!(endpoints(&translation), [""; 0]);
    }
}

#[test]
fn an_address_needs_no_look_up_and_nonsense_gets_none() {
    let translation = known(&external("10.1.2.3", ""), &[], None, false);
    assert_eq!(
        (translation.problems.len(), translation.names.len()),
        (0, 0)
    );
    assert_eq!(endpoints(&translation), ["10.1.2.3:80"]);
    for name in ["", "http://db.example", "db.example:80", "a b"] {
        let translation = known(&external(name, ""), &[], None, false);
        assert_eq!(
            codes(&translation.problems),
            ["!external-name-invalid"],
            "{name}"
        );
        assert_eq!(translation.names.len(), 0, "{name}");
    }
}

#[test]
fn a_service_without_an_address_of_its_own_is_asked_by_its_pods() {
    let note = "nginx.ingress.kubernetes.io/service-upstream: \"true\"";
    for (spec, endpoint, problems) in [
        (
            "{clusterIP: 10.96.0.1, ports: [{port: 80, targetPort: 8080}]}",
            "10.96.0.1:80",
            None,
        ),
        (
            "{clusterIP: \"fd00::1\", ports: [{port: 80}]}",
            "[fd00::1]:80",
            None,
        ),
        (
            "{clusterIP: None, ports: [{port: 80}]}",
            "10.0.0.9:8080",
            Some(()),
        ),
        ("{ports: [{port: 80}]}", "10.0.0.9:8080", Some(())),
    ] {
        let translation = translate(&objects(&yaml(spec, note)), &ClassSettings::default());
        assert_eq!(endpoints(&translation), [endpoint], "{spec}");
        let expected = problems.map(|()| "service-upstream-without-address");
        assert_eq!(codes(&translation.problems), expected.as_slice(), "{spec}");
    }
}
