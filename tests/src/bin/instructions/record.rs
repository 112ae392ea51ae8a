//! The ratios that were recorded, and how far one may be from them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// What a ratio may differ from the recorded one, both ways: less is a gain that is to be recorded, so
/// that it cannot be lost unseen.
const BAND: f64 = 0.03;

/// The same where another compiler has built the programs, which does other things well.
const OTHER_COMPILER: f64 = 0.15;

/// What stands before the compiler's name.
const BUILT: &str = "# Built with ";

const HEAD: &str = "\
# Instructions of splitter in user space for a request, as a multiple of those that the plainest hyper
# proxy takes for one on a kept connection.
# Made by `cargo xtask bench --instructions --update`; a difference of more than 3 % fails the tests (of more
# than 15 % where another compiler has built them).
";

/// What was recorded.
#[derive(Debug, PartialEq)]
pub struct Record {
    /// What had compiled the programs.
    pub compiler: String,
    /// By the script's name.
    pub ratios: BTreeMap<String, f64>,
}

impl Record {
    /// What a ratio may differ by in programs of this compiler.
    pub fn band(&self, compiler: &str) -> f64 {
        match compiler == self.compiler {
            true => BAND,
            false => OTHER_COMPILER,
        }
    }
}

/// Reads what was recorded.
pub fn read(file: &Path) -> Result<Record> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    parse(&text).with_context(|| format!("{} is not as it was written", file.display()))
}

fn parse(text: &str) -> Option<Record> {
    let compiler = text.lines().find_map(|line| line.strip_prefix(BUILT))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let ratios: Option<_> = lines
        .map(|line| {
            let (name, ratio) = line.split_once(' ')?;
            Some((name.to_owned(), ratio.trim().parse().ok()?))
        })
        .collect();
    Some(Record {
        compiler: compiler.to_owned(),
        ratios: ratios?,
    })
}

/// Writes it anew.
pub fn write(file: &Path, compiler: &str, measured: &[(&str, f64)]) -> Result<()> {
    let mut text = format!("{HEAD}{BUILT}{compiler}\n");
    for (name, ratio) in measured {
        let _ = writeln!(text, "{name:<10} {ratio:.3}");
    }
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// What is not as it was recorded, in words.
pub fn fault(recorded: Option<f64>, ratio: f64, band: f64) -> Option<String> {
    let Some(before) = recorded else {
        return Some("nothing is recorded".to_owned());
    };
    let change = ratio / before - 1.0;
    (change.abs() > band).then(|| {
        let percent = change * 100.0;
        format!("{ratio:.3} instead of {before:.3}: {percent:+.1} %")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn more_and_less_than_the_band_is_told_and_so_is_what_was_never_recorded() {
        assert_eq!(fault(Some(1.2), 1.23, BAND), None);
        assert_eq!(fault(Some(0.8), 0.78, BAND), None);
        let told = [
            fault(Some(1.2), 1.25, BAND),
            fault(Some(0.8), 0.77, BAND),
            fault(None, 1.0, BAND),
        ];
        assert_eq!(
            told.map(Option::unwrap_or_default),
            [
                "1.250 instead of 1.200: +4.2 %",
                "0.770 instead of 0.800: -3.7 %",
                "nothing is recorded"
            ]
        );
    }

    #[test]
    fn what_is_written_is_read_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let measured = [("keepalive", 1.234_56), ("h2c", 0.9)];
        write(file.path(), "rustc 1", &measured).unwrap();
        let record = read(file.path()).unwrap();
        let expected = BTreeMap::from([("keepalive".into(), 1.235), ("h2c".into(), 0.9)]);
        assert_eq!(record.ratios, expected);
        assert_eq!(record.band("rustc 1"), BAND);
        assert_eq!(record.band("rustc 2"), OTHER_COMPILER);
        assert_eq!(parse("# Built with x\nkeepalive"), None);
        assert_eq!(parse("keepalive 1"), None);
    }
}
