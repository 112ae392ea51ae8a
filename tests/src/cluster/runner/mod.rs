//! Runs pods: registers a Node, binds pods to it, starts each one's process in a network namespace of
//! its own (or in the node's, for `hostNetwork`), and writes status, as a scheduler and a kubelet do.
//!
//! Images are programs by a table. One container a pod; of its spec the arguments, the environment,
//! the ports, the probes, the service account and, with one, volumes of the kinds emptyDir and hostPath
//! count. Paths of the host are those of a node of its own, with a BPF file system that its pods share.
//! Needs root.

mod network;
mod pod;
mod probe;
mod process;
mod status;
mod volumes;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::api::Api;
use super::plane::ControlPlane;
use network::Bridge;
use pod::Pod;
use volumes::Volumes;

/// Between two looks at what is wanted and at what runs.
const EVERY: Duration = Duration::from_millis(100);

/// What is on a node.
pub struct NodeSettings {
    /// Its name.
    pub name: &'static str,
    /// The first three bytes of its pods' addresses; the node itself is number 1.
    pub range: [u8; 3],
    /// The program of each image, by the image's name without a tag.
    pub images: BTreeMap<String, PathBuf>,
}

/// A pod that runs.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Namespace and name.
    pub name: String,
    /// Its address.
    pub ip: IpAddr,
    /// What it prints.
    pub log: PathBuf,
    /// The network namespace that is its own; none for one that has the node's.
    pub network: Option<String>,
}

/// A running runner; its pods end with it.
pub struct Runner {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<Seen>>>,
    thread: Option<JoinHandle<()>>,
}

impl Runner {
    /// Registers the node and begins to run pods, those that are on no node yet among them.
    pub fn start(plane: &ControlPlane, settings: NodeSettings) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let node = Node {
            api: plane.admin(),
            ca: plane.ca().to_owned(),
            bridge: Bridge::new(settings.range),
            volumes: Volumes::new(),
            settings,
            pods: BTreeMap::new(),
        };
        node.register();
        let (stopped, shown) = (stop.clone(), seen.clone());
        let thread = std::thread::spawn(move || node.run(&stopped, &shown));
        Runner {
            stop,
            seen,
            thread: Some(thread),
        }
    }

    /// The pods that run.
    pub fn pods(&self) -> Vec<Seen> {
        self.check();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }

    fn check(&self) {
        let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        assert!(!ended, "the pod runner has panicked");
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("the pod runner does not panic");
            }
        }
    }
}

struct Node {
    api: Api,
    ca: String,
    settings: NodeSettings,
    bridge: Bridge,
    /// By uid.
    pods: BTreeMap<String, Pod>,
    /// Outlive the pods.
    volumes: Volumes,
}

impl Node {
    fn register(&self) {
        let name = self.settings.name;
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
        }}});
        self.api
            .try_apply(&node)
            .expect("the API server takes the node");
        // A new Node is tainted as not ready, which keeps DaemonSets away.
        let range = self.bridge.pod_range();
        let ready = json!({"spec": {"taints": null, "podCIDR": range, "podCIDRs": [range]}});
        let path = format!("/api/v1/nodes/{name}");
        self.api
            .merge(&path, &ready)
            .expect("the node can be changed");
        let status = status::node(name, self.bridge.address());
        let written = self.api.merge(&format!("{path}/status"), &status);
        written.expect("the node's status can be written");
    }

    fn run(mut self, stop: &AtomicBool, seen: &Mutex<Vec<Seen>>) {
        while !stop.load(Ordering::Relaxed) {
            // While the API server is away everything goes on as it is.
            if let Ok(list) = self.api.get("/api/v1/pods") {
                self.follow(list["items"].as_array().map_or(&[][..], Vec::as_slice));
            }
            self.look();
            let shown = self.pods.values().map(Pod::seen).collect();
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = shown;
            std::thread::park_timeout(EVERY);
        }
    }

    /// Takes up what is wanted.
    fn follow(&mut self, wanted: &[Value]) {
        let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or("").to_owned();
        let uids: Vec<String> = wanted.iter().map(uid).collect();
        self.pods.retain(|uid, _| uids.contains(uid));
        for (uid, object) in uids.into_iter().zip(wanted) {
            let leaving = !object["metadata"]["deletionTimestamp"].is_null();
            if let Some(pod) = self.pods.get_mut(&uid) {
                if leaving {
                    pod.terminate(object);
                }
                continue;
            }
            match object["spec"]["nodeName"].as_str() {
                None if !leaving => self.bind(object),
                Some(name) if name == self.settings.name => {
                    if let Some(pod) = self.begin(object) {
                        self.pods.insert(uid, pod);
                    }
                }
                _ => {}
            }
        }
    }

    fn bind(&self, object: &Value) {
        let path = format!("{}/binding", super::api::path_of(&pod::named(object)));
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": object["metadata"]["name"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.settings.name},
        });
        // Fails when it has just gone, or when the API server has: next time then.
        let _ = self.api.post(&path, &binding);
    }

    fn begin(&self, object: &Value) -> Option<Pod> {
        let image = pod::container(object)["image"].as_str().unwrap_or("");
        let name = image.rsplit_once(':').map_or(image, |(name, _)| name);
        let program = self.settings.images.get(name);
        let program = program.unwrap_or_else(|| panic!("no program is known for {image}"));
        let used: Vec<IpAddr> = self.pods.values().map(Pod::ip).collect();
        let node = (&self.bridge, &self.volumes);
        Pod::begin(object, program, node, &used, &self.api, &self.ca)
    }

    /// Looks after what runs.
    fn look(&mut self) {
        let api = &self.api;
        self.pods.retain(|_, pod| pod.look(api));
    }
}
