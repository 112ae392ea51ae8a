//! `splitter check`: every Problem of a set of manifests.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::class_args::ClassArgs;
use crate::config::ClassSettings;
use crate::k8s::{MAX_FILE_BYTES, Manifests, translate};
use crate::model::{Problem, Severity};

/// Arguments of `splitter check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// Directory of manifests.
    #[arg(
        long,
        env = "SPLITTER_MANIFESTS",
        value_name = "DIR",
        required_unless_present = "input",
        conflicts_with = "input"
    )]
    pub manifests: Option<PathBuf>,

    /// A directory or file as well, or - for standard input.
    #[arg(value_name = "DIR|-")]
    pub input: Option<PathBuf>,

    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,

    /// Which Ingresses are ours.
    #[command(flatten)]
    pub class: ClassArgs,
}

impl CheckArgs {
    /// Checks what the arguments name and prints to standard output. Gives the exit code.
    ///
    /// # Errors
    /// When the input cannot be read at all, or the output not be written.
    pub fn run(self) -> anyhow::Result<u8> {
        let input = match self.manifests.or(self.input) {
            Some(path) if path == Path::new("-") => Input::Text(read_stdin()?),
            Some(path) => Input::Directory(path),
            None => anyhow::bail!("no manifests given; name a directory, or - for standard input"),
        };
        let mut out = io::stdout().lock();
        check(&input, &self.class.into(), self.json, &mut out)
    }
}

/// What is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Every manifest below a directory, or one file.
    Directory(PathBuf),
    /// YAML or JSON text, called `stdin` in sources.
    Text(String),
}

fn read_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    let read = io::stdin()
        .take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text);
    let read = read.context("cannot read standard input as UTF-8 text")?;
    if read as u64 > MAX_FILE_BYTES {
        anyhow::bail!("standard input has more than {MAX_FILE_BYTES} bytes; split it up");
    }
    Ok(text)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    ingresses: usize,
    served: usize,
    locations: usize,
    errors: usize,
    warnings: usize,
    problems: &'a [Problem],
}

/// Prints every Problem with its object, source, field and effect. The exit code is 1 if one of
/// them is an error, else 0.
///
/// # Errors
/// When the directory does not exist, or the output cannot be written.
pub fn check(
    input: &Input,
    class: &ClassSettings,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<u8> {
    let (objects, mut problems) = match input {
        Input::Directory(path) => {
            std::fs::metadata(path)
                .with_context(|| format!("cannot read the manifests in {}", path.display()))?;
            Manifests::new(path).reload()
        }
        Input::Text(text) => Manifests::from_text("stdin", text),
    };
    let translation = translate(&objects, class);
    problems.extend(translation.problems);
    let errors = problems
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .count();
    let report = Report {
        ingresses: objects.ingresses.len(),
        served: translation.served,
        locations: translation.snapshot.locations.len(),
        errors,
        warnings: problems.len() - errors,
        problems: &problems,
    };
    if json {
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        write_text(&report, out)?;
    }
    Ok(u8::from(errors > 0))
}

fn write_text(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    for problem in report.problems {
        let level = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        writeln!(out, "{level}[{}] {}", problem.code, problem.object)?;
        for (label, text) in [
            ("source", &problem.source),
            ("field", &problem.field),
            ("what", &problem.message),
            ("instead", &problem.effect),
        ] {
            if !text.is_empty() {
                writeln!(out, "  {label:<8} {text}")?;
            }
        }
    }
    writeln!(
        out,
        "{} errors, {} warnings; {} of {} Ingresses served, {} locations",
        report.errors, report.warnings, report.served, report.ingresses, report.locations
    )
}
