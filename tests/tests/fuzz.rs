//! The fuzz targets on a stable compiler: the corpus, and changed copies of it from a fixed seed.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use splitter_tests::fuzz::{Mutator, TARGETS, run};

/// Changed copies of the corpus for each target.
const COPIES: u32 = 3_000;

/// The longest copy, in bytes.
const LONGEST: usize = 4096;

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz")
        .join(name)
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<_> = fs::read_dir(place("corpus").join(target))
        .unwrap_or_else(|error| panic!("the corpus of {target}: {error}"))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let corpus: Vec<_> = files.iter().map(|it| fs::read(it).unwrap()).collect();
    assert!(!corpus.is_empty(), "{target} has a corpus");
    corpus
}

fn fuzz(target: &str) {
    let corpus = corpus(target);
    for data in &corpus {
        run(target, data);
    }
    let mut mutator = Mutator::new(0x5eed);
    for number in 0..COPIES {
        let data = mutator.pick(&corpus).cloned().unwrap();
        let data = mutator.change(&data, LONGEST);
        let ran = std::panic::catch_unwind(|| run(target, &data));
        assert!(
            ran.is_ok(),
            "copy {number} of {target}: {:?}",
            data.escape_ascii().to_string()
        );
    }
}

#[test]
fn annotations() {
    fuzz("annotations");
}

#[test]
fn client_hello() {
    fuzz("client_hello");
}

#[test]
fn cookies() {
    fuzz("cookies");
}

#[test]
fn forwarded() {
    fuzz("forwarded");
}

#[test]
fn key_sets() {
    fuzz("key_sets");
}

#[test]
fn manifests() {
    fuzz("manifests");
}

#[test]
fn passwords() {
    fuzz("passwords");
}

#[test]
fn proxy_header() {
    fuzz("proxy_header");
}

#[test]
fn rewrites() {
    fuzz("rewrites");
}

#[test]
fn secrets() {
    fuzz("secrets");
}

#[test]
fn tokens() {
    fuzz("tokens");
}

/// Each target has a corpus here and a program for `cargo fuzz`, and neither has another one.
#[test]
fn every_target_is_there_in_each_form() {
    let names: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let of = |directory: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(place(directory)).unwrap();
        let stems = entries.map(|it| it.unwrap().path());
        stems
            .map(|it| it.file_stem().unwrap().to_string_lossy().into_owned())
            .collect()
    };
    assert_eq!(of("corpus"), names);
    assert_eq!(of("fuzz_targets"), names);
    let manifest = fs::read_to_string(place("Cargo.toml")).unwrap();
    for name in names {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}

#[test]
fn the_same_seed_gives_the_same_copies() {
    let copies = |seed| {
        let mut mutator = Mutator::new(seed);
        (0..50)
            .map(|_| mutator.change(b"a=b; c=d", 64))
            .collect::<Vec<_>>()
    };
    assert_eq!(copies(1), copies(1));
    assert_ne!(copies(1), copies(2));
}
