//! Files of names and passwords: nobody gets in who is not in the file, the first line of a name
//! counts whatever follows, and both layouts of a Secret say the same.

use std::collections::BTreeMap;

use splitter::auth::{PASSWORD_MAX, Users};
use splitter::model::{SecretData, UserLayout};

use super::texts;

/// A password that no line of the corpus has.
const OTHER: &str = "{PLAIN}another";

/// A file, and a password.
pub fn target(data: &[u8]) {
    let [file, password] = texts(data);
    let users = Users::file(file.as_bytes());
    let windows = Users::file(file.replace('\n', "\r\n").as_bytes());
    assert_eq!(
        (users.len(), users.faults()),
        (windows.len(), windows.faults())
    );
    let firsts = firsts(&file);
    assert!(users.len() <= firsts.len());
    let mut map = BTreeMap::new();
    for (name, hash) in &firsts {
        let text = users.text(name);
        assert!(text.is_empty() || text == *hash, "a later line of {name:?}");
        if !text.is_empty() {
            map.insert((*name).to_owned(), text.as_bytes().to_vec());
        }
    }
    assert_eq!(users.len(), map.len());
    let entries = Users::read(&SecretData::new(map.clone()), UserLayout::Map);
    assert_eq!(users.len(), entries.len());
    for name in map.keys() {
        assert_eq!(entries.text(name), users.text(name).trim(), "{name:?}");
    }
    assert!(!format!("{users:?}").contains('$'));
    if firsts.values().all(|hash| is_quick(hash)) {
        admit(&file, &firsts, &users, &password);
    }
}

fn admit(file: &str, firsts: &BTreeMap<&str, &str>, users: &Users, password: &str) {
    let stranger = "a-name-that-is-in-no-file";
    assert!(!users.admit(stranger, password.as_bytes()));
    assert!(!users.admit("", b"") || firsts.contains_key(""));
    let more: Vec<_> = firsts
        .keys()
        .map(|name| format!("{name}:{OTHER}"))
        .collect();
    let longer = Users::file(format!("{file}\n{}", more.join("\n")).as_bytes());
    for (name, hash) in firsts.iter().take(3) {
        let admitted = users.admit(name, password.as_bytes());
        if let Some(plain) = hash.strip_prefix("{PLAIN}") {
            let same = plain == password && password.len() <= PASSWORD_MAX;
            assert_eq!(admitted, same, "{name:?}");
        }
        // A line at the end, which somebody may have managed to add, opens nobody's account.
        assert!(
            *hash == OTHER || !longer.admit(name, &OTHER.as_bytes()["{PLAIN}".len()..]),
            "{name:?}"
        );
    }
}

/// What stands behind each name's first colon, in its first line.
fn firsts(file: &str) -> BTreeMap<&str, &str> {
    let mut firsts = BTreeMap::new();
    for line in file.lines().map(str::trim) {
        if line.starts_with('#') {
            continue;
        }
        if let Some((name, rest)) = line.split_once(':') {
            let hash = rest.split(':').next().unwrap_or_default();
            firsts.entry(name).or_insert(hash);
        }
    }
    firsts
}

/// Whether a test has the time to work a hash through.
fn is_quick(hash: &str) -> bool {
    match hash.get(..2) {
        Some("$2") => matches!(hash.get(4..6), Some("04" | "05")),
        Some("$5" | "$6") => hash.contains("rounds=1000$"),
        _ => true,
    }
}
