//! What an API server does only on a bad day, by one that does as it is told.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::net::SocketAddr;

use serde_json::{Value, json};
use splitter_tests::backend::Backend;
use splitter_tests::client;
use splitter_tests::cluster::fake::FakeApi;
use splitter_tests::cluster::instance::{self, ClusterSplitter};
use splitter_tests::cluster::{base64, objects};
use splitter_tests::eventually;
use splitter_tests::issuer::{Key, jwks};
use splitter_tests::tls::Authority;

const INGRESSES: &str = "/apis/networking.k8s.io/v1/ingresses";
const SERVICES: &str = "/api/v1/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";
const SECRETS: &str = "/api/v1/secrets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/ingress/configmaps";
const NODES: &str = "/api/v1/nodes";

/// A server with the Service `web`, whose endpoint is a backend, and an Ingress for `a.test`.
fn cluster() -> (FakeApi, Backend) {
    let (api, backend) = (FakeApi::start(), Backend::named("web"));
    api.put_silently(SERVICES, &objects::service("shop", "web"));
    let mut slice = objects::slice("shop", "web", &[backend.addr().ip()], &[]);
    slice["ports"][0]["port"] = backend.addr().port().into();
    api.put_silently(SLICES, &slice);
    api.put_silently(INGRESSES, &ingress("a"));
    (api, backend)
}

fn ingress(name: &str) -> Value {
    objects::ingress("shop", name, &format!("{name}.test"), "web")
}

fn settings(
    api: &FakeApi,
) -> (
    splitter::config::Settings,
    splitter::config::ClusterSettings,
) {
    let (settings, mut cluster) = instance::settings(&api.kubeconfig(), "", "node-1");
    cluster.status.update = false;
    cluster.status.events = false;
    (settings, cluster)
}

#[track_caller]
fn await_status(splitter: &ClusterSplitter, host: &str, status: u16) {
    eventually(&format!("{host} answers {status}"), || {
        splitter.get(host).status == status
    });
}

#[test]
fn events_are_followed() {
    let (api, _backend) = cluster();
    let splitter = ClusterSplitter::start(settings(&api));
    assert_eq!(splitter.get("a.test").text(), "web");
    api.put(INGRESSES, &ingress("b"));
    await_status(&splitter, "b.test", 200);
    api.tell(
        INGRESSES,
        &json!({"type": "DELETED", "object": {
            "metadata": {"name": "a", "namespace": "shop", "resourceVersion": "99"},
        }}),
    );
    await_status(&splitter, "a.test", 404);
}

#[test]
fn an_expired_version_is_answered_with_a_new_list() {
    let (api, _backend) = cluster();
    let splitter = ClusterSplitter::start(settings(&api));
    // What happened meanwhile is only in the list.
    api.put_silently(INGRESSES, &ingress("b"));
    api.remove_silently(INGRESSES, "a");
    let gone = json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"});
    api.tell(INGRESSES, &json!({"type": "ERROR", "object": gone}));
    await_status(&splitter, "b.test", 200);
    await_status(&splitter, "a.test", 404);
}

#[test]
fn a_version_that_is_refused_at_once_is_too() {
    let (api, _backend) = cluster();
    let splitter = ClusterSplitter::start(settings(&api));
    let watch = format!("{INGRESSES}?watch");
    let lists = api.asked(INGRESSES);
    api.refuse(&watch, 410);
    api.put_silently(INGRESSES, &ingress("b"));
    api.hang_up(INGRESSES);
    eventually("it is listed again", || api.asked(INGRESSES) > lists);
    api.relent(&watch);
    await_status(&splitter, "b.test", 200);
    assert_eq!(splitter.get("a.test").status, 200);
}

#[test]
fn a_watch_that_ends_goes_on() {
    let (api, _backend) = cluster();
    let splitter = ClusterSplitter::start(settings(&api));
    let watch = format!("{INGRESSES}?watch");
    eventually("it is watched", || api.asked(&watch) == 1);
    let lists = api.asked(INGRESSES);
    api.hang_up(INGRESSES);
    eventually("it is watched again", || api.asked(&watch) == 2);
    api.put(INGRESSES, &ingress("b"));
    await_status(&splitter, "b.test", 200);
    assert_eq!(api.asked(INGRESSES), lists, "without another list");
}

#[test]
fn an_equal_list_changes_nothing() {
    let (api, _backend) = cluster();
    let splitter = ClusterSplitter::start(settings(&api));
    let generation =
        |splitter: &ClusterSplitter| splitter.metrics().sum("splitter_config_generation", &[]);
    let before = generation(&splitter);
    let gone = json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"});
    let (lists, watches) = (api.asked(SERVICES), format!("{SERVICES}?watch"));
    let watched = api.asked(&watches);
    api.tell(SERVICES, &json!({"type": "ERROR", "object": gone}));
    eventually("it is listed and watched again", || {
        api.asked(SERVICES) > lists && api.asked(&watches) > watched
    });
    api.put(INGRESSES, &ingress("b"));
    await_status(&splitter, "b.test", 200);
    assert_eq!(generation(&splitter), before + 1.0, "only by the Ingress");
}

#[test]
fn nothing_is_served_before_everything_is_known() {
    let (api, _backend) = cluster();
    api.refuse(SLICES, 500);
    let starting = ClusterSplitter::begin(settings(&api));
    eventually("endpoints were asked for", || api.asked(SLICES) >= 2);
    assert!(!starting.serves());
    api.relent(SLICES);
    let splitter = starting.recv();
    assert_eq!(splitter.get("a.test").text(), "web");
}

#[test]
fn nodes_that_we_may_not_read_are_done_without() {
    let (api, _backend) = cluster();
    api.refuse(NODES, 403);
    let splitter = ClusterSplitter::start(settings(&api));
    assert_eq!(splitter.get("a.test").text(), "web");
}

#[test]
fn only_named_secrets_are_read_and_the_last_good_one_stays() {
    let (api, _backend) = cluster();
    let pair = Authority::new("tests").issue(&["a.test"]);
    // What a real one makes of `stringData` is beside the point here.
    let secret = |name: &str| {
        let mut secret = objects::tls_secret("shop", name, &pair);
        let data = secret["stringData"].take();
        let data = data.as_object().unwrap().iter();
        secret["data"] = data
            .map(|(key, value)| (key.clone(), base64(value.as_str().unwrap()).into()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        secret
    };
    api.put_silently(SECRETS, &secret("cert"));
    api.put_silently(SECRETS, &secret("other"));
    let mut tls = ingress("a");
    tls["spec"]["tls"] = json!([{"hosts": ["a.test"], "secretName": "cert"}]);
    api.put_silently(INGRESSES, &tls);
    let (mut settings, cluster) = settings(&api);
    settings.https = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let splitter = ClusterSplitter::start((settings, cluster));
    let path = |name: &str| format!("/api/v1/namespaces/shop/secrets/{name}");
    assert_eq!(
        (api.asked(&path("cert")), api.asked(&path("other"))),
        (1, 0)
    );
    assert_eq!(splitter.shown("a.test"), pair.der());

    // A new version that cannot be read leaves the old one.
    api.refuse(&path("cert"), 500);
    api.put(SECRETS, &secret("cert"));
    eventually("it is read again", || api.asked(&path("cert")) >= 2);
    api.put(INGRESSES, &ingress("b"));
    await_status(&splitter, "b.test", 200);
    assert_eq!(splitter.shown("a.test"), pair.der());
}

#[test]
fn only_named_config_maps_are_read() {
    const MAPS: &str = "/api/v1/configmaps";
    let (api, _backend) = cluster();
    let key = Key::ec();
    let map = |name: &str| {
        json!({
            "metadata": {"name": name, "namespace": "shop"},
            "data": {"jwks": jwks(&[key.jwk("one")])},
        })
    };
    api.put_silently(MAPS, &map("keys"));
    api.put_silently(MAPS, &map("other"));
    let mut guarded = ingress("a");
    guarded["metadata"]["annotations"] = json!({
        "splitter.io/jwt-issuer": "https://id.test",
        "splitter.io/jwt-audiences": "shop",
        "splitter.io/jwt-jwks-configmap": "keys",
    });
    api.put_silently(INGRESSES, &guarded);
    let splitter = ClusterSplitter::start(settings(&api));
    assert_eq!(splitter.get("a.test").status, 401);
    let path = |name: &str| format!("/api/v1/namespaces/shop/configmaps/{name}");
    assert_eq!(
        (api.asked(&path("keys")), api.asked(&path("other"))),
        (1, 0)
    );
}

#[test]
fn without_the_right_to_config_maps_only_who_names_one_is_closed() {
    let (api, _backend) = cluster();
    api.refuse("/api/v1/configmaps", 403);
    let splitter = ClusterSplitter::start(settings(&api));
    assert_eq!(splitter.get("a.test").text(), "web");
}

fn config_map(data: &Value) -> Value {
    json!({"metadata": {"name": "nginx", "namespace": "ingress"}, "data": data})
}

fn with_config_map(
    api: &FakeApi,
) -> (
    splitter::config::Settings,
    splitter::config::ClusterSettings,
) {
    let (settings, mut cluster) = settings(api);
    cluster.config_map = Some("ingress/nginx".parse().unwrap());
    (settings, cluster)
}

#[test]
fn nothing_is_served_without_the_config_map_that_is_named() {
    let (api, _backend) = cluster();
    api.put_silently(
        CONFIG_MAPS,
        &config_map(&json!({"denylist-source-range": "127.0.0.0/8"})),
    );
    // It may keep somebody out, so no right to read it is no reason to go on.
    api.refuse(CONFIG_MAPS, 403);
    let starting = ClusterSplitter::begin(with_config_map(&api));
    eventually("it was asked for twice", || api.asked(CONFIG_MAPS) >= 2);
    assert!(!starting.serves());
    api.relent(CONFIG_MAPS);
    let splitter = starting.recv();
    assert_eq!(splitter.get("a.test").status, 403);
    api.put(CONFIG_MAPS, &config_map(&json!({})));
    await_status(&splitter, "a.test", 200);
}

#[test]
fn a_config_map_that_is_not_there_says_nothing() {
    let (api, _backend) = cluster();
    let splitter = ClusterSplitter::start(with_config_map(&api));
    assert_eq!(splitter.get("a.test").status, 200);
    assert_eq!(splitter.problems("nginx"), ["configmap-not-found"]);
    api.put(
        CONFIG_MAPS,
        &config_map(&json!({"denylist-source-range": "127.0.0.0/8"})),
    );
    await_status(&splitter, "a.test", 403);
    assert!(splitter.problems("nginx").is_empty());
}

#[test]
fn settings_of_the_process_are_those_of_its_start() {
    let (api, backend) = cluster();
    let trusting = json!({"use-forwarded-headers": "true", "proxy-real-ip-cidr": "127.0.0.0/8"});
    api.put_silently(CONFIG_MAPS, &config_map(&trusting));
    let splitter = ClusterSplitter::start(with_config_map(&api));
    let believed = || {
        let fields = "X-Forwarded-For: 192.0.2.7\r\n";
        let answer = client::get_with(splitter.http(), "a.test", "/", fields);
        assert_eq!(answer.status, 200);
        backend.last().field("x-real-ip") == Some("192.0.2.7")
    };
    assert!(believed());
    assert!(splitter.problems("nginx").is_empty());

    let changed = json!({"use-forwarded-headers": "no", "proxy-real-ip-cidr": "127.0.0.0/8"});
    api.put(CONFIG_MAPS, &config_map(&changed));
    eventually("both are told", || {
        let problems = splitter.problems("nginx");
        ["default-invalid", "default-needs-restart"]
            .iter()
            .all(|it| problems.contains(&(*it).to_owned()))
    });
    assert!(believed());
    api.put(CONFIG_MAPS, &config_map(&trusting));
    eventually("all is well again", || {
        splitter.problems("nginx").is_empty()
    });
}

#[test]
fn config_maps_that_open_ports_are_followed() {
    let (api, backend) = cluster();
    let port = {
        let held = std::net::TcpListener::bind("[::]:0").unwrap();
        held.local_addr().unwrap().port().to_string()
    };
    let tcp = |entries: &Value| json!({"metadata": {"name": "tcp", "namespace": "ingress"}, "data": entries});
    let (mut settings, mut cluster) = settings(&api);
    settings.class.l4.tcp_services = Some("ingress/tcp".parse().unwrap());
    cluster.config_maps = settings.class.l4.config_maps();
    // Without it nothing else waits.
    let splitter = ClusterSplitter::start((settings, cluster));
    assert_eq!(splitter.get("a.test").text(), "web");
    assert_eq!(splitter.problems("tcp"), ["configmap-not-found"]);
    api.put(CONFIG_MAPS, &tcp(&json!({port.as_str(): "shop/web:80"})));
    let addr: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    eventually("the port is open", || {
        std::net::TcpStream::connect(addr).is_ok()
    });
    assert_eq!(client::get(addr, "whoever", "/").text(), "web");
    assert_eq!(backend.last().field("host"), Some("whoever"));
    api.put(CONFIG_MAPS, &tcp(&json!({})));
    eventually("the port is closed", || {
        std::net::TcpStream::connect(addr).is_err()
    });
}

const ALL_MAPS: &str = "/api/v1/configmaps";

/// An Ingress whose answers have the fields of the ConfigMap `name`.
fn with_fields(host: &str, name: &str) -> Value {
    let mut ingress = ingress(host);
    let note = "nginx.ingress.kubernetes.io/custom-headers";
    ingress["metadata"]["annotations"][note] = format!("shop/{name}").into();
    ingress
}

fn fields(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "shop"}, "data": {"X-Own": value}})
}

/// Allows the field of these tests.
fn allowing(
    api: &FakeApi,
) -> (
    splitter::config::Settings,
    splitter::config::ClusterSettings,
) {
    let key = "global-allowed-response-headers";
    api.put_silently(CONFIG_MAPS, &config_map(&json!({key: "X-Own"})));
    with_config_map(api)
}

#[test]
fn fields_of_answers_are_read_by_the_name_of_their_config_map() {
    let (api, _backend) = cluster();
    api.put_silently(ALL_MAPS, &fields("named", "a"));
    api.put_silently(ALL_MAPS, &fields("other", "a"));
    let splitter = ClusterSplitter::start(allowing(&api));
    assert_eq!(splitter.get("a.test").status, 200);

    api.put(INGRESSES, &with_fields("b", "named"));
    await_status(&splitter, "b.test", 200);
    assert_eq!(splitter.get("b.test").field("x-own"), Some("a"));
    assert_eq!(splitter.get("a.test").field("x-own"), None);
    let path = |name: &str| format!("/api/v1/namespaces/shop/configmaps/{name}");
    assert_eq!(
        (api.asked(&path("named")), api.asked(&path("other"))),
        (1, 0)
    );

    // One that nobody names changes all the time, and nobody looks.
    let watch = format!("{ALL_MAPS}?watch");
    eventually("they are watched", || api.asked(&watch) > 0);
    api.put(ALL_MAPS, &fields("other", "b"));
    api.put(ALL_MAPS, &fields("named", "b"));
    eventually("the change is followed", || {
        splitter.get("b.test").field("x-own") == Some("b")
    });
    assert_eq!(api.asked(&path("other")), 0);
}

#[test]
fn without_the_right_to_read_them_only_those_who_ask_are_closed() {
    let (api, _backend) = cluster();
    api.put_silently(ALL_MAPS, &fields("named", "a"));
    api.put_silently(INGRESSES, &with_fields("b", "named"));
    api.refuse(ALL_MAPS, 403);
    let splitter = ClusterSplitter::start(allowing(&api));
    assert_eq!(splitter.get("a.test").status, 200);
    assert_eq!(splitter.get("b.test").status, 503);
    assert_eq!(splitter.problems("b"), ["custom-headers-invalid"]);
    api.relent(ALL_MAPS);
    await_status(&splitter, "b.test", 200);
}
