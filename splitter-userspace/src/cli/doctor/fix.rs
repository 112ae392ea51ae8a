//! What `--fix` does.

use std::fs;

use serde_json::{Value, json};

use super::facts::path_of;
use super::line::{Line, Raise};

/// A sysctl that was to be raised.
#[derive(Debug)]
pub struct Change {
    /// Which, from what to what.
    pub raise: Raise,
    /// Why it was not.
    pub error: Option<String>,
}

impl Change {
    /// For programs.
    pub fn as_json(&self) -> Value {
        json!({
            "sysctl": self.raise.sysctl,
            "from": self.raise.from,
            "to": self.raise.to,
            "error": self.error,
        })
    }
}

/// Sets what the lines ask for. Nothing is ever lowered.
pub fn apply(lines: &[Line]) -> Vec<Change> {
    let raises = lines.iter().filter_map(|line| line.raise.clone());
    let set = |raise: Raise| {
        let written = fs::write(path_of(raise.sysctl), &raise.to);
        let error = written.err().map(|error| {
            format!(
                "{error}; in a pod this takes securityContext.privileged, or set it on the node"
            )
        });
        Change { raise, error }
    };
    raises.map(set).collect()
}
