//! A whole splitter in this process, reading manifests from a directory of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use splitter::app::Instance;
use splitter::config::{
    AccessLog, ClassSettings, DataplaneSettings, HandOver, Identity, Limits, LogFormat,
    NameSettings, Settings, Source, Steering, Timeouts,
};
use splitter::model::AddressSet;
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::backend::Backend;
use crate::client;
use crate::manifests::Manifests;
use crate::prometheus::Page;

/// A running splitter; stops when dropped.
pub struct Splitter {
    dir: TempDir,
    http: SocketAddr,
    https: Option<SocketAddr>,
    admin: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Splitter {
    /// Starts one with the default settings.
    pub fn start(manifests: &Manifests) -> Self {
        Self::start_with(manifests, |_| {})
    }

    /// Starts one with other settings: one worker, ports of its own, no access log, to begin with.
    pub fn start_with(manifests: &Manifests, change: impl FnOnce(&mut Settings)) -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("objects.yaml"), manifests.yaml()).unwrap();
        let mut settings = settings(dir.path());
        change(&mut settings);
        let (started, addrs) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let instance = Instance::start(settings)
                    .await
                    .expect("the splitter starts");
                started
                    .send((
                        instance.http()[0],
                        instance.https().first().copied(),
                        instance.admin(),
                    ))
                    .unwrap();
                let stopped = async { stopped.await.unwrap_or_default() };
                instance.serve(stopped).await.expect("the splitter stops");
            });
        });
        let (http, https, admin) = addrs.recv().expect("the splitter starts");
        Splitter {
            dir,
            http,
            https,
            admin,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Starts one that sends everything for host `a.test` to `backend`.
    pub fn before(backend: &Backend) -> Self {
        Self::before_with(backend, |_| {})
    }

    /// The same with other settings.
    pub fn before_with(backend: &Backend, change: impl FnOnce(&mut Settings)) -> Self {
        let manifests = Manifests::new()
            .main("main", "a.test", "/", "main")
            .service("main", &[backend.addr()]);
        Self::start_with(&manifests, change)
    }

    /// A connection to it.
    pub fn client(&self) -> client::Client {
        client::Client::connect(self.http)
    }

    /// A GET on a connection of its own.
    pub fn get(&self, host: &str, path: &str) -> client::Answer {
        client::get(self.http, host, path)
    }

    /// A GET with more fields (each ended by CRLF) on a connection of its own.
    pub fn get_with(&self, host: &str, path: &str, fields: &str) -> client::Answer {
        client::get_with(self.http, host, path, fields)
    }

    /// Its metrics now.
    pub fn metrics(&self) -> Page {
        let answer = client::get(self.admin, "admin", "/metrics");
        assert_eq!(answer.status, 200);
        Page::read(&answer.text()).expect("the metrics are well-formed")
    }

    /// Waits until the series with these labels come to this: what a client has seen may be counted
    /// a moment later.
    ///
    /// # Panics
    /// When they do not within the patience of the tests.
    #[track_caller]
    pub fn expect_sum(&self, name: &str, labels: &[(&str, &str)], expected: f64) {
        crate::prometheus::expect_sum(|| self.metrics(), name, labels, expected);
    }

    /// A page of the admin server, as JSON.
    pub fn dump(&self, page: &str) -> serde_json::Value {
        let answer = client::get(self.admin, "admin", page);
        assert_eq!(answer.status, 200);
        serde_json::from_slice(&answer.body).expect("the dump is JSON")
    }

    /// The faults in objects: `code` of each, with the object's name in front, e.g.
    /// `shop: canary-stray`.
    pub fn problems(&self) -> Vec<String> {
        let problems = self.dump("/problems");
        let problems = problems.as_array().expect("problems are a list");
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        problems
            .iter()
            .map(|problem| {
                format!(
                    "{}: {}",
                    text(&problem["object"]["name"]),
                    text(&problem["code"])
                )
            })
            .collect()
    }

    /// How often a fault was counted.
    pub fn faults(&self, name: &str) -> f64 {
        self.metrics()
            .sum("splitter_faults_total", &[("fault", name)])
    }

    /// Where requests go.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where requests go over TLS, if that was asked for.
    pub fn https(&self) -> SocketAddr {
        self.https.expect("the splitter listens for TLS")
    }

    /// Where metrics and dumps are.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Replaces the manifests, as an editor does: a new file in the old one's place.
    pub fn apply(&self, manifests: &Manifests) {
        let path = self.dir.path().join("objects.yaml");
        let next = self.dir.path().join("objects.next");
        std::fs::write(&next, manifests.yaml()).unwrap();
        std::fs::rename(next, path).unwrap();
    }

    /// The directory of the manifests.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Has it stop, without waiting for the end.
    pub fn begin_stop(&mut self) {
        self.stop.take();
    }

    /// Stops it and waits for the end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("the splitter stops without a panic");
            }
        }
    }
}

impl Drop for Splitter {
    fn drop(&mut self) {
        self.end();
    }
}

/// The settings of every test, with manifests in `dir`.
pub(crate) fn settings(dir: &Path) -> Settings {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    Settings {
        source: Source::Manifests(dir.to_owned()),
        http: vec![any],
        https: Vec::new(),
        default_certificate: None,
        ticket_secret: None,
        hsts: None,
        admin: any,
        steering: Steering::None,
        dataplane: DataplaneSettings::new(1),
        class: ClassSettings::default(),
        workers: 1,
        log_format: LogFormat::Text,
        access_log: AccessLog::Off,
        use_forwarded_headers: false,
        names: NameSettings::default(),
        use_proxy_protocol: false,
        proxy_real_ip: AddressSet::all(),
        shutdown_delay: Duration::ZERO,
        drain_timeout: Duration::from_secs(5),
        timeouts: Timeouts::default(),
        limits: Limits {
            // Few tests are about it, and many send much.
            max_body_bytes: 0,
            ..Limits::default()
        },
        l4: splitter::config::L4Limits::default(),
        identity: Identity::default(),
        hand_over: HandOver::default(),
        probe_socket: None,
        webhook: None,
    }
}
