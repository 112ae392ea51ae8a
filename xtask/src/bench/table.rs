//! What the peer bench measured, as a section of docs/performance.md.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::results::Results;
use crate::process::output;

const BEGIN: &str = "<!-- Made by `cargo xtask bench --peers`: from here -->\n";
const END: &str = "<!-- to here -->\n";

/// What splitter may cost at most, as a share of the best peer: what it must reach, and what it aims at.
const GOALS: &[(&str, &str, &str, f64, f64)] = &[
    (
        "keepalive",
        "cpu_us",
        "64 kept connections, 1 KiB",
        0.90,
        0.70,
    ),
    ("close", "cpu_us", "a connection a request", 0.85, 0.65),
    ("large", "cpu_us", "answers of 1 MiB", 0.85, 0.70),
    ("post", "cpu_us", "bodies of 64 KiB", 0.85, 0.70),
    (
        "h2c",
        "cpu_us",
        "HTTP/2 in clear, 64 × 10 streams",
        0.85,
        0.62,
    ),
    (
        "tls",
        "cpu_us",
        "TLS 1.3, kept connections, 1 KiB",
        0.85,
        0.70,
    ),
    (
        "tls-new",
        "cpu_us",
        "a full TLS handshake a request",
        0.55,
        0.48,
    ),
    (
        "h2",
        "cpu_us",
        "HTTP/2 over TLS, 64 × 10 streams",
        0.85,
        0.65,
    ),
    (
        "keepalive-rate",
        "p50",
        "4,000 requests/s: median wait",
        1.0,
        0.85,
    ),
    (
        "close-rate",
        "p50",
        "1,500 connections/s: median wait",
        1.0,
        0.85,
    ),
];

const OURS: &str = "splitter";
/// Not among the peers: the same without a log, and the engine without anything around it.
const BESIDE: [&str; 2] = ["splitter-unlogged", "hyper"];
const PEERS: [&str; 4] = ["haproxy", "haproxy-splice", "nginx", "envoy"];

/// Puts the tables in place of the old ones.
///
/// # Errors
/// When there are no results, or the file has no place for the tables.
pub(super) fn publish(results: &str, file: &Path) -> Result<()> {
    let tables = tables(
        &Results::read(results)?,
        &output("date", &["-I"]).unwrap_or_default(),
    );
    println!("{tables}");
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let text = replaced(&text, &tables)
        .with_context(|| format!("{} has no lines {BEGIN:?} and {END:?}", file.display()))?;
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn replaced(text: &str, tables: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{tables}{END}{after}"))
}

fn tables(results: &Results, date: &str) -> String {
    let versions = results
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"));
    let versions: Vec<_> = versions.collect();
    let mut text = format!(
        "\n{}, {}; {}. Medians of {} runs.\n\n",
        date.trim(),
        results.machine,
        versions.join(", "),
        results.runs()
    );
    requests(results, &mut text);
    growth(results, &mut text);
    changes(results, &mut text);
    text
}

/// CPU time (or the median wait) of a request, all proxies beside each other, and how far the goal is.
fn requests(results: &Results, text: &mut String) {
    let columns = [&[OURS], &BESIDE[..], &PEERS[..]].concat();
    head(
        text,
        "µs a request",
        &columns,
        &[
            "of the best peer",
            "without a log",
            "must",
            "aim",
            "of hyper",
        ],
    );
    for (workload, key, what, must, aim) in GOALS {
        let value = |name: &str| results.median(workload, name, key);
        let Some(ours) = value(OURS) else { continue };
        let best = PEERS
            .iter()
            .filter_map(|name| value(name))
            .fold(f64::INFINITY, f64::min);
        let _ = write!(text, "| {workload}: {what} |");
        for name in &columns {
            let _ = write!(
                text,
                " {} |",
                value(name).map_or_else(|| "–".to_owned(), figure)
            );
        }
        // As it is shown.
        let missed = ((ours / best * 100.0).round() > must * 100.0).then_some(", missed");
        let verdict = missed.unwrap_or_default();
        let beside =
            |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |it| format!("{it:.2}"));
        let _ = writeln!(
            text,
            " {:.2}{verdict} | {} | {must:.2} | {aim:.2} | {} |",
            ours / best,
            beside(value(BESIDE[0]).map(|it| it / best)),
            beside(value("hyper").map(|it| ours / it))
        );
    }
}

/// What routes cost: time and memory.
fn growth(results: &Results, text: &mut String) {
    let names = [&[OURS, "hyper"], &PEERS[..]].concat();
    let names: Vec<_> = names
        .into_iter()
        .filter(|name| results.median("routes-10", name, "cpu_us").is_some())
        .collect();
    if names.is_empty() {
        return;
    }
    text.push('\n');
    head(text, "hosts × 5 paths", &names, &[]);
    for (size, key, what) in [
        ("10", "cpu_us", "µs a request, 10 hosts"),
        ("1000", "cpu_us", "µs a request, 1,000 hosts"),
        ("10000", "cpu_us", "µs a request, 10,000 hosts"),
        ("10000", "memory_mib", "MiB, 10,000 hosts"),
        ("10000", "memory_loaded_mib", "MiB after 30,000 requests"),
        (
            "10000",
            "memory_reloaded_mib",
            "MiB after a change of all weights",
        ),
        ("10000", "start_s", "s until it serves 10,000 hosts"),
    ] {
        let values = names
            .iter()
            .map(|name| results.median(&format!("routes-{size}"), name, key));
        row(text, what, values);
    }
}

/// What changes of weight under load do.
fn changes(results: &Results, text: &mut String) {
    let names = [&[OURS, "hyper"], &PEERS[..]].concat();
    let names: Vec<_> = names
        .into_iter()
        .filter(|name| results.median("reload", name, "requests").is_some())
        .collect();
    if names.is_empty() {
        return;
    }
    text.push('\n');
    head(text, "20 changes of a weight under load", &names, &[]);
    for (key, what) in [
        ("failed", "requests that failed"),
        ("non2xx", "answers that were none of 2xx"),
        ("connections_closed", "kept connections closed"),
        ("ws_cuts", "tunnels cut"),
        ("stream_cuts", "streams cut"),
        ("full_ms", "ms until it counts for all, median"),
        ("full_max_ms", "ms, the worst"),
    ] {
        let values = names.iter().map(|name| results.median("reload", name, key));
        row(text, what, values);
    }
}

fn head(text: &mut String, first: &str, names: &[&str], more: &[&str]) {
    let all = [&[first], names, more].concat();
    let _ = writeln!(text, "| {} |", all.join(" | "));
    let _ = writeln!(text, "|---{}|", "|--:".repeat(all.len() - 1));
}

fn row(text: &mut String, what: &str, values: impl Iterator<Item = Option<f64>>) {
    let _ = write!(text, "| {what} |");
    for value in values {
        let _ = write!(text, " {} |", value.map_or_else(|| "–".to_owned(), figure));
    }
    text.push('\n');
}

/// Three digits, and no more than they are worth.
fn figure(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn results() -> Results {
        let line = |workload: &str, proxy: &str, cpu: f64| {
            format!(
                "{{\"workload\": \"{workload}\", \"proxy\": \"{proxy}\", \"run\": 0, \
                 \"cpu_us\": {cpu}, \"p50\": 80, \"calibration_us\": 10}}\n"
            )
        };
        let version =
            "{\"proxy\": \"splitter\", \"version\": \"0.1.0\", \"machine\": \"2 cores\"}\n";
        let rows = [
            line("close", "splitter", 20.0),
            line("close", "nginx", 40.0),
            line("close", "envoy", 90.0),
            line("h2c", "splitter", 20.0),
            line("h2c", "haproxy", 20.0),
        ];
        Results::read(&(version.to_owned() + &rows.concat())).unwrap()
    }

    #[test]
    fn a_row_has_every_proxy_and_says_when_the_goal_is_missed() {
        let text = tables(&results(), "2026-01-02\n");
        assert!(text.contains("2026-01-02, 2 cores; splitter 0.1.0. Medians of 1 runs."));
        let close = "| close: a connection a request | 20.0 | – | – | – | – | 40.0 | 90.0 | 0.50 | – | 0.85 | 0.65 | – |";
        assert!(text.contains(close), "{text}");
        assert!(
            text.contains("| 1.00, missed | – | 0.85 | 0.62 | – |"),
            "{text}"
        );
        assert!(!text.contains("hosts × 5 paths"), "{text}");
    }

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let text = format!("a\n{BEGIN}old\n{END}z\n");
        assert_eq!(
            replaced(&text, "new\n").unwrap(),
            format!("a\n{BEGIN}new\n{END}z\n")
        );
        assert_eq!(replaced("a\n", "new\n"), None);
    }
}
