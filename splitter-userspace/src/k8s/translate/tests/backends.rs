//! Services and EndpointSlices to Backends.

use super::support::{codes, main, objects, problems_of, run, show};
use crate::config::ClassSettings;
use crate::k8s::{Translation, translate};
use crate::model::{BackendFault, EndpointState};

const INGRESS: &str = "apiVersion: networking.k8s.io/v1\nkind: Ingress\n\
    metadata: {name: i, namespace: ns}\n\
    spec:\n  rules:\n  - {host: a, http: {paths: [{path: /, pathType: Prefix, backend: BACKEND}]}}\n";

const BY_NUMBER: &str = "{service: {name: s, port: {number: 80}}}";

fn translated(backend: &str, others: &str) -> Translation {
    let yaml = format!("{}---\n{others}", INGRESS.replace("BACKEND", backend));
    translate(&objects(&yaml), &ClassSettings::default())
}

fn service(spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: s, namespace: ns}}\nspec: {spec}\n---\n"
    )
}

fn slice(name: &str, rest: &str) -> String {
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}, namespace: ns, \
         labels: {{kubernetes.io/service-name: s}}}}\n{rest}\n---\n"
    )
}

/// The endpoints of the only Backend as text, draining ones in brackets.
fn endpoints(translation: &Translation) -> Vec<String> {
    assert_eq!(translation.snapshot.backends.len(), 1);
    let backend = &translation.snapshot.backends[0];
    assert_eq!(backend.fault, None);
    let shown = backend.endpoints.iter().map(|it| match it.state {
        EndpointState::Ready => it.addr.to_string(),
        EndpointState::Draining => format!("({})", it.addr),
    });
    shown.collect()
}

#[test]
fn port_by_number_and_by_name() {
    let service =
        service("{ports: [{name: http, port: 80, targetPort: 8080}, {name: admin, port: 81}]}");
    let slice = slice(
        "s1",
        "addressType: IPv4\nports: [{name: admin, port: 9000}, {name: http, port: 8080}]\n\
         endpoints: [{addresses: [10.0.0.1]}]",
    );
    let others = service + &slice;
    for (port, expected) in [
        ("{number: 80}", "10.0.0.1:8080"),
        ("{name: http}", "10.0.0.1:8080"),
        ("{number: 81}", "10.0.0.1:9000"),
        ("{name: admin}", "10.0.0.1:9000"),
    ] {
        let translation = translated(&format!("{{service: {{name: s, port: {port}}}}}"), &others);
        assert_eq!(endpoints(&translation), [expected]);
        assert_eq!(*translation.problems, []);
    }
}

#[test]
fn a_service_without_selector_or_cluster_address_or_port_name() {
    for spec in [
        "{ports: [{port: 80}]}",
        "{clusterIP: None, selector: {app: s}, ports: [{port: 80}]}",
    ] {
        for ports in ["[{port: 8080}]", "[{name: \"\", port: 8080}]"] {
            let slice = slice(
                "s1",
                &format!(
                    "addressType: IPv4\nports: {ports}\nendpoints: [{{addresses: [10.0.0.1]}}]"
                ),
            );
            let translation = translated(BY_NUMBER, &(service(spec) + &slice));
            assert_eq!(endpoints(&translation), ["10.0.0.1:8080"]);
        }
    }
}

#[test]
fn slices_are_merged_sorted_and_each_address_counts_once() {
    let others = service("{ports: [{name: http, port: 80}]}")
        + &slice(
            "s2",
            "addressType: IPv6\nports: [{name: http, port: 8080}]\n\
             endpoints: [{addresses: [\"fd00::2\", \"fd00::1\"]}, {addresses: [\"::ffff:10.0.0.9\"]}]",
        )
        + &slice(
            "s1",
            "addressType: IPv4\nports: [{name: http, port: 8080}]\n\
             endpoints: [{addresses: [10.0.0.10]}, {addresses: [10.0.0.9]}]",
        )
        + &slice(
            "s3",
            "addressType: IPv4\nports: [{name: http, port: 9090}]\nendpoints: [{addresses: [10.0.0.9]}]",
        );
    assert_eq!(
        endpoints(&translated(BY_NUMBER, &others)),
        [
            "10.0.0.9:8080",
            "10.0.0.9:9090",
            "10.0.0.10:8080",
            "[fd00::1]:8080",
            "[fd00::2]:8080"
        ]
    );
}

#[test]
fn conditions() {
    let rows = [
        ("{}", "10.0.0.1:8080"),
        ("{ready: true}", "10.0.0.1:8080"),
        ("{ready: null, serving: true}", "10.0.0.1:8080"),
        (
            "{ready: true, serving: true, terminating: true}",
            "10.0.0.1:8080",
        ),
        (
            "{ready: false, serving: true, terminating: true}",
            "(10.0.0.1:8080)",
        ),
        ("{ready: false, serving: true}", ""),
        ("{ready: false, serving: false, terminating: true}", ""),
        ("{ready: false, terminating: true}", ""),
        ("{ready: false}", ""),
    ];
    for (conditions, expected) in rows {
        let slice = slice(
            "s1",
            &format!(
                "addressType: IPv4\nports: [{{name: http, port: 8080}}]\n\
                 endpoints: [{{addresses: [10.0.0.1], conditions: {conditions}}}]"
            ),
        );
        let translation = translated(
            BY_NUMBER,
            &(service("{ports: [{name: http, port: 80}]}") + &slice),
        );
        assert_eq!(endpoints(&translation).join(" "), expected, "{conditions}");
        assert_eq!(*translation.problems, [], "{conditions}");
    }
}

#[test]
fn ready_in_one_slice_is_ready() {
    let with = |name: &str, conditions: &str| {
        let endpoint = format!("{{addresses: [10.0.0.1], conditions: {conditions}}}");
        slice(
            name,
            &format!("addressType: IPv4\nports: [{{port: 8080}}]\nendpoints: [{endpoint}]"),
        )
    };
    let draining = "{ready: false, serving: true, terminating: true}";
    for (first, second) in [("{ready: true}", draining), (draining, "{ready: true}")] {
        let others = service("{ports: [{port: 80}]}") + &with("s1", first) + &with("s2", second);
        assert_eq!(
            endpoints(&translated(BY_NUMBER, &others)),
            ["10.0.0.1:8080"]
        );
    }
}

#[test]
fn what_is_wrong_in_a_slice_is_left_out() {
    let others = service("{ports: [{port: 80}]}")
        + &slice(
            "names",
            "addressType: FQDN\nports: [{port: 1}]\nendpoints: [{addresses: [a.example]}]",
        )
        + &slice(
            "unsaid",
            "ports: [{port: 1}]\nendpoints: [{addresses: [10.0.0.9]}]",
        )
        + &slice(
            "bad",
            "addressType: IPv4\nports: [{port: 8080}, {port: 0}, {port: 70000}, {}]\n\
             endpoints: [{addresses: [10.0.0.1, ten, \"fd00::1\", 0.0.0.0, 224.0.0.1, 10.0.0.01]}]",
        );
    let translation = translated(BY_NUMBER, &others);
    assert_eq!(endpoints(&translation), ["10.0.0.1:8080"]);
    assert_eq!(
        problems_of(&translation, "names"),
        ["addressType !address-type-unsupported"]
    );
    assert_eq!(
        problems_of(&translation, "unsaid"),
        ["addressType !address-type-unsupported"]
    );
    assert_eq!(
        problems_of(&translation, "bad"),
        [
            "endpoints[0].addresses[1] !address-invalid",
            "endpoints[0].addresses[2] !address-invalid",
            "endpoints[0].addresses[3] !address-invalid",
            "endpoints[0].addresses[4] !address-invalid",
            "endpoints[0].addresses[5] !address-invalid",
            "ports[1].port !port-invalid",
            "ports[2].port !port-invalid",
            "ports[3].port !port-invalid",
        ]
    );
}

#[test]
fn udp_is_not_http() {
    let both = "{ports: [{name: d, port: 80, protocol: UDP}, {name: t, port: 80, protocol: TCP}]}";
    let slices = slice(
        "s1",
        "addressType: IPv4\nports: [{name: d, port: 1, protocol: UDP}, {name: t, port: 2}]\n\
         endpoints: [{addresses: [10.0.0.1]}]",
    );
    assert_eq!(
        endpoints(&translated(BY_NUMBER, &(service(both) + &slices))),
        ["10.0.0.1:2"]
    );
    let only = service("{ports: [{name: d, port: 80, protocol: UDP}]}") + &slices;
    assert_eq!(
        codes(&translated(BY_NUMBER, &only).problems),
        ["!port-not-found"]
    );
}

#[test]
fn references_to_nowhere_answer_503() {
    use BackendFault::{PortNotFound, ServiceNotFound, Unsupported};
    let there = service("{ports: [{name: http, port: 80}]}");
    let external = service("{type: ExternalName, externalName: a.example, ports: [{port: 81}]}");
    let rows = [
        (BY_NUMBER, "", ServiceNotFound, "!service-not-found"),
        (
            "{service: {name: s, port: {number: 81}}}",
            &*there,
            PortNotFound,
            "!port-not-found",
        ),
        (
            "{service: {name: s, port: {name: web}}}",
            &*there,
            PortNotFound,
            "!port-not-found",
        ),
        (
            "{service: {name: s, port: {name: \"80\"}}}",
            &*there,
            PortNotFound,
            "!port-not-found",
        ),
        (
            "{service: {name: s, port: {}}}",
            &*there,
            PortNotFound,
            "!port-missing",
        ),
        (
            "{service: {name: s}}",
            &*there,
            PortNotFound,
            "!port-missing",
        ),
        (
            "{service: {name: s, port: {number: 80, name: http}}}",
            &*there,
            PortNotFound,
            "!port-missing",
        ),
        (BY_NUMBER, &*external, PortNotFound, "!port-not-found"),
        (
            "{resource: {kind: Bucket, name: b}}",
            &*there,
            Unsupported,
            "!backend-unsupported",
        ),
        ("{}", &*there, Unsupported, "!backend-missing"),
        (
            "{service: {port: {number: 80}}}",
            &*there,
            Unsupported,
            "!backend-missing",
        ),
        (
            "{service: {name: s, port: {number: 80}}, resource: {kind: Bucket, name: b}}",
            &*there,
            Unsupported,
            "!backend-missing",
        ),
    ];
    for (backend, others, fault, code) in rows {
        let translation = translated(backend, others);
        assert_eq!(translation.snapshot.locations.len(), 1, "{backend}");
        assert_eq!(
            translation.snapshot.backends[0].fault,
            Some(fault),
            "{backend}"
        );
        assert!(!translation.snapshot.backends[0].is_available());
        let expected = format!("spec.rules[0].http.paths[0].backend {code}");
        assert_eq!(problems_of(&translation, "i"), [expected], "{backend}");
    }
}

#[test]
fn a_service_of_another_namespace_is_none() {
    let other = service("{ports: [{port: 80}]}").replace("namespace: ns", "namespace: other");
    assert_eq!(
        codes(&translated(BY_NUMBER, &other).problems),
        ["!service-not-found"]
    );
}

#[test]
fn missing_slices_and_port_names_are_pointed_out() {
    let there = service("{ports: [{name: http, port: 80}]}");
    let translation = translated(BY_NUMBER, &there);
    assert_eq!(endpoints(&translation), [""; 0]);
    assert_eq!(problems_of(&translation, "s"), [" no-endpoint-slice"]);
    let unnamed = slice(
        "s1",
        "addressType: IPv4\nports: [{port: 8080}]\nendpoints: [{addresses: [10.0.0.1]}]",
    );
    let translation = translated(BY_NUMBER, &(there.clone() + &unnamed));
    assert_eq!(endpoints(&translation), [""; 0]);
    assert_eq!(
        problems_of(&translation, "s"),
        ["spec.ports endpoint-port-missing"]
    );
    // Scaled to nothing is no fault.
    let empty = slice("s1", "addressType: IPv4\nports: null\nendpoints: null");
    assert_eq!(*translated(BY_NUMBER, &(there + &empty)).problems, []);
}

#[test]
fn two_spellings_of_a_port_are_two_backends() {
    let by_name = "{service: {name: m, port: {name: http}}}";
    let translation = run(&[main("i")
        .on("a", "/", "m")
        .backend("b", "/", "Prefix", by_name)]);
    assert_eq!(
        show(&translation.snapshot),
        ["a/ (Prefix): m=100", "b/ (Prefix): m=100"]
    );
    let keys: Vec<_> = translation
        .snapshot
        .backends
        .iter()
        .map(|it| it.key.to_string())
        .collect();
    assert_eq!(keys, ["ns-m-80", "ns-m-http"]);
}

#[test]
fn only_backends_in_use_are_in_the_snapshot() {
    let translation = run(&[main("i").on("a", "/", "m")]);
    assert_eq!(translation.snapshot.backends.len(), 1);
}
