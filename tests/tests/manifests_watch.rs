//! A directory of manifests on a real disk: when to look again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use splitter::k8s::{BURST_LIMIT, ManifestWatcher, Manifests, POLL};
use splitter_tests::PATIENCE;
use splitter_tests::directory::{Fixture, service};

/// A watched directory, with nothing outstanding.
struct Watched {
    it: Fixture,
    watcher: ManifestWatcher,
}

impl Watched {
    fn start() -> Self {
        let mut it = Fixture::new();
        it.write("a.yaml", &service("a"));
        let watcher = ManifestWatcher::start(it.root.path()).unwrap();
        it.read();
        Watched { it, watcher }
    }

    async fn changed(&mut self) {
        let changed = tokio::time::timeout(PATIENCE, self.watcher.changed());
        changed.await.expect("no change was reported");
    }

    /// Waits until the directory gives these Services.
    async fn becomes(&mut self, expected: &[&str]) {
        let start = Instant::now();
        while self.it.read().0 != expected {
            assert!(start.elapsed() < PATIENCE, "still {:?}", self.it.read());
            self.changed().await;
        }
    }
}

#[tokio::test]
async fn a_change_is_reported_after_it_can_be_read() {
    let mut watched = Watched::start();
    watched.it.write("a.yaml", &service("b"));
    watched.changed().await;
    assert_eq!(watched.it.services(), ["b"]);
    watched.it.write("new/c.yaml", &service("c"));
    watched.becomes(&["b", "c"]).await;
    fs::remove_file(watched.it.path("a.yaml")).unwrap();
    watched.becomes(&["c"]).await;
    fs::rename(
        watched.it.path("new/c.yaml"),
        watched.it.path("new/c.yaml.off"),
    )
    .unwrap();
    watched.becomes(&[]).await;
}

#[tokio::test]
async fn a_change_in_a_new_directory_is_seen() {
    let mut watched = Watched::start();
    fs::create_dir_all(watched.it.path("x/y")).unwrap();
    watched.it.write("x/y/b.yaml", &service("b"));
    watched.becomes(&["a", "b"]).await;
    watched.it.write("x/y/b.yaml", &service("c"));
    watched.becomes(&["a", "c"]).await;
}

#[tokio::test]
async fn reading_is_no_change() {
    let mut watched = Watched::start();
    watched.it.read();
    let quiet = tokio::time::timeout(Duration::from_millis(400), watched.watcher.changed()).await;
    assert!(quiet.is_err(), "a change was reported where there was none");
}

#[tokio::test]
async fn a_change_is_live_within_a_tenth_of_a_second() {
    let mut watched = Watched::start();
    let mut fastest = PATIENCE;
    // Other work on the machine may delay one; it does not delay each of twenty.
    for round in 0..20 {
        watched.it.write("a.yaml", &service(&format!("s{round}")));
        let written = Instant::now();
        watched.changed().await;
        assert_eq!(watched.it.services(), [format!("s{round}")]);
        fastest = fastest.min(written.elapsed());
    }
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
}

#[tokio::test]
async fn a_burst_without_end_is_not_waited_for() {
    let mut watched = Watched::start();
    let path = watched.it.path("busy.yaml");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        let mut writes = 0u32;
        // A pause far below the quiet time.
        while stopped.recv_timeout(Duration::from_millis(3)).is_err() {
            fs::write(&path, service("busy")).unwrap();
            writes += 1;
        }
        writes
    });
    let start = Instant::now();
    watched.changed().await;
    watched.changed().await;
    // Two reports, the second at most a limit after the first; generous for a busy machine.
    assert!(
        start.elapsed() < 2 * BURST_LIMIT + PATIENCE / 2,
        "{:?}",
        start.elapsed()
    );
    stop.send(()).unwrap();
    assert!(writer.join().unwrap() > 10);
    watched.becomes(&["a", "busy"]).await;
}

#[tokio::test]
async fn a_cancelled_wait_loses_no_change() {
    let mut watched = Watched::start();
    watched.it.write("a.yaml", &service("b"));
    // Cancelled again and again while the change is coming to rest.
    let start = Instant::now();
    let step = Duration::from_millis(2);
    while tokio::time::timeout(step, watched.watcher.changed())
        .await
        .is_err()
    {
        assert!(start.elapsed() < PATIENCE, "the change was lost");
    }
    assert_eq!(watched.it.services(), ["b"]);
}

#[tokio::test]
async fn an_edit_without_a_line_end_is_live_once_the_file_is_left_alone() {
    let mut watched = Watched::start();
    watched.it.write(
        "a.yaml",
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: whole",
    );
    watched.changed().await;
    // Nothing is written any more; the watcher itself asks for the second look.
    watched.becomes(&["whole"]).await;
}

#[tokio::test]
async fn a_config_map_update_is_seen() {
    let it = Fixture::new();
    it.write("..1/a.yaml", &service("old"));
    symlink("..1", it.path("..data")).unwrap();
    symlink("..data/a.yaml", it.path("a.yaml")).unwrap();
    let watcher = ManifestWatcher::start(it.root.path()).unwrap();
    let mut watched = Watched { it, watcher };
    watched.becomes(&["old"]).await;
    watched.it.write("..2/a.yaml", &service("new"));
    symlink("..2", watched.it.path("..data_tmp")).unwrap();
    fs::rename(watched.it.path("..data_tmp"), watched.it.path("..data")).unwrap();
    watched.becomes(&["new"]).await;
}

#[tokio::test]
async fn a_link_to_a_file_elsewhere_is_compared_from_time_to_time() {
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("target.yaml");
    fs::write(&target, service("old")).unwrap();
    let it = Fixture::new();
    symlink(&target, it.path("a.yaml")).unwrap();
    let watcher = ManifestWatcher::start(it.root.path()).unwrap();
    let mut watched = Watched { it, watcher };
    watched.becomes(&["old"]).await;
    let temporary = elsewhere.path().join("temporary");
    fs::write(&temporary, service("new")).unwrap();
    fs::rename(&temporary, &target).unwrap();
    watched.becomes(&["new"]).await;
    assert!(POLL < PATIENCE);
}

async fn remade(make: impl Fn(&Path)) {
    let it = Fixture::new();
    let directory = it.path("d");
    let mut watched = Watched {
        watcher: ManifestWatcher::start(&directory).unwrap(),
        it,
    };
    watched.it.manifests = Manifests::new(&directory);
    for name in ["first", "second"] {
        make(&directory);
        fs::write(directory.join("a.yaml"), service(name)).unwrap();
        watched.becomes(&[name]).await;
        // The new directory is watched like the old one.
        fs::write(directory.join("a.yaml"), service("edited")).unwrap();
        watched.becomes(&["edited"]).await;
        fs::remove_dir_all(&directory).unwrap();
        // Kept, and reported once the change is seen.
        while watched.it.read().1 != ["manifests-unreadable"] {
            watched.changed().await;
        }
        assert_eq!(watched.it.read().0, ["edited"]);
    }
}

#[tokio::test]
async fn a_directory_that_comes_later_or_again_is_watched() {
    remade(|directory| fs::create_dir(directory).unwrap()).await;
}

#[test]
fn the_thread_ends_with_its_watcher() {
    let threads = || {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("comm")));
        names
            .filter(|name| {
                name.as_ref()
                    .is_ok_and(|name| name.starts_with("manifests"))
            })
            .count()
    };
    let root = tempfile::tempdir().unwrap();
    // Other tests of this process have such threads too, so many are needed to tell.
    let many: Vec<_> = (0..40)
        .map(|_| ManifestWatcher::start(root.path()).unwrap())
        .collect();
    let before = threads();
    assert!(before >= 40, "{before}");
    drop(many);
    let start = Instant::now();
    while threads() >= 20 {
        assert!(
            start.elapsed() < PATIENCE,
            "{} of {before} are left",
            threads()
        );
        std::thread::yield_now();
    }
}
