use anyhow::Result;

use super::{findings, sources};
use crate::process::root;

/// The most lines of a file.
const LIMIT: usize = 500;

/// No source file is longer than can be read in one go.
pub(super) fn check() -> Result<()> {
    let mut found = Vec::new();
    for path in sources::below(root())? {
        let shown = path.strip_prefix(root()).unwrap_or(&path).display();
        if let Some(what) = fault(&sources::read(&path)?) {
            found.push(format!("{shown}: {what}"));
        }
    }
    findings(&found)
}

fn fault(text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > LIMIT).then(|| format!("{lines} lines, the limit is {LIMIT}; split it by subject"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_too_many_is_found() {
        assert_eq!(fault(&"x\n".repeat(LIMIT)), None);
        let what = fault(&"x\n".repeat(LIMIT + 1)).unwrap_or_default();
        assert!(what.contains("501"), "{what}");
    }
}
