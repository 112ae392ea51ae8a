//! Objects in, requests split.

use std::net::SocketAddr;

use serde_json::json;
use splitter_tests::cluster::instance::ClusterSplitter;
use splitter_tests::cluster::{objects, pod};
use splitter_tests::eventually;
use splitter_tests::issuer::{Key, jwks};
use splitter_tests::tls::{Authority, Pair};

use crate::world::{World, await_share, await_status, of_hundred};

pub fn objects_are_served_and_followed(world: &mut World) {
    let ns = world.namespace();
    let _pods = [pod(1, "stable"), pod(2, "canary")];
    world.put_service(&ns, "stable", 1);
    world.put_service(&ns, "canary", 2);
    let main = objects::ingress(&ns, "main", "a.test", "stable");
    world.put(&main);
    world.put(&objects::canary(&ns, "canary", "a.test", "canary", 25));

    let splitter = world.splitter();
    let (ready, text) = splitter.ready();
    assert!(ready, "{text}");
    // There from the first request on: nothing is served before everything is known.
    assert_eq!(of_hundred(&splitter, "a.test", "canary"), 25);

    let canary = objects::canary(&ns, "canary", "a.test", "canary", 60);
    world.put(&canary);
    await_share(&splitter, "a.test", "canary", 60);

    world.remove(&canary);
    await_share(&splitter, "a.test", "canary", 0);

    world.put(&objects::slice(&ns, "stable", &[], &[]));
    await_status(&splitter, "a.test", 503);
    world.put_service(&ns, "stable", 1);
    await_status(&splitter, "a.test", 200);

    world.remove(&main);
    await_status(&splitter, "a.test", 404);
}

pub fn config_maps_say_whose_tokens_count(world: &mut World) {
    let ns = world.namespace();
    let _pod = pod(1, "stable");
    world.put_service(&ns, "stable", 1);
    let keys = jwks(&[Key::ec().jwk("one")]);
    let mut ingress = objects::ingress(&ns, "main", "tokens.test", "stable");
    ingress["metadata"]["annotations"] = json!({
        "splitter.io/jwt-issuer": "https://id.test",
        "splitter.io/jwt-audiences": "shop",
        "splitter.io/jwt-jwks-configmap": "keys",
    });
    world.put(&ingress);
    let splitter = world.splitter();
    assert_eq!(splitter.get("tokens.test").status, 503);
    world.put(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "keys", "namespace": ns},
        "data": {"jwks": keys},
    }));
    await_status(&splitter, "tokens.test", 401);
}

pub fn classes_say_what_is_ours(world: &mut World) {
    let ns = world.namespace();
    let _pod = pod(1, "stable");
    world.put_service(&ns, "stable", 1);
    let splitter = world.splitter();

    let with_class = |class: &str| {
        let mut ingress = objects::ingress(&ns, "main", "class.test", "stable");
        ingress["spec"]["ingressClassName"] = class.into();
        ingress
    };
    // The IngressClass that is shipped.
    world.put(&with_class("splitter"));
    await_status(&splitter, "class.test", 200);
    world.put(&with_class("traefik"));
    await_status(&splitter, "class.test", 404);
    world.put(&with_class("nginx"));
    await_status(&splitter, "class.test", 200);

    // An IngressClass of the name that is not ours takes it away.
    let class = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": "nginx"},
        "spec": {"controller": "example.com/other"},
    });
    world.put(&class);
    await_status(&splitter, "class.test", 404);
    world.remove(&class);
    await_status(&splitter, "class.test", 200);

    // Without a class it is nobody's.
    let mut nobodys = objects::ingress(&ns, "nobodys", "nobody.test", "stable");
    nobodys["spec"]["ingressClassName"].take();
    world.put(&nobodys);
    world.put(&objects::ingress(&ns, "after", "after.test", "stable"));
    await_status(&splitter, "after.test", 200);
    assert_eq!(splitter.get("nobody.test").status, 404);
}

pub fn only_the_asked_for_is_read(world: &mut World) {
    let (ns, other) = (world.namespace(), world.namespace());
    let _pod = pod(1, "stable");
    for ns in [&ns, &other] {
        world.put_service(ns, "stable", 1);
    }
    let labelled = |ns: &str, name: &str, team: &str| {
        let mut ingress = objects::ingress(ns, name, &format!("{name}.test"), "stable");
        ingress["metadata"]["labels"] = json!({"team": team});
        ingress
    };
    world.put(&labelled(&other, "elsewhere", "shop"));
    world.put(&labelled(&ns, "unlabelled", "blog"));
    world.put(&labelled(&ns, "chosen", "shop"));

    let (settings, mut cluster) = world.settings();
    cluster.namespace = Some(ns.clone());
    cluster.ingress_selector = Some("team=shop".to_owned());
    cluster.status.update = false;
    cluster.status.events = false;
    let splitter = ClusterSplitter::start((settings, cluster));
    assert_eq!(splitter.get("chosen.test").status, 200);
    assert_eq!(splitter.get("unlabelled.test").status, 404);
    assert_eq!(splitter.get("elsewhere.test").status, 404);

    // One that loses the label is gone.
    world.put(&labelled(&ns, "chosen", "blog"));
    await_status(&splitter, "chosen.test", 404);
}

pub fn certificates_come_from_named_secrets(world: &mut World) {
    let ns = world.namespace();
    let _pod = pod(1, "stable");
    world.put_service(&ns, "stable", 1);
    let mut ingress = objects::ingress(&ns, "tls", "tls.test", "stable");
    ingress["spec"]["tls"] = json!([{"hosts": ["tls.test"], "secretName": "cert"}]);
    world.put(&ingress);
    let (mut settings, mut cluster) = world.settings();
    settings.https = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    cluster.status.update = false;
    cluster.status.events = false;
    let splitter = ClusterSplitter::start((settings, cluster));
    let missing = |splitter: &ClusterSplitter| {
        let problems = splitter.problems("tls");
        problems.contains(&"secret-not-found".to_owned())
    };
    assert!(missing(&splitter));

    let authority = Authority::new("tests");
    let secret = |pair: &Pair| objects::tls_secret(&ns, "cert", pair);
    let first = authority.issue(&["tls.test"]);
    world.put(&secret(&first));
    eventually("the certificate is shown", || {
        splitter.shown("tls.test") == first.der()
    });
    assert!(!missing(&splitter));

    let second = authority.issue(&["tls.test"]);
    world.put(&secret(&second));
    eventually("the new one is shown", || {
        splitter.shown("tls.test") == second.der()
    });

    world.remove(&secret(&second));
    eventually("the Secret is missed", || missing(&splitter));
}

pub fn a_storm_of_changes_ends_in_the_last_one(world: &mut World) {
    let ns = world.namespace();
    let _pods = [pod(1, "stable"), pod(2, "canary")];
    world.put_service(&ns, "stable", 1);
    world.put_service(&ns, "canary", 2);
    world.put(&objects::ingress(&ns, "main", "storm.test", "stable"));
    let splitter = world.splitter();
    for weight in (0..=100).rev() {
        world.put(&objects::canary(
            &ns,
            "canary",
            "storm.test",
            "canary",
            weight,
        ));
    }
    world.put(&objects::canary(&ns, "canary", "storm.test", "canary", 37));
    await_share(&splitter, "storm.test", "canary", 37);
}
