//! The report for people.

use std::io::{self, Write};

use super::Report;
use crate::k8s::Fate;
use crate::model::Severity;

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

/// Writes Problems, differences, a line for each Ingress, and sums.
pub(super) fn write(report: &Report<'_>, colours: bool, out: &mut impl Write) -> io::Result<()> {
    let paint = |code: &str, text: &str| match colours {
        true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        false => text.to_owned(),
    };
    for problem in report.problems {
        let level = match problem.severity {
            Severity::Error => paint(RED, "error"),
            Severity::Warning => paint(YELLOW, "warning"),
        };
        writeln!(out, "{level}[{}] {}", problem.code, problem.object)?;
        let lines = [
            ("source", &problem.source),
            ("field", &problem.field),
            ("what", &problem.message),
            ("instead", &problem.effect),
        ];
        fields(&lines, out)?;
    }
    for fared in report.fates {
        for difference in &fared.differences {
            let level = paint(YELLOW, "difference");
            writeln!(out, "{level}[{}] {}", difference.code, fared.ingress)?;
            let lines = [("there", &difference.there), ("here", &difference.here)];
            fields(&lines, out)?;
        }
    }
    for fared in report.fates {
        let (code, name) = match fared.fate {
            Fate::Unchanged => (GREEN, "unchanged"),
            Fate::Differs => (YELLOW, "differs"),
            Fate::NeedsWork => (RED, "needs work"),
        };
        let blanks = " ".repeat(12 - name.len());
        let object = &fared.ingress;
        let reasons = fared.reasons.join(", ");
        let line = format!("{}/{}  {reasons}", object.namespace, object.name);
        writeln!(out, "{}{blanks}{}", paint(code, name), line.trim_end())?;
        for demand in &fared.demands {
            writeln!(out, "            asks for {demand}")?;
        }
    }
    if report.supposed_secrets > 0 {
        writeln!(
            out,
            "no Secrets were given: {} that Ingresses name are taken to be there and good",
            report.supposed_secrets
        )?;
    }
    let sum = &report.summary;
    writeln!(
        out,
        "{} Ingresses: {} unchanged, {} behave differently, {} need work",
        report.served, sum.unchanged, sum.differ, sum.need_work
    )?;
    writeln!(
        out,
        "{} errors, {} warnings; {} of {} Ingresses served, {} locations",
        report.errors, report.warnings, report.served, report.ingresses, report.locations
    )
}

fn fields(lines: &[(&str, &String)], out: &mut impl Write) -> io::Result<()> {
    for (label, text) in lines {
        if !text.is_empty() {
            writeln!(out, "  {label:<8} {}", printable(text))?;
        }
    }
    Ok(())
}

/// Control characters, which a manifest may hold, are shown and not sent to the terminal.
fn printable(text: &str) -> String {
    let shown = text.chars().map(|it| match it.is_control() {
        true => it.escape_default().to_string(),
        false => it.to_string(),
    });
    shown.collect()
}
