//! A real Prometheus that scrapes a splitter.

use std::fs::File;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use splitter_tests::{client, eventually};
use tempfile::TempDir;

/// Nobody else is in the namespace.
const ADDR: ([u8; 4], u16) = ([127, 0, 0, 1], 9090);

/// Where others ask it.
#[allow(dead_code, reason = "only those who tell others ask for it")]
pub fn url() -> String {
    format!("http://{}", SocketAddr::from(ADDR))
}

/// A running one; ends when dropped.
pub struct Prometheus {
    child: Child,
    dir: TempDir,
}

impl Prometheus {
    /// Starts one that looks at `target` as often as it can.
    pub fn start(target: SocketAddr) -> Self {
        let dir = TempDir::new().unwrap();
        let config = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: splitter\n  \
             honor_labels: true\n  static_configs: [{{targets: [\"{target}\"]}}]\n"
        );
        let file = dir.path().join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let log = File::create(dir.path().join("log")).unwrap();
        let program = std::env::var_os("SPLITTER_PROMETHEUS");
        let child = Command::new(program.unwrap_or_else(|| "prometheus".into()))
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={}", SocketAddr::from(ADDR)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("prometheus, which `cargo xtask test --cluster` installs");
        let mut prometheus = Prometheus { child, dir };
        eventually("Prometheus is ready", || {
            let ended = prometheus.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {}", prometheus.log());
            std::net::TcpStream::connect(SocketAddr::from(ADDR)).is_ok()
                && client::get(ADDR.into(), "prometheus", "/-/ready").status == 200
        });
        prometheus
    }

    /// What a query comes to now; none when there is nothing, or when it is no number.
    pub fn value(&self, query: &str) -> Option<f64> {
        let query: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let path = format!("/api/v1/query?query={query}");
        let answer = client::get(ADDR.into(), "prometheus", &path);
        let answer: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer["status"], "success", "{answer}");
        let value = answer["data"]["result"][0]["value"][1].as_str()?;
        value.parse().ok().filter(|it: &f64| !it.is_nan())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Both fail only for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
