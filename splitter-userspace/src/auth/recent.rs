//! What was found out lately, by a keyed digest of what it was found out about: a secret itself is
//! nowhere kept.

use aws_lc_rs::digest::SHA256_OUTPUT_LEN;
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use aws_lc_rs::rand::SystemRandom;
use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// Stands for a secret.
pub type Digest = [u8; SHA256_OUTPUT_LEN];

/// Makes digests with a key that nobody knows and that goes with the process.
pub struct Digester(Key);

impl Digester {
    /// With a new key.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn new() -> Result<Self, NoRandomness> {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new());
        key.map(Digester).map_err(|_| NoRandomness)
    }

    /// The digest of these parts; others with the same text in a row have another one.
    pub fn digest(&self, parts: &[&[u8]]) -> Digest {
        let mut context = Context::with_key(&self.0);
        for part in parts {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut digest = Digest::default();
        digest.copy_from_slice(context.sign().as_ref());
        digest
    }
}

/// The system has no randomness to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system has no randomness")]
pub struct NoRandomness;

/// A table of the last things found out. It holds between `most` and twice as many: when the younger
/// half is full, the older one is forgotten.
pub struct Recent<V> {
    young: HashMap<Digest, V, RandomState>,
    old: HashMap<Digest, V, RandomState>,
    most: usize,
}

impl<V: Clone> Recent<V> {
    /// An empty one, which takes no memory.
    pub fn new(most: usize) -> Self {
        Recent {
            young: HashMap::default(),
            old: HashMap::default(),
            most,
        }
    }

    /// What is known. It stays longer for being asked.
    pub fn get(&mut self, digest: &Digest) -> Option<V> {
        if let Some(known) = self.young.get(digest) {
            return Some(known.clone());
        }
        let known = self.old.remove(digest)?;
        self.put(*digest, known.clone());
        Some(known)
    }

    /// Keeps something.
    pub fn put(&mut self, digest: Digest, value: V) {
        if self.young.len() >= self.most {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, value);
    }

    /// Forgets something.
    pub fn remove(&mut self, digest: &Digest) {
        self.young.remove(digest);
        self.old.remove(digest);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn digests_tell_parts_apart_and_differ_by_process() {
        let one = Digester::new().unwrap();
        let of = |parts: &[&[u8]]| one.digest(parts);
        assert_eq!(of(&[b"ann", b"secret"]), of(&[b"ann", b"secret"]));
        assert_ne!(of(&[b"ann", b"secret"]), of(&[b"anns", b"ecret"]));
        assert_ne!(of(&[b"ann", b""]), of(&[b"ann"]));
        let other = Digester::new().unwrap();
        assert_ne!(of(&[b"ann"]), other.digest(&[b"ann"]));
    }

    #[test]
    fn what_is_asked_for_stays_and_the_table_does_not_grow() {
        let mut recent = Recent::new(4);
        let key = |n: u8| [n; SHA256_OUTPUT_LEN];
        recent.put(key(0), 0);
        for n in 1..100 {
            recent.put(key(n), n);
            assert_eq!(recent.get(&key(0)), Some(0), "after {n}");
            assert!(recent.young.len() + recent.old.len() <= 8);
        }
        assert_eq!(recent.get(&key(1)), None);
        recent.remove(&key(0));
        assert_eq!(recent.get(&key(0)), None);
    }
}
