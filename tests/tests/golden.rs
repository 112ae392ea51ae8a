//! Golden directories: `tests/golden/<case>/input/` is read as a manifest directory and must give
//! `snapshot.yaml` and `problems.yaml` beside it; and `fates.yaml`, what `splitter check` says of
//! each Ingress, where that is there.
//!
//! A directory `input.2/` is read after `input/` by the same [`Manifests`], as if somebody had
//! edited the files in place; the expected files are then those of the end. `settings.yaml` holds
//! class settings other than the defaults. `UPDATE_GOLDEN=1` rewrites the expected files: read
//! them, they are the specification.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

use splitter::config::ClassSettings;
use splitter::k8s::{Manifests, compare, translate};

#[test]
fn every_case_gives_what_is_written_beside_it() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut failed = Vec::new();
    let cases = cases();
    for case in &cases {
        let (snapshot, problems, fates) = run(case);
        for (name, actual) in [
            ("snapshot.yaml", snapshot),
            ("problems.yaml", problems),
            ("fates.yaml", fates),
        ] {
            let path = case.join(name);
            if name == "fates.yaml" && !path.is_file() {
                continue;
            }
            if update {
                fs::write(&path, &actual).unwrap();
            }
            let expected = fs::read_to_string(&path).unwrap_or_default();
            if expected != actual {
                failed.push(format!(
                    "{}:\n{}",
                    path.display(),
                    difference(&expected, &actual)
                ));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(cases.len() >= 20, "only {} cases found", cases.len());
}

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut cases: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("input").is_dir())
        .collect();
    cases.sort();
    cases
}

fn run(case: &Path) -> (String, String, String) {
    let settings = settings(&case.join("settings.yaml"));
    let work = tempfile::tempdir().unwrap();
    copy(&case.join("input"), work.path());
    let mut manifests = Manifests::new(work.path());
    let (mut objects, mut problems) = manifests.reload();
    if case.join("input.2").is_dir() {
        copy(&case.join("input.2"), work.path());
        (objects, problems) = manifests.reload();
    }
    let translation = translate(&objects, &settings);
    // As `splitter check` does where no Secret is given.
    let fates = {
        let mut given = objects.clone();
        if given.secrets.is_empty() {
            given.suppose_secrets();
        }
        compare(&given, &settings, &translate(&given, &settings))
    };
    problems.extend(translation.problems.iter().cloned());
    (
        serde_norway::to_string(&translation.snapshot).unwrap(),
        serde_norway::to_string(&problems).unwrap(),
        serde_norway::to_string(&fates).unwrap(),
    )
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn settings(path: &Path) -> ClassSettings {
    let mut settings = ClassSettings::default();
    let Ok(text) = fs::read_to_string(path) else {
        return settings;
    };
    let values: serde_norway::Mapping = serde_norway::from_str(&text).unwrap();
    for (key, value) in values {
        let text = || value.as_str().unwrap().to_owned();
        match key.as_str().unwrap() {
            "ingressClass" => settings.ingress_class = text(),
            "annotationsPrefix" => settings.annotations_prefix = text(),
            "strictNginx" => settings.strict_nginx = value.as_bool().unwrap(),
            "withoutClass" => settings.without_class = value.as_bool().unwrap(),
            "tcpServices" => settings.l4.tcp_services = Some(text().parse().unwrap()),
            "udpServices" => settings.l4.udp_services = Some(text().parse().unwrap()),
            "controllers" => {
                let all = value.as_sequence().unwrap();
                settings.controllers = all
                    .iter()
                    .map(|it| it.as_str().unwrap().to_owned())
                    .collect();
            }
            other => panic!("{}: unknown setting {other}", path.display()),
        }
    }
    settings
}

/// The first lines that differ, with what comes before them.
fn difference(expected: &str, actual: &str) -> String {
    let same = expected
        .lines()
        .zip(actual.lines())
        .take_while(|(a, b)| a == b)
        .count();
    let show = |text: &str| {
        let lines = text.lines().skip(same.saturating_sub(3)).take(12);
        lines
            .map(|line| format!("    {line}\n"))
            .collect::<String>()
    };
    format!(
        "line {}\n  expected\n{}  actual\n{}",
        same + 1,
        show(expected),
        show(actual)
    )
}
