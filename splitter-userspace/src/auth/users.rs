//! Who may call, by name and password: a Secret in one of two layouts.

use std::collections::{HashMap, HashSet};

use super::hash::{Hash, HashError};
use crate::model::{SecretData, UserLayout};

/// The most names of one Secret; those beyond are left out. A Secret has at most 1 MiB.
pub const USERS_MAX: usize = 65_536;

/// The names of one Secret with the hashes of their passwords. `Debug` says nothing of them.
#[derive(Default)]
pub struct Users {
    users: HashMap<Box<str>, User>,
    /// A name whose hash is worked through for names that nobody has, so that the time an answer
    /// takes does not tell them apart.
    decoy: Option<Box<str>>,
    /// Names whose hash is none: a later line does not let them in either.
    locked: HashSet<Box<str>>,
    faults: Vec<Fault>,
}

struct User {
    text: Box<str>,
    hash: Hash,
}

/// A line that lets nobody in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The hash of this name, in this line or entry.
    Hash {
        /// The name.
        user: Box<str>,
        /// What is wrong with it.
        error: HashError,
    },
    /// A line without a colon, by its number.
    Line(usize),
    /// The Secret is not text.
    NotText,
    /// There are more names than [`USERS_MAX`].
    TooMany,
}

impl Users {
    /// Reads a Secret. What is wrong in it is left out, and told by [`Self::faults`].
    pub fn read(data: &SecretData, layout: UserLayout) -> Self {
        match layout {
            UserLayout::File => Self::file(data.get(UserLayout::FILE_KEY).unwrap_or_default()),
            UserLayout::Map => {
                let mut users = Users::default();
                for (user, hash) in data.entries() {
                    match std::str::from_utf8(hash) {
                        Ok(hash) => users.add(user, hash.trim()),
                        Err(_) => users.faults.push(Fault::NotText),
                    }
                }
                users
            }
        }
    }

    /// Reads lines of `name:hash`. Lines that begin with `#` say nothing; the first line of a name
    /// counts.
    pub fn file(bytes: &[u8]) -> Self {
        let mut users = Users::default();
        let Ok(text) = std::str::from_utf8(bytes) else {
            users.faults.push(Fault::NotText);
            return users;
        };
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once(':') {
                // What htpasswd writes has nothing behind the hash; passwd files have more fields.
                Some((user, rest)) => users.add(user, rest.split(':').next().unwrap_or(rest)),
                None => users.faults.push(Fault::Line(index + 1)),
            }
        }
        users
    }

    fn add(&mut self, user: &str, text: &str) {
        if self.users.contains_key(user) || self.locked.contains(user) {
            return;
        }
        if self.users.len() >= USERS_MAX {
            if self.faults.last() != Some(&Fault::TooMany) {
                self.faults.push(Fault::TooMany);
            }
            return;
        }
        match text.parse::<Hash>() {
            Ok(hash) => {
                if hash.is_slow() && self.decoy.is_none() {
                    self.decoy = Some(user.into());
                }
                let text = text.into();
                self.users.insert(user.into(), User { text, hash });
            }
            Err(error) => {
                self.locked.insert(user.into());
                let user = user.into();
                self.faults.push(Fault::Hash { user, error });
            }
        }
    }

    /// What lets nobody in.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// How many may call.
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Whether nobody may.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Whether to tell takes so long that a worker's other requests would notice.
    pub fn is_slow(&self, user: &str) -> bool {
        let known = self.users.get(user).map(|it| it.hash.is_slow());
        known.unwrap_or(self.decoy.is_some())
    }

    /// Whether the password is the one of this name.
    pub fn admit(&self, user: &str, password: &[u8]) -> bool {
        if let Some(user) = self.users.get(user) {
            return user.hash.is_of(password);
        }
        if let Some(decoy) = self.decoy.as_ref().and_then(|it| self.users.get(it)) {
            decoy.hash.is_of(password);
        }
        false
    }

    /// What an answer of [`Self::admit`] depends on beside name and password: with another text it is
    /// to be asked anew. Empty for names that nobody has.
    pub fn text(&self, user: &str) -> &str {
        self.users.get(user).map_or("", |it| &it.text)
    }
}

impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Users({})", self.users.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "# who may call\n\nann:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\r\n\
        bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\nann:{PLAIN}other\neve:!\nnobody\n\
        eve:{PLAIN}secret\n\
        kim:{PLAIN}secret:1000:more\n";

    #[test]
    fn a_file_is_lines_and_the_first_of_a_name_counts() {
        let users = Users::file(FILE.as_bytes());
        for user in ["ann", "bob", "kim"] {
            assert!(users.admit(user, b"secret"), "{user}");
            assert!(!users.admit(user, b"other"), "{user}");
        }
        for user in ["eve", "nobody", "", "#", "Ann"] {
            assert!(!users.admit(user, b"secret"), "{user}");
        }
        let eve = Fault::Hash {
            user: "eve".into(),
            error: HashError::Unknown,
        };
        assert_eq!(users.faults(), [eve, Fault::Line(7)]);
        assert!(users.is_slow("ann") && !users.is_slow("bob") && users.is_slow("who"));
        assert_eq!(format!("{users:?}"), "Users(3)");
    }

    #[test]
    fn a_map_is_names_and_hashes() {
        let entries = [
            ("ann".to_owned(), b"{PLAIN}secret\n".to_vec()),
            ("bob".to_owned(), b"\xff".to_vec()),
            ("auth".to_owned(), b"ann:{PLAIN}x".to_vec()),
        ];
        let data = SecretData::new(BTreeMap::from(entries));
        let users = Users::read(&data, UserLayout::Map);
        assert!(users.admit("ann", b"secret"));
        assert_eq!((users.len(), users.faults().len()), (1, 2));
    }

    #[test]
    fn nothing_and_noise_let_nobody_in() {
        for bytes in [&b""[..], b"\xff\xfe", b"junk", b":", b"\n\n#\n"] {
            let users = Users::file(bytes);
            assert!(users.is_empty() || bytes == b":", "{bytes:?}");
            assert!(!users.admit("", b""), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn a_mutated_file_neither_panics_nor_lets_a_stranger_in(
            at in 0..FILE.len(), byte: u8, cut in 0..FILE.len(),
        ) {
            let mut bytes = FILE.as_bytes().to_vec();
            bytes[at] = byte;
            for bytes in [&bytes[..], &bytes[cut..], &bytes[..cut]] {
                let users = Users::file(bytes);
                prop_assert!(!users.admit("stranger", b"secret"));
                prop_assert!(!users.admit("bob", b"wrong"));
            }
        }
    }
}
