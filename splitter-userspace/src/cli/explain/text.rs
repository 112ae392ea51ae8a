//! An explanation for people.

use std::io::{self, Write};

use serde::Serialize;

use super::Report;
use crate::model::{AffinityMode, Test, ValueTest};
use crate::routing::explain::{
    Answer, Answered, Explanation, GateStep, Outcome, Reading, RuleAnswer, RuleStep, SessionStep,
    VariantShare,
};

pub(super) fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let explanation = report.explanation;
    let host = explanation.host.as_deref().unwrap_or("(invalid host)");
    writeln!(out, "{} {host}{}", explanation.method, explanation.path)?;
    hosts(explanation, out)?;
    paths(explanation, out)?;
    match &explanation.outcome {
        Outcome::InvalidHost => verdict("400: the Host header is not a host name", out)?,
        Outcome::NoHost => verdict("404: no rule is for this host", out)?,
        Outcome::NoPath => verdict("404: no path of this host matches", out)?,
        Outcome::Ambiguous { readings } => ambiguous(readings, out)?,
        Outcome::Location(answer) => location(answer, out)?,
    }
    problems(report, out)
}

fn verdict(text: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nanswer\n  {text}")
}

fn hosts(explanation: &Explanation, out: &mut impl Write) -> io::Result<()> {
    if explanation.hosts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nhost rules, most specific first")?;
    for candidate in &explanation.hosts {
        let name = match candidate.pattern.to_string() {
            name if name.is_empty() => "(any host)".to_owned(),
            name => name,
        };
        let result = if candidate.exists {
            "applies"
        } else {
            "no such rule"
        };
        writeln!(out, "  {name:<40} {result}")?;
    }
    Ok(())
}

fn paths(explanation: &Explanation, out: &mut impl Write) -> io::Result<()> {
    if explanation.paths.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nmatching paths, best first")?;
    for (index, candidate) in explanation.paths.iter().enumerate() {
        let result = match index {
            0 if explanation.paths.len() == 1 => "the only match",
            0 => "the best match",
            _ => "",
        };
        let key = &candidate.location;
        let path = format!("{} ({:?})", key.path, key.kind);
        let line = format!(
            "  {path:<40} {:<24} {result}",
            candidate.ingress.to_string()
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn ambiguous(readings: &[Reading], out: &mut impl Write) -> io::Result<()> {
    verdict("400: a backend could read the path in another way", out)?;
    for reading in readings {
        match reading {
            Reading::Malformed => writeln!(out, "  it cannot be decoded")?,
            Reading::AboveRoot => writeln!(out, "  it leads above the root")?,
            Reading::As {
                path,
                location: Some(location),
            } => {
                writeln!(out, "  as {path} it belongs to {location}")?;
            }
            Reading::As {
                path,
                location: None,
            } => {
                writeln!(out, "  as {path} it belongs to no location")?;
            }
        }
    }
    Ok(())
}

fn location(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nlocation\n  {} of {}",
        answer.location, answer.ingress
    )?;
    if let Some(policy) = &answer.policy {
        policies("policies", &**policy, out)?;
    }
    if let Some(policy) = &answer.split {
        policies("split", &**policy, out)?;
    }
    match answer.rewritten.as_deref() {
        Some("") => writeln!(out, "\nrewritten\n  not possible: answers 400")?,
        Some(target) => writeln!(out, "\nrewritten\n  pods see {target}")?,
        None => {}
    }
    if !answer.gates.is_empty() {
        writeln!(out, "\ngates, in order")?;
    }
    for step in &answer.gates {
        gate(step, out)?;
    }
    if let Some(step) = &answer.session {
        session(step, out)?;
    }
    if !answer.rules.is_empty() {
        writeln!(out, "\nrules, in order")?;
    }
    for (index, step) in answer.rules.iter().enumerate() {
        rule(index + 1, step, out)?;
    }
    if let Some(step) = &answer.key {
        let seen = match step.place {
            Some(place) => format!("place {:.3} % on the line of the weights", place * 100.0),
            None => "request has none: chance decides".to_owned(),
        };
        writeln!(out, "\nkey\n  {:?}: {seen}", step.key)?;
    }
    writeln!(out, "\nvariants")?;
    for variant in &answer.variants {
        share(variant, out)?;
    }
    match &answer.answered {
        Answered::ByWeight => verdict("by chance, as the shares above say", out),
        Answered::ByGate { gate, status } => verdict(&format!("{status}: by the gate {gate}"), out),
        Answered::By { variant, reason } => {
            verdict(&format!("{variant} (reason: {})", reason.as_str()), out)
        }
        Answered::ByFallback { chosen, backend } => {
            let text = format!("default backend {backend}: {chosen} is chosen, without endpoint");
            verdict(&text, out)
        }
        Answered::Nobody { chosen, .. } => {
            verdict(&format!("503: {chosen} is chosen and has no endpoint"), out)
        }
    }
}

fn session(step: &SessionStep, out: &mut impl Write) -> io::Result<()> {
    let mode = match step.mode {
        AffinityMode::Balanced => "balanced",
        AffinityMode::Persistent => "persistent",
    };
    let result = match (&step.holds, step.sent) {
        (Some(variant), _) => format!("it holds {variant}"),
        (None, 0) => "request has none: a new session".to_owned(),
        (None, _) => "this location did not give it: a new session".to_owned(),
    };
    writeln!(
        out,
        "\nsession ({mode})\n  cookie {}: {result}",
        step.cookie
    )?;
    if !step.legacy.is_empty() {
        let names = step.legacy.join(", ");
        writeln!(
            out,
            "  not for {names} (legacy): rules and weights come first"
        )?;
    }
    Ok(())
}

fn gate(step: &GateStep, out: &mut impl Write) -> io::Result<()> {
    let result = match step.answers {
        Some(status) => format!(": answers {status}"),
        None => String::new(),
    };
    writeln!(out, "  {}: {}{result}", step.name, step.says)
}

/// Each policy by its name in the dump, with its value in one line.
fn policies(title: &str, policy: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n{title}")?;
    let policy = serde_json::to_value(policy)?;
    for (name, value) in policy.as_object().into_iter().flatten() {
        writeln!(out, "  {name:<18} {value}")?;
    }
    Ok(())
}

fn rule(number: usize, step: &RuleStep, out: &mut impl Write) -> io::Result<()> {
    let result = match step.answer {
        RuleAnswer::Canary => format!("chooses {}", step.canary),
        RuleAnswer::Stable => "chooses stable".to_owned(),
        RuleAnswer::Next => "does not decide".to_owned(),
        RuleAnswer::NotAsked => "is not asked".to_owned(),
    };
    let seen = match &step.seen {
        Some(value) => format!("request has {value:?}"),
        None => "request has none".to_owned(),
    };
    writeln!(
        out,
        "  {number}. {}: {}; {seen}: {result}",
        step.canary,
        test(&step.test)
    )
}

fn test(test: &Test) -> String {
    match test {
        Test::Header { name, test } => value_test("header", name.as_str(), test),
        Test::Cookie { name, test } => value_test("cookie", name, test),
        Test::Query { name, test } => value_test("parameter", name, test),
        Test::Source(set) => format!("client is in {set}"),
    }
}

fn value_test(what: &str, name: &str, test: &ValueTest) -> String {
    match test {
        ValueTest::AlwaysNever => format!("{what} {name} is always or never"),
        ValueTest::Value(value) => format!("{what} {name} is {value:?}"),
        ValueTest::Pattern(pattern) => format!("{what} {name} matches {:?}", pattern.as_str()),
        ValueTest::Invalid => format!("{what} {name} has an invalid annotation"),
    }
}

fn share(variant: &VariantShare, out: &mut impl Write) -> io::Result<()> {
    let backend = variant
        .backend
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    write!(
        out,
        "  {:<20} weight {:<6} {:>7.3} %  {backend}, {} ready",
        variant.name,
        variant.weight,
        variant.share * 100.0,
        variant.ready
    )?;
    if variant.draining > 0 {
        write!(out, ", {} draining", variant.draining)?;
    }
    if let Some(fault) = variant.fault {
        write!(out, ", fault: {fault:?}")?;
    }
    match &variant.answered_by {
        None => writeln!(out, ": answers 503"),
        Some(name) if *name != variant.name => writeln!(out, ": {name} answers in its place"),
        Some(_) => writeln!(out),
    }
}

fn problems(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    if !report.problems.is_empty() {
        writeln!(out, "\nproblems")?;
    }
    for problem in &report.problems {
        writeln!(out, "  {problem}")?;
    }
    if report.others > 0 {
        writeln!(
            out,
            "\nproblems elsewhere: {} (splitter check shows them)",
            report.others
        )?;
    }
    Ok(())
}
