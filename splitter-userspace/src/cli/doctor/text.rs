//! The table.

use std::fmt::Write as _;

use super::fix::Change;
use super::line::{Line, State, worst};

/// One line for each thing, what to do below it, and the sums.
pub fn table(lines: &[Line], changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        let (name, from, to) = (change.raise.sysctl, &change.raise.from, &change.raise.to);
        // Writing to a String cannot fail.
        let _ = match &change.error {
            None => writeln!(text, "changed {name}: {from} -> {to}"),
            Some(error) => writeln!(text, "cannot change {name} from {from} to {to}: {error}"),
        };
    }
    let width = lines.iter().map(|line| line.check.len()).max().unwrap_or(0);
    for line in lines {
        let found = line.found.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            text,
            "{:<4}  {:width$}  {found}",
            line.state.name(),
            line.check
        );
        if !line.remedy.is_empty() {
            let _ = writeln!(text, "      {:width$}  -> {}", "", line.remedy);
        }
    }
    let count = |state| lines.iter().filter(|line| line.state == state).count();
    let _ = writeln!(
        text,
        "{}: {} ok, {} warnings, {} failures",
        worst(lines).name(),
        count(State::Ok),
        count(State::Warn),
        count(State::Fail)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::super::line::Raise;
    use super::*;

    #[test]
    fn the_table_has_states_remedies_and_changes() {
        let lines = [
            Line::ok("kernel", "6.1"),
            Line::ok("net.core.somaxconn", "128").but(State::Warn, "raise it"),
        ];
        let raise = Raise {
            sysctl: "net.core.somaxconn",
            from: "64".to_owned(),
            to: "128".to_owned(),
        };
        let changes = [
            Change {
                raise: raise.clone(),
                error: None,
            },
            Change {
                raise,
                error: Some("no right".to_owned()),
            },
        ];
        let expected = "\
changed net.core.somaxconn: 64 -> 128
cannot change net.core.somaxconn from 64 to 128: no right
ok    kernel              6.1
warn  net.core.somaxconn  128
                          -> raise it
warn: 1 ok, 1 warnings, 0 failures
";
        assert_eq!(table(&lines, &changes), expected);
    }
}
