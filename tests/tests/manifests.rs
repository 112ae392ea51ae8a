//! A directory of manifests on a real disk: what is read, what is kept, and when to look again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use splitter::k8s::{BURST_LIMIT, MAX_DEPTH, MAX_FILE_BYTES, ManifestWatcher, Manifests, POLL};
use tempfile::TempDir;

/// Longer than anything here takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

struct Fixture {
    root: TempDir,
    manifests: Manifests,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let manifests = Manifests::new(root.path());
        Fixture { root, manifests }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The names of the Services and the codes of the Problems.
    fn read(&mut self) -> (Vec<String>, Vec<&'static str>) {
        let (objects, problems) = self.manifests.reload();
        let names = objects
            .services
            .iter()
            .map(|it| it.object.metadata.name.clone().unwrap());
        (names.collect(), problems.iter().map(|it| it.code).collect())
    }

    fn services(&mut self) -> Vec<String> {
        let (services, problems) = self.read();
        assert_eq!(problems, [""; 0]);
        services
    }
}

fn service(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{ports: [{{port: 80}}]}}\n"
    )
}

#[test]
fn reads_manifests_below_the_directory_in_path_order() {
    let mut it = Fixture::new();
    it.write("b.yaml", &service("b"));
    it.write("a.yml", &service("a"));
    it.write(
        "sub/deep/c.json",
        "{\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {\"name\": \"c\"}}",
    );
    for other in [
        "x.txt",
        "x.yaml~",
        ".x.yaml",
        ".x.yaml.swp",
        ".git/x.yaml",
        "4913",
    ] {
        it.write(other, &service("x"));
    }
    assert_eq!(it.services(), ["a", "b", "c"]);
}

#[test]
fn a_single_file_is_read_whatever_its_name() {
    let it = Fixture::new();
    it.write("all.txt", &service("a"));
    let (objects, problems) = Manifests::new(it.path("all.txt")).reload();
    assert_eq!((objects.services.len(), problems.len()), (1, 0));
    assert_eq!(&*objects.services[0].source, "all.txt#1");
}

#[test]
fn of_two_definitions_the_first_by_path_stays() {
    let mut it = Fixture::new();
    it.write("2.yaml", &service("a"));
    it.write("1.yaml", &service("a"));
    let (objects, problems) = it.manifests.reload();
    assert_eq!(objects.services.len(), 1);
    assert_eq!(&*objects.services[0].source, "1.yaml#1");
    assert_eq!(
        (problems[0].code, problems[0].source.as_str()),
        ("object-duplicate", "2.yaml#1")
    );
    fs::remove_file(it.path("1.yaml")).unwrap();
    assert_eq!(it.services(), ["a"]);
}

#[test]
fn a_mounted_config_map_is_read_once_and_followed() {
    let mut it = Fixture::new();
    it.write("..2026_01/a.yaml", &service("old"));
    symlink("..2026_01", it.path("..data")).unwrap();
    symlink("..data/a.yaml", it.path("a.yaml")).unwrap();
    assert_eq!(it.services(), ["old"]);
    // As the kubelet does it: a new directory, then one rename.
    it.write("..2026_02/a.yaml", &service("new"));
    symlink("..2026_02", it.path("..data_tmp")).unwrap();
    fs::rename(it.path("..data_tmp"), it.path("..data")).unwrap();
    fs::remove_dir_all(it.path("..2026_01")).unwrap();
    assert_eq!(it.services(), ["new"]);
}

#[test]
fn links_in_a_circle_end() {
    let mut it = Fixture::new();
    it.write("a/a.yaml", &service("a"));
    symlink("..", it.path("a/up")).unwrap();
    symlink("a", it.path("b")).unwrap();
    symlink("self.yaml", it.path("self.yaml")).unwrap();
    symlink("nowhere", it.path("dangling.yaml")).unwrap();
    let (services, problems) = it.read();
    assert_eq!(services, ["a"]);
    // A link to itself cannot be looked at; one to nothing is nothing.
    assert_eq!(problems, ["manifests-unreadable"]);
}

#[test]
fn depth_is_limited() {
    let mut it = Fixture::new();
    let inside = vec!["d"; MAX_DEPTH - 1].join("/");
    it.write(&format!("{inside}/a.yaml"), &service("a"));
    assert_eq!(it.services(), ["a"]);
    it.write(&format!("{inside}/d/b.yaml"), &service("b"));
    assert_eq!(
        it.read(),
        (vec!["a".to_owned()], vec!["manifests-unreadable"])
    );
}

#[test]
fn a_pipe_is_no_manifest() {
    let mut it = Fixture::new();
    let status = std::process::Command::new("mkfifo")
        .arg(it.path("p.yaml"))
        .status();
    assert!(status.unwrap().success());
    assert_eq!(it.services(), [""; 0]);
}

#[test]
fn a_name_that_is_no_text_is_reported() {
    use std::os::unix::ffi::OsStrExt;
    let mut it = Fixture::new();
    let name = std::ffi::OsStr::from_bytes(b"\xff.yaml");
    fs::write(it.root.path().join(name), service("a")).unwrap();
    fs::write(
        it.root
            .path()
            .join(std::ffi::OsStr::from_bytes(b"\xff.txt")),
        "",
    )
    .unwrap();
    assert_eq!(it.read(), (vec![], vec!["manifests-unreadable"]));
}

#[test]
fn a_half_written_file_keeps_its_last_good_objects() {
    let mut it = Fixture::new();
    let whole = format!("{}---\n{}", service("a"), service("b"));
    it.write("f.yaml", &whole);
    it.write("other.yaml", &service("o"));
    let all = ["a", "b", "o"];
    assert_eq!(it.services(), all);
    for half in ["", &whole[..7], &whole[..60], &whole[..whole.len() - 40]] {
        it.write("f.yaml", half);
        let (services, problems) = it.read();
        assert_eq!(services, all, "{half:?}");
        assert_eq!(problems.len(), 1, "{half:?}");
    }
    // The edit is complete.
    it.write("f.yaml", &service("b"));
    assert_eq!(it.services(), ["b", "o"]);
    // Comments alone are a decision, not an accident.
    it.write("f.yaml", "# nothing any more\n");
    assert_eq!(it.services(), ["o"]);
}

#[test]
fn a_file_that_was_never_good_gives_what_parses() {
    let mut it = Fixture::new();
    it.write(
        "f.yaml",
        &format!("{}---\n{{\n---\n{}", service("a"), service("b")),
    );
    assert_eq!(
        it.read(),
        (vec!["a".to_owned(), "b".to_owned()], vec!["yaml-invalid"])
    );
    it.write("f.yaml", &format!("{}---\n{{\n", service("c")));
    assert_eq!(it.read(), (vec!["c".to_owned()], vec!["yaml-invalid"]));
}

#[test]
fn a_deleted_file_is_gone() {
    let mut it = Fixture::new();
    it.write("a.yaml", &service("a"));
    it.write("sub/b.yaml", &service("b"));
    assert_eq!(it.services(), ["a", "b"]);
    fs::remove_dir_all(it.path("sub")).unwrap();
    assert_eq!(it.services(), ["a"]);
    fs::remove_file(it.path("a.yaml")).unwrap();
    assert_eq!(it.services(), [""; 0]);
}

#[test]
fn what_cannot_be_read_as_text_is_reported_and_the_last_state_kept() {
    let mut it = Fixture::new();
    it.write("a.yaml", &service("a"));
    assert_eq!(it.services(), ["a"]);
    for bytes in [
        vec![0xff, 0xfe, 0x41],
        vec![b'#'; MAX_FILE_BYTES as usize + 1],
    ] {
        fs::write(it.path("a.yaml"), &bytes).unwrap();
        assert_eq!(it.read(), (vec!["a".to_owned()], vec!["file-unreadable"]));
    }
    it.write("a.yaml", &service("b"));
    assert_eq!(it.services(), ["b"]);
    fs::write(it.path("new.yaml"), [0xff]).unwrap();
    assert_eq!(it.read(), (vec!["b".to_owned()], vec!["file-unreadable"]));
}

#[test]
fn the_largest_file_is_read() {
    let mut it = Fixture::new();
    let mut text = service("a");
    text.push('#');
    text.push_str(&"x".repeat(MAX_FILE_BYTES as usize - text.len()));
    it.write("a.yaml", &text);
    assert_eq!(it.services(), ["a"]);
}

#[test]
fn a_missing_directory_keeps_the_last_state() {
    let mut it = Fixture::new();
    let directory = it.path("d");
    it.manifests = Manifests::new(&directory);
    assert_eq!(it.read(), (vec![], vec!["manifests-unreadable"]));
    it.write("d/a.yaml", &service("a"));
    it.write("d/sub/b.yaml", &service("b"));
    assert_eq!(it.services(), ["a", "b"]);
    fs::rename(&directory, it.path("away")).unwrap();
    let (objects, problems) = it.manifests.reload();
    assert_eq!(objects.services.len(), 2);
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0]
            .to_string()
            .contains("what was read there before stays in use")
    );
    fs::create_dir(&directory).unwrap();
    assert_eq!(it.services(), [""; 0]);
}

#[test]
fn what_was_below_a_place_that_cannot_be_looked_at_is_kept() {
    let mut it = Fixture::new();
    it.write("a.yaml", &service("a"));
    it.write("sub/b.yaml", &service("b"));
    assert_eq!(it.services(), ["a", "b"]);
    // A link in a circle stands for every fault: root, who runs tests, may read everything.
    fs::rename(it.path("sub"), it.path(".sub")).unwrap();
    symlink("sub", it.path("sub")).unwrap();
    assert_eq!(
        it.read(),
        (
            vec!["a".to_owned(), "b".to_owned()],
            vec!["manifests-unreadable"]
        )
    );
    fs::remove_file(it.path("sub")).unwrap();
    assert_eq!(it.services(), ["a"]);
}

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
