//! A directory of manifests on a real disk: what is read and what is kept.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::os::unix::fs::symlink;

use splitter::k8s::{MAX_DEPTH, MAX_FILE_BYTES, Manifests};
use splitter_tests::directory::{Fixture, service};

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
