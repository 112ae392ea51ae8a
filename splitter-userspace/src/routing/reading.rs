//! How a backend might read a path.
//!
//! Programs disagree about encoded slashes, backslashes, empty elements, dot elements and `;`
//! parameters. The proxy sends the path on as it came, so it must not choose a Location by one
//! reading when the backend may use another. Each habit is one bit; every combination of those that
//! make a difference for a path is a reading of it.

/// `%2F` is a slash.
const SLASH: u8 = 1;
/// `\` is a slash.
const BACKSLASH: u8 = 2;
/// An element ends at `;`, as in servlet containers (`/..;/` is `/../` there).
const PARAMETERS: u8 = 4;
/// Several slashes are one.
const MERGE: u8 = 8;
/// `.` and `..` elements are resolved.
const DOTS: u8 = 16;

/// A reading leads above the root: no backend should be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AboveRoot;

/// Calls `visit` with every reading of a canonical path but the one in which each byte is itself,
/// until `visit` says no. Says whether all were agreed to.
///
/// At most 31 readings, each one pass over the path; one buffer serves them all.
pub(super) fn all(canonical: &str, mut visit: impl FnMut(Result<&str, AboveRoot>) -> bool) -> bool {
    let habits = relevant(canonical);
    let mut out = String::with_capacity(canonical.len());
    let mut reading = habits;
    while reading != 0 {
        let result = read(canonical, reading, &mut out);
        if !visit(result.map(|()| out.as_str())) {
            return false;
        }
        reading = (reading - 1) & habits;
    }
    true
}

/// The habits that could change this path. May name one that does not.
fn relevant(canonical: &str) -> u8 {
    let mut habits = 0;
    for (habit, sign) in [
        (SLASH, "%2F"),
        (BACKSLASH, "%5C"),
        (PARAMETERS, ";"),
        (MERGE, "//"),
        (DOTS, "."),
    ] {
        if canonical.contains(sign) {
            habits |= habit;
        }
    }
    if habits & (SLASH | BACKSLASH | PARAMETERS) != 0 {
        // These can make empty elements.
        habits |= MERGE;
    }
    habits
}

/// Writes one reading of `canonical` into `out`.
fn read(canonical: &str, habits: u8, out: &mut String) -> Result<(), AboveRoot> {
    out.clear();
    let mut rest = canonical.strip_prefix('/').unwrap_or(canonical);
    loop {
        let (element, next) = split(rest, habits);
        let element = match element.split_once(';') {
            Some((name, _)) if habits & PARAMETERS != 0 => name,
            _ => element,
        };
        push(element, next.is_none(), habits, out)?;
        match next {
            Some(next) => rest = next,
            None => return Ok(()),
        }
    }
}

/// Adds one element, or drops it where a habit says so. A dropped last element leaves its slash.
fn push(element: &str, last: bool, habits: u8, out: &mut String) -> Result<(), AboveRoot> {
    let dots = habits & DOTS != 0;
    match element {
        ".." if dots => out.truncate(out.rfind('/').ok_or(AboveRoot)?),
        "." if dots => {}
        "" if habits & MERGE != 0 => {}
        element => {
            out.push('/');
            out.push_str(element);
            return Ok(());
        }
    }
    if last {
        out.push('/');
    }
    Ok(())
}

/// The first element and what follows its separator.
fn split(path: &str, habits: u8) -> (&str, Option<&str>) {
    let bytes = path.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        let width = match byte {
            b'/' => 1,
            b'%' if habits & SLASH != 0 && bytes[index..].starts_with(b"%2F") => 3,
            b'%' if habits & BACKSLASH != 0 && bytes[index..].starts_with(b"%5C") => 3,
            _ => continue,
        };
        return (
            path.get(..index).unwrap_or_default(),
            path.get(index + width..),
        );
    }
    (path, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str, habits: u8) -> Result<String, AboveRoot> {
        let mut out = String::new();
        read(path, habits, &mut out).map(|()| out)
    }

    fn every(path: &str) -> Vec<Result<String, AboveRoot>> {
        let mut readings = Vec::new();
        all(path, |reading| {
            readings.push(reading.map(str::to_owned));
            true
        });
        readings
    }

    #[test]
    fn single_habits() {
        for (path, habits, expected) in [
            ("/a%2Fb", SLASH, "/a/b"),
            ("/a%2Fb", BACKSLASH, "/a%2Fb"),
            ("/a%5Cb", BACKSLASH, "/a/b"),
            ("/a;x/b;y=1", PARAMETERS, "/a/b"),
            ("/a//b", MERGE, "/a/b"),
            ("//", MERGE, "/"),
            ("/a//", MERGE, "/a/"),
            ("/a/./b", DOTS, "/a/b"),
            ("/a/../b", DOTS, "/b"),
            ("/a/..", DOTS, "/"),
            ("/a/b/.", DOTS, "/a/b/"),
            ("/a/b/..", DOTS, "/a/"),
            ("/a//..", DOTS, "/a/"),
            ("/a//../b", DOTS | MERGE, "/b"),
            ("/a/..;x/b", DOTS | PARAMETERS, "/b"),
            ("/a%2F..%2Fb", DOTS | SLASH, "/b"),
            ("/a/...", DOTS, "/a/..."),
            ("/", DOTS | MERGE, "/"),
        ] {
            assert_eq!(one(path, habits).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn above_the_root() {
        for (path, habits) in [
            ("/..", DOTS),
            ("/../a", DOTS),
            ("/a/../..", DOTS),
            ("//..", DOTS | MERGE),
            ("/..%2F", DOTS | SLASH),
            ("/..;/a", DOTS | PARAMETERS),
        ] {
            assert_eq!(one(path, habits), Err(AboveRoot), "{path}");
        }
        assert_eq!(one("//..", DOTS).as_deref(), Ok("/"));
    }

    #[test]
    fn only_habits_that_matter_are_tried() {
        assert_eq!(every("/a/b").len(), 0);
        assert_eq!(every("/a.b").len(), 1);
        assert_eq!(every("/a//b").len(), 1);
        assert_eq!(every("/a%2Fb").len(), 3);
        assert_eq!(every("/%2F%5C;//.").len(), 31);
    }

    #[test]
    fn visiting_stops_at_the_first_no() {
        let mut calls = 0;
        assert!(!all("/a%2Fb.", |_| {
            calls += 1;
            false
        }));
        assert_eq!(calls, 1);
    }
}
