//! One thing that was looked at.

use serde_json::{Value, json};

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should be.
    Ok,
    /// It works, but worse than it could.
    Warn,
    /// `run` with these flags does not start, or does not do its job.
    Fail,
}

impl State {
    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Warn => "warn",
            State::Fail => "fail",
        }
    }
}

/// A sysctl that is to be raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raise {
    /// Its name with dots.
    pub sysctl: &'static str,
    /// What it was.
    pub from: String,
    /// What it should be.
    pub to: String,
}

/// What was found of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it is.
    pub check: String,
    /// How good it is.
    pub state: State,
    /// What is there.
    pub found: String,
    /// What to do about it; empty when nothing is to be done.
    pub remedy: String,
    /// What `--fix` does about it.
    pub raise: Option<Raise>,
}

impl Line {
    /// All is well.
    pub fn ok(check: impl Into<String>, found: impl Into<String>) -> Line {
        Line {
            check: check.into(),
            state: State::Ok,
            found: found.into(),
            remedy: String::new(),
            raise: None,
        }
    }

    /// The same in another state, with what to do.
    pub fn but(self, state: State, remedy: impl Into<String>) -> Line {
        Line {
            state,
            remedy: remedy.into(),
            ..self
        }
    }

    /// For programs.
    pub fn as_json(&self) -> Value {
        json!({
            "check": self.check,
            "state": self.state.name(),
            "found": self.found,
            "remedy": self.remedy,
        })
    }
}

/// The worst of all; with nothing looked at, all is well.
pub fn worst(lines: &[Line]) -> State {
    let states = lines.iter().map(|line| line.state);
    states.max().unwrap_or(State::Ok)
}
