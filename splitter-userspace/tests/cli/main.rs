//! The command line of the real binary: names, environment, errors and exit codes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod certificates;
mod flags;

use std::process::{Command, Output};

use flags::{FLAGS, FREE};

fn splitter(args: &[&str], env: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_splitter"))
        .args(args)
        .env_clear()
        .envs(env.iter().copied())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// Exit code 2 and an error that says this.
fn refused(output: &Output, says: &[&str]) {
    let error = std::str::from_utf8(&output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(stdout(output), "", "errors go to standard error");
    for text in says {
        assert!(error.contains(text), "{text:?} is not in: {error}");
    }
}

#[test]
fn a_wrong_value_is_refused_with_what_is_allowed() {
    for (flag, _, value, allowed) in FLAGS {
        let arg = format!("{flag}={value}");
        let output = splitter(&["run", "--manifests", "m", &arg], &[]);
        refused(&output, &[flag, allowed]);
    }
}

#[test]
fn every_flag_is_also_a_variable() {
    for (flag, variable, value, allowed) in FLAGS {
        let output = splitter(&["run", "--manifests", "m"], &[(variable, value)]);
        refused(&output, &[flag, allowed]);
    }
}

#[test]
fn the_help_names_every_flag_and_variable_and_there_are_no_others() {
    let output = splitter(&["run", "--help"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let help = stdout(&output);
    let known = FLAGS.iter().map(|(flag, variable, ..)| (*flag, *variable));
    let mut known: Vec<_> = known.chain(FREE.iter().copied()).collect();
    known.sort_unstable();
    let words = help.split([' ', '=', '[', '<', ',', '\n']);
    let mut flags: Vec<_> = words
        .filter(|word| word.starts_with("--") && *word != "--help")
        .collect();
    flags.sort_unstable();
    flags.dedup();
    assert_eq!(
        flags,
        known.iter().map(|(flag, _)| *flag).collect::<Vec<_>>()
    );
    for (_, variable) in known {
        assert!(help.contains(&format!("[env: {variable}=]")), "{variable}");
    }
}

#[test]
fn an_unknown_flag_or_command_is_refused_with_a_hint() {
    refused(
        &splitter(&["run", "--manifest", "m"], &[]),
        &["--manifest", "--manifests"],
    );
    refused(
        &splitter(&["run", "--frobnicate"], &[]),
        &["--frobnicate", "--help"],
    );
    refused(&splitter(&["walk"], &[]), &["walk"]);
    refused(&splitter(&[], &[]), &["Usage", "run"]);
}

/// Everything is off that a started instance would touch on the node.
const HARMLESS: [&str; 9] = [
    "run",
    "--steering",
    "none",
    "--https",
    "off",
    "--http",
    "127.0.0.1:0",
    "--admin",
    "127.0.0.1:0",
];

#[test]
fn without_anything_to_serve_it_stops_and_says_what_to_give() {
    for (more, says) in [
        (&[][..], &["--manifests DIR", "--kubeconfig FILE"][..]),
        (
            &["--kubeconfig", "/nowhere/config"],
            &["--kubeconfig /nowhere/config", "No such file"],
        ),
    ] {
        let output = splitter(&[&HARMLESS, more].concat(), &[]);
        let error = std::str::from_utf8(&output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        for text in says {
            assert!(error.contains(text), "{text:?} is not in: {error}");
        }
    }
}

#[test]
fn objects_come_from_files_or_from_the_api() {
    let env = [("SPLITTER_MANIFESTS", "m")];
    refused(
        &splitter(&["run", "--kubeconfig", "k"], &env),
        &["--kubeconfig <FILE>", "--manifests <DIR>"],
    );
}

#[test]
fn lists_are_repeated_flags_or_separated_by_commas() {
    let twice = "127.0.0.1:1,[::1]:2,127.0.0.1:1";
    let output = splitter(&["run", "--manifests", "m"], &[("SPLITTER_HTTP", twice)]);
    refused(&output, &["--http 127.0.0.1:1", "more than once"]);
    let flags = ["run", "--manifests=m", "--http=[::1]:2", "--http=[::1]:2"];
    refused(
        &splitter(&flags, &[]),
        &["--http [::1]:2", "more than once"],
    );
}

#[test]
fn a_flag_wins_over_its_variable() {
    let env = [
        ("SPLITTER_HTTP", "127.0.0.1:1,127.0.0.1:1"),
        ("SPLITTER_MANIFESTS", "m"),
    ];
    // The list of the variable would be refused for its first address.
    let output = splitter(&["run", "--http=[::1]:2", "--admin=[::1]:2"], &env);
    refused(
        &output,
        &["--admin [::1]:2 is also an --http or --https address"],
    );
}

#[test]
fn a_wrong_log_filter_is_refused() {
    let env = [("SPLITTER_LOG", "splitter=loud")];
    let output = splitter(&["run", "--manifests", "m"], &env);
    refused(&output, &["SPLITTER_LOG", "splitter=loud", "debug"]);
}

#[test]
fn version_and_help_are_no_errors() {
    let version = format!("splitter {}\n", env!("CARGO_PKG_VERSION"));
    for args in [["version"], ["--version"]] {
        let output = splitter(&args, &[]);
        assert_eq!(
            (output.status.code(), stdout(&output)),
            (Some(0), version.as_str())
        );
    }
    let output = splitter(&["--help"], &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("run"));
}
