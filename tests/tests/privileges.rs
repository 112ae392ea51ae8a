//! What a running process may do: looked up in /proc, thread by thread.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use splitter_tests::bpf::Site;
use splitter_tests::eventually;

const NET_ADMIN: u64 = 1 << 12;
const BPF: u64 = 1 << 39;

fn site() -> Site {
    Site::new(env!("CARGO_BIN_EXE_splitter-here"))
}

/// A thread of the process: its name, and a line of its status.
struct Thread {
    name: String,
    status: String,
}

impl Thread {
    fn line(&self, name: &str) -> &str {
        let mut lines = self.status.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("{name}: {}", self.status))
            .trim()
    }

    fn capabilities(&self, set: &str) -> u64 {
        u64::from_str_radix(self.line(set), 16).unwrap()
    }
}

fn threads(site: &Site) -> Vec<Thread> {
    let tasks = PathBuf::from(format!("/proc/{}/task", site.pid()));
    let tasks = fs::read_dir(tasks)
        .unwrap()
        .map(|task| task.unwrap().path());
    let read = |path: PathBuf, file| fs::read_to_string(path.join(file)).ok();
    let threads = tasks.filter_map(|path| {
        // One that reads files may end meanwhile.
        Some(Thread {
            name: read(path.clone(), "comm")?.trim().to_owned(),
            status: read(path, "status")?,
        })
    });
    threads.collect()
}

/// Holds every thread against what it may have: the first one that, the others nothing.
fn check(site: &Site, first: u64) {
    let threads = threads(site);
    let named = |part: &str| threads.iter().any(|it| it.name.contains(part));
    assert!(
        named("access-log") && named("manifests"),
        "the threads are there"
    );
    for (index, thread) in threads.iter().enumerate() {
        // The first task is the process itself, which controls.
        let may = if index == 0 { first } else { 0 };
        for set in ["CapEff", "CapPrm"] {
            assert_eq!(thread.capabilities(set), may, "{set} of {}", thread.name);
        }
        for set in ["CapInh", "CapAmb"] {
            assert_eq!(thread.capabilities(set), 0, "{set} of {}", thread.name);
        }
        let bounds = thread.capabilities("CapBnd");
        assert_eq!(bounds & !may, 0, "CapBnd of {}", thread.name);
        assert_eq!(thread.line("NoNewPrivs"), "1", "{}", thread.name);
    }
    let limits = fs::read_to_string(format!("/proc/{}/limits", site.pid())).unwrap();
    let cores = limits
        .lines()
        .find(|it| it.starts_with("Max core file size"));
    let cores: Vec<_> = cores.unwrap().split_whitespace().collect();
    assert_eq!(cores[4..6], ["0", "0"]);
}

#[test]
fn with_steering_only_the_control_thread_keeps_what_it_takes() {
    let mut site = site();
    site.start("--steering xdp --http 0.0.0.0:80 --access-log stdout");
    check(&site, NET_ADMIN | BPF);
    assert_eq!(site.get(&site.nodes.out, "203.0.113.1:80").status, 200);
    // It can still do its work: maps are written, and the end takes everything away.
    site.weigh(50);
    eventually("the weight is taken over", || {
        let weight = [("variant", "web-next")];
        site.metrics().sum("splitter_variant_weight", &weight) == 50.0
    });
    assert!(site.stop().success());
    let log = site.log().to_ascii_lowercase();
    assert!(
        !log.contains("not permitted") && !log.contains("eperm"),
        "{log}"
    );
}

#[test]
fn without_steering_nothing_is_kept() {
    let mut site = site();
    site.start("--steering none --http 0.0.0.0:80");
    check(&site, 0);
    assert_eq!(site.get(&site.nodes.out, "203.0.113.1:80").status, 200);
    assert!(site.stop().success());
}

#[test]
fn nobody_of_the_same_user_can_read_its_memory() {
    // What is not dumpable belongs to root in /proc, whoever runs it.
    let mut site = site();
    let outer = ["setpriv", "--reuid=65534", "--clear-groups", "--"];
    let args = site.run_args("--steering none --http 0.0.0.0:8080");
    site.share();
    let command = site.command_under(&outer, &args);
    site.start_as(command);
    let status = threads(&site).remove(0);
    assert!(status.line("Uid").starts_with("65534"), "{}", status.status);
    let maps = fs::metadata(format!("/proc/{}/environ", site.pid())).unwrap();
    assert_eq!(maps.uid(), 0);
    assert!(site.stop().success());
}
