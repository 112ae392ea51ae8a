//! Tables of faults that others had, each with the tests that show it here, or why it cannot happen.

use std::collections::BTreeSet;

use Shown::{NotApplicable, Tests};

/// Where it was, what broke, and what shows it.
pub type Row = (&'static str, &'static str, Shown);

/// What speaks for a row.
pub enum Shown {
    /// Tests by name.
    Tests(&'static [&'static str]),
    /// It cannot happen.
    NotApplicable(&'static str),
}

/// Checks that each row names tests that are in one of these files, or has a reason.
///
/// # Panics
/// When one does not.
pub fn check<'r>(rows: impl IntoIterator<Item = &'r Row>, sources: &[&str]) {
    let there: BTreeSet<&str> = sources.iter().flat_map(|it| tests(it)).collect();
    for (id, what, shown) in rows {
        match shown {
            Tests(names) => {
                assert!(!names.is_empty(), "{id}: {what}");
                for name in *names {
                    assert!(there.contains(name), "{id}: no test {name}");
                }
            }
            NotApplicable(why) => assert!(!why.is_empty(), "{id}: {what}"),
        }
    }
}

/// The names of all tests in a file: what a test's mark stands before, and nothing else.
fn tests(source: &str) -> impl Iterator<Item = &str> {
    let marked = source.split("#[test]").skip(1);
    marked.filter_map(|it| Some(it.split_once("fn ")?.1.split_once('(')?.0.trim()))
}

/// The version of a crate that is built in.
///
/// # Panics
/// When it is not.
pub fn version(name: &str) -> Vec<u64> {
    let lock = include_str!("../../Cargo.lock");
    let entry = format!("name = \"{name}\"\nversion = \"");
    let (_, rest) = lock.split_once(&entry).expect("the crate is in use");
    let (version, _) = rest.split_once('"').expect("a version");
    let parts = version.split('.');
    parts.map(|it| it.parse().expect("a number")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_what_is_marked_is_a_test() {
        let source = "#[test]\nfn one() {}\nfn help() {}\n#[test]\n#[ignore]\nfn two() {}\n";
        let source = source.replace("#[test]", concat!("#[", "test]"));
        assert!(super::tests(&source).eq(["one", "two"]));
    }
}
