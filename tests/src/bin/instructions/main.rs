//! Counts the instructions that a request costs splitter in user space, beside the plainest hyper
//! proxy, and compares the ratio with the recorded one: a check of speed that holds on a busy machine.
//!
//! `instructions SPLITTER PLAIN RECORD COMPILER [--update]`: the two programs, built alike; the file of
//! recorded ratios, which is written anew with `--update`; and what has compiled the programs.

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

mod count;
mod record;
mod script;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use self::count::Programs;
use self::script::{SCRIPTS, Script};

/// How often a script is counted until it is as recorded, and for what is recorded.
const TRIES: u32 = 3;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ([splitter, plain, file, compiler], is_update) = match args.as_slice() {
        [splitter, plain, file, compiler] => ([splitter, plain, file, compiler], false),
        [splitter, plain, file, compiler, update] if update == "--update" => {
            ([splitter, plain, file, compiler], true)
        }
        _ => bail!("usage: instructions SPLITTER PLAIN RECORD COMPILER [--update]"),
    };
    let programs = Programs::new(splitter, plain)?;
    let file = Path::new(file);
    let plain = programs.plain()?;
    println!("  plain hyper {plain:>7.0} instructions a request");
    if is_update {
        let ratio = |script| median(script, &programs, plain);
        let measured: Result<Vec<_>> = SCRIPTS.iter().map(ratio).collect();
        record::write(file, compiler, &measured?)?;
        println!("written to {}", file.display());
        return Ok(ExitCode::SUCCESS);
    }
    let record = record::read(file)?;
    let band = record.band(compiler);
    if *compiler != record.compiler {
        println!("  recorded with {}, built with {compiler}", record.compiler);
    }
    let mut is_alike = true;
    for script in SCRIPTS {
        let judge = |ratio| record::fault(record.ratios.get(script.name).copied(), ratio, band);
        let Some(fault) = fault(script, &programs, plain, judge)? else {
            continue;
        };
        is_alike = false;
        println!("  {}: {fault}", script.name);
    }
    if !is_alike {
        println!(
            "If that is meant, say why in the commit and record it: cargo xtask bench --instructions --update"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// What is recorded: one count may be a per cent or two from the others.
fn median(script: &Script, programs: &Programs, plain: f64) -> Result<(&'static str, f64)> {
    let counts: Result<Vec<f64>> = (0..TRIES).map(|_| shown(script, programs, plain)).collect();
    let mut counts = counts?;
    counts.sort_by(f64::total_cmp);
    let middle = counts.get(counts.len() / 2).copied();
    Ok((script.name, middle.unwrap_or_default()))
}

/// What is wrong with the ratio of a script every time it is counted: who closes first is a race, and now
/// and then costs more.
fn fault(
    script: &Script,
    programs: &Programs,
    plain: f64,
    judge: impl Fn(f64) -> Option<String>,
) -> Result<Option<String>> {
    let mut fault = None;
    for _ in 0..TRIES {
        fault = judge(shown(script, programs, plain)?);
        if fault.is_none() {
            break;
        }
    }
    Ok(fault)
}

fn shown(script: &Script, programs: &Programs, plain: f64) -> Result<f64> {
    let ours = programs.splitter(script)?;
    let ratio = ours / plain;
    println!(
        "  {:<11} {ours:>7.0} instructions a request: {ratio:.3}",
        script.name
    );
    Ok(ratio)
}
