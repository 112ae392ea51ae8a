//! What every test starts from: a control plane with splitter installed on it.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use splitter::config::{ClusterSettings, Settings};
use splitter_tests::client::Client;
use splitter_tests::cluster::api::{Api, path_of};
use splitter_tests::cluster::instance::{self, ClusterSplitter};
use splitter_tests::cluster::plane::ControlPlane;
use splitter_tests::cluster::{objects, pod_ip};
use splitter_tests::eventually;
use splitter_tests::tls::{self, Authority};

/// What is shipped.
pub const INSTALLATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/splitter.yaml");

/// The control plane and who works with it.
pub struct World {
    pub plane: ControlPlane,
    pub admin: Api,
    /// For who has exactly the rights that are shipped.
    pub kubeconfig: PathBuf,
    namespaces: usize,
}

impl World {
    pub fn new() -> Self {
        let world = Self::on(ControlPlane::start());
        world.put_node("node-1", "192.0.2.11");
        world.put_node("node-2", "192.0.2.12");
        world
    }

    /// One without a Node, where pods are made for DaemonSets.
    pub fn with_daemon_sets() -> Self {
        Self::on(ControlPlane::start_with(&["daemonset-controller"]))
    }

    fn on(plane: ControlPlane) -> Self {
        let admin = plane.admin();
        admin.apply(&std::fs::read_to_string(INSTALLATION).unwrap());
        let token = admin.token("splitter", "splitter");
        let kubeconfig = plane.kubeconfig("splitter", &token);
        World {
            plane,
            admin,
            kubeconfig,
            namespaces: 0,
        }
    }

    /// A namespace of the test's own.
    pub fn namespace(&mut self) -> String {
        self.namespaces += 1;
        let name = format!("shop-{}", self.namespaces);
        self.put(&objects::namespace(&name));
        name
    }

    /// Makes an object what it says.
    #[track_caller]
    pub fn put(&self, object: &Value) {
        self.admin
            .try_apply(object)
            .expect("the API server takes it");
    }

    /// Deletes an object.
    #[track_caller]
    pub fn remove(&self, object: &Value) {
        self.admin
            .delete(&path_of(object))
            .expect("the API server deletes it");
    }

    /// An object as it is now.
    #[track_caller]
    pub fn get(&self, object: &Value) -> Value {
        self.admin
            .get(&path_of(object))
            .expect("the object is there")
    }

    /// A Service and its only endpoint, the pod with this number.
    pub fn put_service(&self, namespace: &str, name: &str, pod: u8) {
        self.put(&objects::service(namespace, name));
        self.put(&objects::slice(namespace, name, &[pod_ip(pod)], &[]));
    }

    fn put_node(&self, name: &str, address: &str) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        self.put(&node);
        let addresses = json!([
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
        ]);
        let status = json!({"status": {"addresses": addresses}});
        let path = format!("{}/status", path_of(&node));
        self.admin.merge(&path, &status).unwrap();
    }

    /// A pod of the DaemonSet as its kubelet and its controller leave it.
    pub fn put_pod(&self, name: &str, node: &str, ready: bool) {
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "splitter", "labels": {
                "app.kubernetes.io/name": "splitter",
                "app.kubernetes.io/instance": "splitter",
                "controller-revision-hash": name,
            }},
            "spec": {"nodeName": node, "serviceAccountName": "splitter",
                "containers": [{"name": "splitter", "image": "splitter"}]},
        });
        let path = path_of(&pod);
        if self.admin.get(&path).is_err() {
            let all = "/api/v1/namespaces/splitter/pods";
            self.admin
                .post(all, &pod)
                .expect("the API server takes the pod");
        }
        let ready = if ready { "True" } else { "False" };
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}});
        self.admin
            .merge(&format!("{path}/status"), &status)
            .unwrap();
    }

    /// Removes a pod as a kubelet does, at once.
    pub fn remove_pod(&self, name: &str) {
        let path = format!("/api/v1/namespaces/splitter/pods/{name}?gracePeriodSeconds=0");
        self.admin.delete(&path).unwrap();
    }

    /// Settings of a splitter with the shipped rights on node-1.
    pub fn settings(&self) -> (Settings, ClusterSettings) {
        instance::settings(&self.kubeconfig, "splitter-1", "node-1")
    }

    /// A splitter that writes nothing.
    pub fn splitter(&self) -> ClusterSplitter {
        let (settings, mut cluster) = self.settings();
        cluster.status.update = false;
        cluster.status.events = false;
        ClusterSplitter::start((settings, cluster))
    }

    /// The addresses in the status of an Ingress.
    pub fn addresses(&self, ingress: &Value) -> Vec<String> {
        let status = &self.get(ingress)["status"]["loadBalancer"]["ingress"];
        let entries = status.as_array().into_iter().flatten();
        let text = |entry: &Value| {
            let text = entry.get("ip").or_else(|| entry.get("hostname"));
            text.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        entries.map(text).collect()
    }
}

/// How many of 100 requests are answered with `body`.
pub fn of_hundred(splitter: &ClusterSplitter, host: &str, body: &str) -> usize {
    of_hundred_at(splitter, host, "/", body)
}

fn of_hundred_at(splitter: &ClusterSplitter, host: &str, path: &str, body: &str) -> usize {
    let mut client = Client::connect(splitter.http());
    let answers = (0..100).map(|_| client.get(host, path));
    answers.filter(|answer| answer.text() == body).count()
}

/// Waits until of 100 requests so many are answered with `body`.
#[track_caller]
pub fn await_share(splitter: &ClusterSplitter, host: &str, body: &str, share: usize) {
    await_share_at(splitter, host, "/", body, share);
}

/// The same for requests for this path.
#[track_caller]
pub fn await_share_at(
    splitter: &ClusterSplitter,
    host: &str,
    path: &str,
    body: &str,
    share: usize,
) {
    eventually(&format!("{share} of 100 for {path} are {body}"), || {
        of_hundred_at(splitter, host, path, body) == share
    });
}

/// Waits until about so many of 100 requests are answered with `body`: where others ask at the same
/// time, nobody gets exactly his share. None and all are exact.
#[track_caller]
pub fn await_about(splitter: &ClusterSplitter, host: &str, body: &str, share: usize) {
    let most = if matches!(share, 0 | 100) { 0 } else { 10 };
    eventually(&format!("about {share} of 100 are {body}"), || {
        of_hundred(splitter, host, body).abs_diff(share) <= most
    });
}

/// Waits until requests for `host` are answered with a status.
#[track_caller]
pub fn await_status(splitter: &ClusterSplitter, host: &str, status: u16) {
    eventually(&format!("{host} answers {status}"), || {
        splitter.get(host).status == status
    });
}

/// Requests without an end, on kept and on new connections.
pub struct Load {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicUsize>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Load {
    pub fn start(splitter: &ClusterSplitter, host: &str) -> Self {
        let addr = splitter.http();
        Load::of(move || Client::connect(addr), host)
    }

    /// The same over TLS, by a client that trusts one authority.
    pub fn over_tls(splitter: &ClusterSplitter, host: &str, authority: &Authority) -> Self {
        let (addr, config) = (splitter.https(), Arc::new(authority.client()));
        let name = host.to_owned();
        Load::of(move || tls::connect(addr, &name, &config), host)
    }

    fn of<S: Read + Write>(connect: impl Fn() -> Client<S> + Send + 'static, host: &str) -> Self {
        let (stop, sent) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let host = host.to_owned();
        let (ended, counted) = (stop.clone(), sent.clone());
        let thread = std::thread::spawn(move || {
            let mut failed = Vec::new();
            let mut kept = connect();
            while !ended.load(Ordering::Relaxed) {
                for answer in [kept.get(&host, "/"), connect().get(&host, "/")] {
                    if answer.status != 200 {
                        failed.push(format!("{}: {}", answer.status, answer.text()));
                    }
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }
            failed
        });
        let thread = Some(thread);
        Load { stop, sent, thread }
    }

    /// Waits until this many more were answered.
    #[track_caller]
    pub fn await_more(&self, count: usize) {
        let until = self.sent.load(Ordering::Relaxed) + count;
        eventually("the load goes on", || {
            let over = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
            assert!(!over, "a request was not answered at all");
            self.sent.load(Ordering::Relaxed) >= until
        });
    }

    /// Ends it; no request may have failed.
    #[track_caller]
    pub fn assert_none_failed(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().unwrap();
        let failed = thread.join().expect("every request is answered");
        let sent = self.sent.load(Ordering::Relaxed);
        assert!(
            failed.is_empty(),
            "{} of {sent} failed: {failed:?}",
            failed.len()
        );
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
