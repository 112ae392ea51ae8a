use std::net::SocketAddr;

use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// A Service whose own address is `own` and whose pod is `pod`.
fn service(name: &str, own: SocketAddr, pod: SocketAddr) -> String {
    let (ip, port) = (own.ip(), own.port());
    let (pod_ip, pod_port) = (pod.ip(), pod.port());
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: demo}}\n\
         spec: {{clusterIP: {ip}, ports: [{{name: http, port: {port}}}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{name: {name}-1, namespace: demo, \
         labels: {{kubernetes.io/service-name: {name}}}}}\n\
         addressType: IPv4\nports: [{{name: http, port: {pod_port}}}]\n\
         endpoints: [{{addresses: [\"{pod_ip}\"]}}]"
    )
}

fn ingress(name: &str, service: &str, notes: &str) -> String {
    let prefix = "nginx.ingress.kubernetes.io";
    let notes: Vec<_> = notes.split_whitespace().collect();
    let notes = notes.iter().map(|note| {
        let (key, value) = note.split_once('=').unwrap();
        format!("{prefix}/{key}: {value:?}, ")
    });
    let notes: String = notes.collect();
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\n\
         metadata: {{name: {name}, namespace: demo, annotations: {{{notes}}}}}\n\
         spec:\n  rules:\n  - {{host: a.test, http: {{paths: [{{path: /, pathType: Prefix, \
         backend: {{service: {{name: {service}, port: {{name: http}}}}}}}}]}}}}"
    )
}

/// Who answers without and with the canary's header: the Service or its pod, of which side.
fn answers(main: &str, canary: &str) -> (String, String, Vec<String>) {
    let backends = ["app-own", "app-pod", "next-own", "next-pod"].map(Backend::named);
    let [app_own, app_pod, next_own, next_pod] = &backends;
    let manifests = Manifests::new()
        .raw(&ingress("web", "app", main))
        .raw(&ingress(
            "c",
            "next",
            &format!("canary=true canary-by-header=x-next {canary}"),
        ))
        .raw(&service("app", app_own.addr(), app_pod.addr()))
        .raw(&service("next", next_own.addr(), next_pod.addr()));
    let splitter = Splitter::start(&manifests);
    let stable = splitter.get("a.test", "/").text();
    let next = splitter
        .get_with("a.test", "/", "x-next: always\r\n")
        .text();
    (stable, next, splitter.problems())
}

#[test]
fn the_services_address_is_asked_and_a_canary_inherits_that() {
    for (main, canary, stable, next) in [
        ("", "", "app-pod", "next-pod"),
        ("service-upstream=false", "", "app-pod", "next-pod"),
        ("service-upstream=true", "", "app-own", "next-own"),
        (
            "service-upstream=true",
            "service-upstream=false",
            "app-own",
            "next-pod",
        ),
        ("", "service-upstream=true", "app-pod", "next-own"),
    ] {
        let (answered, forced, problems) = answers(main, canary);
        assert_eq!((&*answered, &*forced), (stable, next), "{main} {canary}");
        assert_eq!(problems, [""; 0], "{main} {canary}");
    }
}

#[test]
fn a_bad_value_is_reported_and_counts_as_not_set() {
    let (stable, next, problems) = answers("service-upstream=yes", "service-upstream=on");
    assert_eq!((&*stable, &*next), ("app-pod", "next-pod"));
    let code = "service-upstream-invalid";
    assert_eq!(problems, [format!("c: {code}"), format!("web: {code}")]);
}

/// Two Ingresses may ask one Service in two ways.
#[test]
fn it_belongs_to_the_location() {
    let backends = ["own", "pod"].map(Backend::named);
    let other = ingress("other", "app", "").replace("path: /,", "path: /other,");
    let manifests = Manifests::new()
        .raw(&ingress("web", "app", "service-upstream=true"))
        .raw(&other)
        .raw(&service("app", backends[0].addr(), backends[1].addr()));
    let splitter = Splitter::start(&manifests);
    assert_eq!(splitter.get("a.test", "/").text(), "own");
    assert_eq!(splitter.get("a.test", "/other").text(), "pod");
}
