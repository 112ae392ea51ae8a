//! What must not be noticed.

use std::net::SocketAddr;

use serde_json::json;
use splitter_tests::cluster::instance::ClusterSplitter;
use splitter_tests::cluster::{objects, pod, pod_ip};
use splitter_tests::eventually;
use splitter_tests::tls::Authority;

use crate::world::{Load, World, await_share};

pub fn rolling_endpoints_lose_no_request(world: &mut World) {
    let ns = world.namespace();
    let first = 10;
    let mut pods: Vec<_> = (first..first + 3)
        .map(|n| (n, pod(n, &n.to_string())))
        .collect();
    let numbers = |pods: &[(u8, _)]| pods.iter().map(|(n, _)| pod_ip(*n)).collect::<Vec<_>>();
    world.put(&objects::service(&ns, "web"));
    world.put(&objects::slice(&ns, "web", &numbers(&pods), &[]));
    world.put(&objects::ingress(&ns, "web", "rolling.test", "web"));
    let splitter = world.splitter();
    let load = Load::start(&splitter, "rolling.test");
    load.await_more(50);

    for next in first + 3..first + 9 {
        // As in a rolling update: one more, then one less, which first terminates.
        pods.push((next, pod(next, &next.to_string())));
        world.put(&objects::slice(&ns, "web", &numbers(&pods), &[]));
        eventually("the new pod is asked", || {
            splitter.get("rolling.test").text() == next.to_string()
        });
        let (gone, backend) = pods.remove(0);
        world.put(&objects::slice(
            &ns,
            "web",
            &numbers(&pods),
            &[pod_ip(gone)],
        ));
        // It takes connections until nobody makes any, as a pod with a grace period does.
        let mut before = backend.seen().len();
        eventually("the old pod is left alone", || {
            load.await_more(20);
            std::mem::replace(&mut before, backend.seen().len()) == backend.seen().len()
        });
        world.put(&objects::slice(&ns, "web", &numbers(&pods), &[]));
        drop(backend);
        load.await_more(20);
    }
    load.assert_none_failed();
}

pub fn certificates_change_under_load(world: &mut World) {
    let ns = world.namespace();
    let _pod = pod(1, "stable");
    world.put_service(&ns, "stable", 1);
    let authority = Authority::new("tests");
    let mut pair = authority.issue(&["rotated.test"]);
    world.put(&objects::tls_secret(&ns, "cert", &pair));
    let mut ingress = objects::ingress(&ns, "tls", "rotated.test", "stable");
    ingress["spec"]["tls"] = json!([{"hosts": ["rotated.test"], "secretName": "cert"}]);
    world.put(&ingress);
    let (mut settings, mut cluster) = world.settings();
    settings.https = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    cluster.status.update = false;
    cluster.status.events = false;
    let splitter = ClusterSplitter::start((settings, cluster));
    assert_eq!(splitter.shown("rotated.test"), pair.der());

    // Whoever trusts the authority is shown one of its certificates in every handshake.
    let load = Load::over_tls(&splitter, "rotated.test", &authority);
    load.await_more(20);
    for _ in 0..5 {
        pair = authority.issue(&["rotated.test"]);
        world.put(&objects::tls_secret(&ns, "cert", &pair));
        eventually("the new certificate is shown", || {
            splitter.shown("rotated.test") == pair.der()
        });
        load.await_more(20);
    }
    load.assert_none_failed();
}

pub fn an_absent_api_server_changes_nothing(world: &mut World) {
    let ns = world.namespace();
    let _pods = [pod(1, "stable"), pod(2, "canary")];
    world.put_service(&ns, "stable", 1);
    world.put_service(&ns, "canary", 2);
    world.put(&objects::ingress(&ns, "main", "absent.test", "stable"));
    world.put(&objects::canary(&ns, "canary", "absent.test", "canary", 20));
    let splitter = world.splitter();
    let load = Load::start(&splitter, "absent.test");
    load.await_more(100);

    world.plane.stop_api();
    eventually("the watches fail", || {
        splitter.metrics().sum("splitter_watch_failures_total", &[]) >= 6.0
    });
    // Another one that starts now serves nothing, rather than half of it.
    let (settings, mut cluster) = world.settings();
    cluster.status.update = false;
    cluster.status.events = false;
    let starting = ClusterSplitter::begin((settings, cluster));
    load.await_more(300);
    assert!(splitter.ready().0, "what is known is served");
    assert!(!starting.serves());

    world.plane.start_api();
    let second = starting.recv();
    await_share(&second, "absent.test", "canary", 20);
    world.put(&objects::canary(&ns, "canary", "absent.test", "canary", 70));
    await_share(&splitter, "absent.test", "canary", 70);
    await_share(&second, "absent.test", "canary", 70);
    load.assert_none_failed();
}
