//! `splitter doctor`: what this node gives and lacks for what `run` would be asked for.

mod facts;
mod fix;
mod forwarding;
mod kernel;
mod limits;
mod line;
mod text;

use std::io::Write as _;

use clap::Args;
use serde_json::json;

use super::RunArgs;
use crate::config::{Settings, SettingsError};
use facts::Facts;
use line::{Line, State, worst};

/// Arguments of `splitter doctor`: its own, and those of `run`, by which the node is measured.
#[derive(Args, Clone, Debug)]
pub struct DoctorArgs {
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,

    /// Set the sysctls that are too low, and say what was changed
    #[arg(long)]
    pub fix: bool,

    /// What the node is to be good for.
    #[command(flatten)]
    pub run: Box<RunArgs>,
}

impl DoctorArgs {
    /// Prints a line for each thing that matters. Gives the exit code: 1 when `run` with these flags
    /// would not start or not do its job, else 0.
    ///
    /// # Errors
    /// When the flags do not go together, or nothing can be printed.
    pub fn run(self) -> anyhow::Result<u8> {
        let settings: Settings = (*self.run).try_into().map_err(|e: SettingsError| e)?;
        let mut facts = Facts::gather(&settings);
        let mut lines = judge(&facts, &settings);
        let mut changes = Vec::new();
        if self.fix {
            changes = fix::apply(&lines);
            facts.sysctls = facts::sysctls();
            lines = judge(&facts, &settings);
        }
        let failed = worst(&lines) == State::Fail || changes.iter().any(|it| it.error.is_some());
        let mut out = std::io::stdout().lock();
        if self.json {
            let all = json!({
                "state": worst(&lines).name(),
                "checks": lines.iter().map(Line::as_json).collect::<Vec<_>>(),
                "changes": changes.iter().map(fix::Change::as_json).collect::<Vec<_>>(),
            });
            writeln!(out, "{all:#}")?;
        } else {
            out.write_all(text::table(&lines, &changes).as_bytes())?;
        }
        Ok(u8::from(failed))
    }
}

/// What the facts mean for these settings.
fn judge(facts: &Facts, settings: &Settings) -> Vec<Line> {
    [
        kernel::judge(facts, settings),
        limits::judge(facts, settings),
        forwarding::judge(facts, settings),
    ]
    .concat()
}
