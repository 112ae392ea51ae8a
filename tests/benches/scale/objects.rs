//! The objects of a large cluster.

use std::net::SocketAddr;

use serde_json::{Value, json};
use splitter_tests::cluster::objects;

use super::Side;

pub const INGRESSES: &str = "/apis/networking.k8s.io/v1/ingresses";
pub const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";
const SERVICES: &str = "/api/v1/services";

/// Where it is measured.
pub const HOST: &str = "measured.test";
pub const PATH: &str = "/measured";

const NAMESPACE: &str = "shop";
const ENDPOINTS: usize = 10;

/// Fills the API server; says with what. One Ingress in five is a canary.
pub fn fill(
    mut put: impl FnMut(&str, &Value),
    ingresses: usize,
    backends: [SocketAddr; 2],
) -> String {
    let services = ingresses / 2;
    for number in 0..services {
        let name = format!("service-{number}");
        put(SERVICES, &objects::service(NAMESPACE, &name));
        let pod = |n: usize| {
            let n = number * ENDPOINTS + n;
            [10, (n >> 16) as u8, (n >> 8) as u8, n as u8].into()
        };
        let pods: Vec<_> = (0..ENDPOINTS).map(pod).collect();
        put(SLICES, &objects::slice(NAMESPACE, &name, &pods, &[]));
    }
    for number in 0..ingresses {
        let (name, service) = (
            format!("ingress-{number}"),
            format!("service-{}", number % services),
        );
        let host = |number: usize| format!("host-{number}.example.test");
        let ingress = match number % 5 {
            4 => objects::canary(NAMESPACE, &name, &host(number - 1), &service, 10),
            _ => objects::ingress(NAMESPACE, &name, &host(number), &service),
        };
        put(INGRESSES, &described(ingress, number));
    }
    for (name, backend) in ["stable", "canary"].into_iter().zip(backends) {
        put(SERVICES, &objects::service(NAMESPACE, name));
        put(SLICES, &slice(name, backend));
    }
    for side in [&paths()[0], &weights()[0]] {
        put(INGRESSES, &side.0);
    }
    format!(
        "{ingresses} Ingresses, {services} Services, {} endpoints",
        services * ENDPOINTS
    )
}

/// With what objects of a cluster have beside what we read.
fn described(mut ingress: Value, number: usize) -> Value {
    let text = ingress.to_string();
    let meta = &mut ingress["metadata"];
    meta["uid"] = format!("00000000-0000-4000-8000-{number:012}").into();
    meta["creationTimestamp"] = format!("2026-01-01T00:00:{:02}Z", number % 60).into();
    meta["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = text.into();
    ingress["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    ingress
}

fn slice(service: &str, backend: SocketAddr) -> Value {
    let mut slice = objects::slice(NAMESPACE, service, &[backend.ip()], &[]);
    slice["ports"][0]["port"] = backend.port().into();
    slice
}

/// All for stable, all for the canary.
pub fn weights() -> [Side; 2] {
    [(0, "stable"), (100, "canary")].map(|(weight, by)| {
        let mut canary = objects::canary(NAMESPACE, "measured-canary", HOST, "canary", weight);
        canary["spec"]["rules"][0]["http"]["paths"][0]["path"] = PATH.into();
        (canary, by)
    })
}

/// The stable Service with one pod and with the other.
pub fn endpoints(backends: [SocketAddr; 2]) -> [Side; 2] {
    let [stable, canary] = backends;
    [
        (slice("stable", stable), "stable"),
        (slice("stable", canary), "canary"),
    ]
}

/// The path that is measured, and an Ingress without it.
pub fn paths() -> [Side; 2] {
    [(PATH, "stable"), ("/other", "404")].map(|(path, by)| {
        let mut main = objects::ingress(NAMESPACE, "measured", HOST, "stable");
        main["spec"]["rules"][0]["http"]["paths"][0]["path"] = path.into();
        (main, by)
    })
}
