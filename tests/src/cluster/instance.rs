//! A whole splitter in this process that follows the API server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use splitter::app::Instance;
use splitter::config::{ClusterSettings, Identity, Settings, Source, StatusSettings};
use tokio::sync::oneshot;

use crate::client;
use crate::prometheus::Page;

/// How one ends.
enum End {
    /// As on SIGTERM.
    Drain,
    /// As on SIGKILL: nothing more is said to anybody.
    Kill,
}

/// A running splitter; stops when dropped.
pub struct ClusterSplitter {
    http: SocketAddr,
    https: Option<SocketAddr>,
    admin: SocketAddr,
    end: Option<oneshot::Sender<End>>,
    thread: Option<JoinHandle<()>>,
}

/// Settings of a splitter that runs as `pod` on the node `node`.
pub fn settings(kubeconfig: &Path, pod: &str, node: &str) -> (Settings, ClusterSettings) {
    let mut settings = crate::instance::settings(Path::new(""));
    settings.identity = Identity {
        pod_namespace: "splitter".to_owned(),
        pod_name: pod.to_owned(),
    };
    let cluster = ClusterSettings {
        kubeconfig: Some(kubeconfig.to_owned()),
        namespace: None,
        ingress_selector: None,
        node_name: Some(node.to_owned()),
        secrets: Vec::new(),
        config_map: None,
        config_maps: Vec::new(),
        status: StatusSettings {
            // Short, so that tests need not wait long for a leader that was killed.
            election_ttl: Duration::from_secs(3),
            ..StatusSettings::default()
        },
    };
    (settings, cluster)
}

impl ClusterSplitter {
    /// Starts one; returns when it serves.
    pub fn start((settings, cluster): (Settings, ClusterSettings)) -> Self {
        let starting = Self::begin((settings, cluster));
        starting.recv()
    }

    /// Begins to start one, which waits for the API server.
    pub fn begin((mut settings, cluster): (Settings, ClusterSettings)) -> Starting {
        settings.source = Source::Cluster(Box::new(cluster));
        let (started, addrs) = mpsc::channel();
        let (end, ended) = oneshot::channel::<End>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let instance = Instance::start(settings).await;
                let instance = instance.expect("the splitter starts");
                let https = instance.https().first().copied();
                let addrs = (instance.http()[0], https, instance.admin());
                started.send(addrs).expect("the test waits");
                serve(instance, ended).await;
            });
            // What is left is dropped in mid-air, as the system does it.
            runtime.shutdown_background();
        });
        Starting { addrs, end, thread }
    }

    /// Where requests go.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where requests over TLS go.
    pub fn https(&self) -> SocketAddr {
        self.https.expect("the splitter listens for TLS")
    }

    /// Where health and metrics are.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// The certificate that a client of `name` is shown.
    pub fn shown(&self, name: &str) -> CertificateDer<'static> {
        crate::tls::shown(self.https(), Some(name))
    }

    /// A GET on a connection of its own.
    pub fn get(&self, host: &str) -> client::Answer {
        client::get(self.http, host, "/")
    }

    /// Whether it is ready, and why.
    pub fn ready(&self) -> (bool, String) {
        let answer = client::get(self.admin, "admin", "/readyz");
        (answer.status == 200, answer.text())
    }

    /// Its metrics now.
    pub fn metrics(&self) -> Page {
        let answer = client::get(self.admin, "admin", "/metrics");
        Page::read(&answer.text()).expect("the metrics are well-formed")
    }

    /// The addresses that it knows of a Service, whatever its port is called.
    pub fn endpoints(&self, namespace: &str, service: &str) -> Vec<String> {
        let answer = client::get(self.admin, "admin", "/config_dump");
        let dump: serde_json::Value =
            serde_json::from_slice(&answer.body).expect("the dump is JSON");
        let backends = dump["snapshot"]["backends"].as_array();
        let of_service = backends
            .into_iter()
            .flatten()
            .filter(|it| it["key"]["namespace"] == namespace && it["key"]["service"] == service);
        let endpoints = of_service.filter_map(|it| it["endpoints"].as_array());
        let addresses = endpoints.flatten().filter_map(|it| it["addr"].as_str());
        addresses.map(str::to_owned).collect()
    }

    /// The codes of what is wrong with objects of this name.
    pub fn problems(&self, name: &str) -> Vec<String> {
        let answer = client::get(self.admin, "admin", "/problems");
        let all: Vec<serde_json::Value> =
            serde_json::from_slice(&answer.body).expect("the dump is a list");
        let named = all.iter().filter(|it| it["object"]["name"] == name);
        let codes = named.filter_map(|it| it["code"].as_str());
        codes.map(str::to_owned).collect()
    }

    /// Ends it without a word to the API server.
    pub fn kill(mut self) {
        self.finish(End::Kill);
    }

    fn finish(&mut self, how: End) {
        if let Some(end) = self.end.take() {
            // It has panicked if nobody listens, which joining tells.
            let _ = end.send(how);
        }
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("the splitter stops without a panic");
            }
        }
    }
}

impl Drop for ClusterSplitter {
    fn drop(&mut self) {
        self.finish(End::Drain);
    }
}

/// A splitter that may be waiting for the API server.
pub struct Starting {
    addrs: mpsc::Receiver<(SocketAddr, Option<SocketAddr>, SocketAddr)>,
    end: oneshot::Sender<End>,
    thread: JoinHandle<()>,
}

impl Starting {
    /// Whether it serves already; not to be asked again then.
    pub fn serves(&self) -> bool {
        self.addrs.try_recv().is_ok()
    }

    /// Waits until it serves.
    pub fn recv(self) -> ClusterSplitter {
        let (http, https, admin) = self
            .addrs
            .recv_timeout(crate::PATIENCE * 3)
            .expect("the splitter starts");
        ClusterSplitter {
            http,
            https,
            admin,
            end: Some(self.end),
            thread: Some(self.thread),
        }
    }
}

async fn serve(instance: Instance, ended: oneshot::Receiver<End>) {
    let (drain, draining) = oneshot::channel::<()>();
    let serving = instance.serve(async {
        // Dropping the sender is no order to drain.
        if draining.await.is_err() {
            std::future::pending::<()>().await;
        }
    });
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        how = ended => match how {
            Ok(End::Kill) => {}
            Ok(End::Drain) | Err(_) => {
                // It waits for this alone.
                let _ = drain.send(());
                serving.await.expect("the splitter stops");
            }
        },
        result = &mut serving => result.expect("the splitter stops"),
    }
}
