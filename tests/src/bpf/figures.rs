//! Figures that are for people: `cargo xtask test` shows them when all tests have run.

#![allow(
    clippy::print_stdout,
    reason = "so that they are seen without xtask too"
)]

use std::fs::OpenOptions;
use std::io::Write as _;

/// What every figure's line begins with.
const MARK: &str = "figure: ";

/// The environment variable that names the file for figures.
const FILE: &str = "SPLITTER_FIGURES";

/// Prints a figure, and keeps it for the end of the tests if somebody asked for that.
///
/// # Panics
/// When the file cannot be written.
pub fn note(figure: &str) {
    println!("{MARK}{figure}");
    if let Some(path) = std::env::var_os(FILE) {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        // One write a line: other tests write too.
        let written = file.and_then(|mut file| file.write_all(format!("{figure}\n").as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// The figures in what a test printed elsewhere.
pub fn of(text: &str) -> Vec<&str> {
    let lines = text.lines();
    // A test runner may have begun the line.
    let found = lines.filter_map(|line| line.split_once(MARK));
    found.map(|(_, figure)| figure.trim_end()).collect()
}
