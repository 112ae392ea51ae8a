//! The admin server over real sockets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use splitter::admin::{
    AdminState, HEADER_TIMEOUT, LIFETIME, Listener, MAX_CONNECTIONS, MAX_HEAD_BYTES, Readiness,
    serve,
};
use splitter::model::{Kind, ObjectRef, Problem, Severity, Weights};
use splitter::routing::{Live, SlotId, WeightSource};
use splitter::telemetry::{ControllerLabels, Registry, WorkerMetrics};
use splitter_tests::prometheus::Page;
use splitter_tests::telemetry::{Request, empty, shop};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

const DEADLINE: Duration = Duration::from_secs(20);

/// Weights that somebody can write.
#[derive(Default)]
struct Slots(Mutex<Vec<Weights>>);

impl WeightSource for Slots {
    fn weights(&self, slot: SlotId) -> Weights {
        let slots = self.0.lock().unwrap();
        slots.get(slot.0 as usize).copied().unwrap_or_default()
    }
}

struct Admin {
    addr: SocketAddr,
    registry: Registry,
    readiness: Readiness,
    live: watch::Sender<Arc<Live>>,
    problems: watch::Sender<Arc<Vec<Problem>>>,
    slots: Arc<Slots>,
    server: JoinHandle<()>,
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn admin() -> Admin {
    let live = shop(1);
    let weights = live.snapshot.locations.iter().map(|l| l.split.weights());
    let slots = Arc::new(Slots(Mutex::new(weights.collect())));
    let (live_sender, live) = watch::channel(Arc::new(live));
    let (problem_sender, problems) = watch::channel(Arc::default());
    let state = AdminState {
        registry: Registry::new(&ControllerLabels::default()),
        readiness: Readiness::new(),
        live,
        problems,
        weights: slots.clone(),
        steering: watch::channel(serde_json::json!({"mode": "none"})).1,
        l4: splitter::telemetry::L4Stats::default(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Admin {
        addr: listener.local_addr().unwrap(),
        registry: state.registry.clone(),
        readiness: state.readiness.clone(),
        live: live_sender,
        problems: problem_sender,
        slots,
        server: tokio::spawn(async move {
            // Goes on until the test ends.
            let (_stays, stop) = watch::channel(false);
            serve(Listener::Tcp(listener), state, stop).await;
        }),
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Admin {
    async fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        timeout(DEADLINE, read).await.unwrap().unwrap();
        Answer::parse(&bytes)
    }

    async fn request(&self, method: &str, path: &str) -> Answer {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        self.send(&head).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.request("GET", path).await
    }

    fn observe_home(&self) -> WorkerMetrics {
        let mut worker = self.registry.worker("north-south");
        let live = self.live.borrow().clone();
        worker.observe(&Request::default().record(&live));
        worker
    }

    async fn metrics(&self) -> Page {
        Page::read(&self.get("/metrics").await.body).unwrap()
    }
}

fn problem(severity: Severity, name: &str) -> Problem {
    Problem {
        severity,
        object: ObjectRef::new(Kind::Ingress, "shop", name),
        source: "shop.yaml#1".to_owned(),
        field: "spec.rules[0]".to_owned(),
        code: "service-not-found",
        message: "there is no \"web\"".to_owned(),
        effect: "answers 503".to_owned(),
    }
}

#[tokio::test]
async fn the_index_names_every_page_and_every_page_is_there() {
    let admin = admin().await;
    let index = admin.get("/").await;
    let paths: Vec<&str> = index
        .body
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(
        paths,
        [
            "/healthz",
            "/readyz",
            "/metrics",
            "/config_dump",
            "/problems"
        ]
    );
    for path in paths {
        let answer = admin.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.head.contains("server: splitter"), "{path}");
    }
}

#[tokio::test]
async fn readiness_names_what_is_missing_and_drains() {
    let admin = admin().await;
    let listeners = admin.readiness.guard("listeners");
    let manifests = admin.readiness.guard("manifests");
    let answer = admin.get("/readyz").await;
    assert_eq!(answer.status, 503);
    assert_eq!(
        answer.body,
        "not ready\nwaiting for listeners\nwaiting for manifests\n"
    );
    assert_eq!(
        admin.get("/healthz").await.status,
        200,
        "alive all the same"
    );
    drop((listeners, manifests));
    admin.readiness.note("steering", "none");
    let answer = admin.get("/readyz").await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (200, "ready\nsteering: none\n")
    );
    admin.readiness.drain();
    let answer = admin.get("/readyz").await;
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("draining"));
}

#[tokio::test]
async fn metrics_are_prometheus_text_with_the_weights_in_use() {
    let admin = admin().await;
    let worker = admin.observe_home();
    let answer = admin.get("/metrics").await;
    assert!(
        answer
            .head
            .contains("content-type: text/plain; version=0.0.4")
    );
    let page = Page::read(&answer.body).unwrap();
    assert_eq!(
        page.sum("nginx_ingress_controller_requests", &[("ingress", "web")]),
        1.0
    );
    let weight = "splitter_variant_weight";
    let of = |variant| [("host", "a.example"), ("path", "/"), ("variant", variant)];
    assert_eq!(page.sum(weight, &of("stable")), 70.0);
    assert_eq!(page.sum(weight, &of("web-canary")), 20.0);
    let without_canary = page.select(weight, &[("host", "b.example")]);
    assert!(without_canary.is_empty());
    admin.slots.0.lock().unwrap()[0].values[1] = 55;
    assert_eq!(admin.metrics().await.sum(weight, &of("web-canary")), 55.0);
    drop(worker);
}

#[tokio::test]
async fn series_of_an_ingress_that_is_gone_are_shown_once_more() {
    let admin = admin().await;
    let _worker = admin.observe_home();
    let requests = "nginx_ingress_controller_requests";
    assert_eq!(admin.metrics().await.sum(requests, &[]), 1.0);
    admin.live.send_replace(Arc::new(empty(2)));
    assert_eq!(admin.metrics().await.sum(requests, &[]), 1.0);
    assert!(admin.metrics().await.select(requests, &[]).is_empty());
}

#[tokio::test]
async fn problems_are_counted_and_listed_in_order() {
    let admin = admin().await;
    assert_eq!(
        admin.get("/problems").await.json(),
        Value::Array(Vec::new())
    );
    let list = vec![
        problem(Severity::Error, "b"),
        problem(Severity::Warning, "z"),
        problem(Severity::Error, "a"),
    ];
    admin.problems.send_replace(Arc::new(list));
    let answer = admin.get("/problems").await;
    assert!(answer.head.contains("content-type: application/json"));
    let names: Vec<_> = answer
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|p| format!("{} {}", p["severity"], p["object"]["name"]))
        .collect();
    assert_eq!(
        names,
        [r#""warning" "z""#, r#""error" "a""#, r#""error" "b""#]
    );
    let page = admin.metrics().await;
    assert_eq!(page.sum("splitter_problems", &[("severity", "error")]), 2.0);
    assert_eq!(
        page.sum("splitter_problems", &[("severity", "warning")]),
        1.0
    );
}

#[tokio::test]
async fn the_dump_has_the_snapshot_and_weights_wanted_and_live() {
    let admin = admin().await;
    admin.slots.0.lock().unwrap()[0].values[1] = 55;
    let first = admin.get("/config_dump").await;
    assert_eq!(
        first.body,
        admin.get("/config_dump").await.body,
        "stable order"
    );
    let dump = first.json();
    assert_eq!(dump["generation"], 1);
    assert_eq!(dump["steering"]["mode"], "none");
    assert_eq!(dump["snapshot"]["locations"].as_array().unwrap().len(), 4);
    insta::assert_json_snapshot!(dump["weights"]);
}

#[tokio::test]
async fn head_has_the_length_and_no_body() {
    let admin = admin().await;
    let body = admin.get("/healthz").await.body;
    let answer = admin.request("HEAD", "/healthz").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    let length = format!("content-length: {}", body.len());
    assert!(answer.head.contains(&length), "{}", answer.head);
}

#[tokio::test]
async fn other_methods_and_pages_are_refused_with_what_there_is() {
    let admin = admin().await;
    for method in ["POST", "PUT", "DELETE", "BREW"] {
        let answer = admin.request(method, "/metrics").await;
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.head.contains("allow: get, head"), "{}", answer.head);
    }
    let answer = admin.get("/metrics/").await;
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("/config_dump"));
    assert_eq!(admin.get("/healthz?verbose").await.status, 200);
}

#[tokio::test]
async fn what_is_no_http_or_too_long_gets_an_error_and_others_go_on() {
    let admin = admin().await;
    assert_eq!(admin.send("nonsense\r\n\r\n").await.status, 400);
    let long = "x".repeat(MAX_HEAD_BYTES);
    let answer = admin.get(&format!("/{long}")).await;
    assert!([414, 431].contains(&answer.status), "{}", answer.status);
    assert_eq!(admin.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_body_is_not_waited_for() {
    let admin = admin().await;
    let head = "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n";
    let mut stream = TcpStream::connect(admin.addr).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 15];
    let read = stream.read_exact(&mut start);
    timeout(DEADLINE, read).await.unwrap().unwrap();
    assert_eq!(&start, b"HTTP/1.1 200 OK");
}

/// Reads one answer with a body, leaving the connection open.
async fn exchange(stream: &mut TcpStream) -> Answer {
    let head = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"ok\n") {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0);
    }
    Answer::parse(&bytes)
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_and_counted() {
    let admin = admin().await;
    let mut held = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let mut stream = TcpStream::connect(admin.addr).await.unwrap();
        assert_eq!(exchange(&mut stream).await.status, 200);
        held.push(stream);
    }
    let mut refused = TcpStream::connect(admin.addr).await.unwrap();
    let closed = timeout(DEADLINE, refused.read(&mut [0; 1])).await.unwrap();
    assert_eq!(closed.unwrap(), 0);
    assert_eq!(exchange(&mut held[0]).await.status, 200, "those held go on");
    held.pop();
    let refused = "splitter_admin_connections_refused_total";
    let page = admin.registry.page().into_string();
    assert!(Page::read(&page).unwrap().sum(refused, &[]) >= 1.0);
}

/// Waits until the server closes, and says how long it took by the paused clock.
async fn closed_after(mut stream: TcpStream) -> Duration {
    let start = Instant::now();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    start.elapsed()
}

/// The clock is paused and jumps to the next timer whenever everything waits.
#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_end_and_an_idle_connection_are_closed() {
    let admin = admin().await;
    let mut half = TcpStream::connect(admin.addr).await.unwrap();
    half.write_all(b"GET /healthz HTTP/1.1\r\nHo")
        .await
        .unwrap();
    let took = closed_after(half).await;
    assert!(took <= HEADER_TIMEOUT + Duration::from_secs(1), "{took:?}");
    let silent = TcpStream::connect(admin.addr).await.unwrap();
    let took = closed_after(silent).await;
    assert!(took <= HEADER_TIMEOUT + Duration::from_secs(1), "{took:?}");
    let mut idle = TcpStream::connect(admin.addr).await.unwrap();
    exchange(&mut idle).await;
    let took = closed_after(idle).await;
    assert!(took <= HEADER_TIMEOUT + Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_dropped_in_the_end() {
    let admin = admin().await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut slow = socket.connect(admin.addr).await.unwrap();
    let start = Instant::now();
    // Asks for more than all buffers hold and reads nothing, until its writes fail.
    let request = b"GET /config_dump HTTP/1.1\r\nHost: x\r\n\r\n".repeat(64);
    while slow.write_all(&request).await.is_ok() {
        assert!(start.elapsed() < 2 * LIFETIME, "still open");
    }
    assert!(start.elapsed() >= LIFETIME, "{:?}", start.elapsed());
}
