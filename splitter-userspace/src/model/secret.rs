use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Something that holds the entries of a Secret.
pub trait SecretSource: Send + Sync {
    /// The entries by key.
    fn entries(&self) -> BTreeMap<&str, &[u8]>;

    /// One entry.
    fn get(&self, key: &str) -> Option<&[u8]> {
        self.entries().get(key).copied()
    }
}

/// The content of one Secret. It is shared, never copied, cannot be serialised, and its `Debug` says
/// nothing of it.
#[derive(Clone)]
pub struct SecretData(Arc<dyn SecretSource>);

impl SecretData {
    /// What `source` holds.
    pub fn new(source: impl SecretSource + 'static) -> Self {
        SecretData(Arc::new(source))
    }

    /// One entry, e.g. `tls.crt`.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key)
    }

    /// All entries by key.
    pub fn entries(&self) -> BTreeMap<&str, &[u8]> {
        self.0.entries()
    }
}

impl fmt::Debug for SecretData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretData(..)")
    }
}

impl PartialEq for SecretData {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.entries() == other.0.entries()
    }
}

impl Eq for SecretData {}

/// A Secret in memory, for tests and for what is no object.
impl SecretSource for BTreeMap<String, Vec<u8>> {
    fn entries(&self) -> BTreeMap<&str, &[u8]> {
        self.iter()
            .map(|(key, value)| (key.as_str(), value.as_slice()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_nothing_of_what_it_holds() {
        let entries = [("tls.key".to_owned(), b"very secret".to_vec())];
        let data = SecretData::new(BTreeMap::from(entries.clone()));
        assert_eq!(format!("{data:?}"), "SecretData(..)");
        assert_eq!(data.get("tls.key"), Some(&b"very secret"[..]));
        assert_eq!(data, SecretData::new(BTreeMap::from(entries)));
        assert_ne!(data, SecretData::new(BTreeMap::new()));
    }
}
