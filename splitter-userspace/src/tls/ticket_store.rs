//! Which secret the keys of tickets follow from.

use super::{TicketSecret, TlsError};
use crate::model::{ObjectRef, Problem, SecretData, Severity};

/// One made at start, until there is a good one in the Secret that is named. One that turns bad
/// leaves the last good one in use.
#[derive(Debug)]
pub(super) struct TicketStore {
    current: TicketSecret,
    /// Counts the secrets that there were.
    version: u64,
    /// What was read last.
    read: Option<SecretData>,
}

impl TicketStore {
    pub(super) fn new() -> Result<Self, TlsError> {
        Ok(TicketStore {
            current: TicketSecret::random()?,
            version: 0,
            read: None,
        })
    }

    /// The one in use, and which it is of those that there were.
    pub(super) fn current(&self) -> (u64, TicketSecret) {
        (self.version, self.current.clone())
    }

    /// Looks at the Secret that is named, if any, and says what is wrong with it.
    pub(super) fn update(
        &mut self,
        named: Option<(&ObjectRef, Option<&SecretData>)>,
        problems: &mut Vec<Problem>,
    ) {
        let Some((secret, data)) = named else {
            return;
        };
        let message = match data.map(TicketSecret::read) {
            None => "the Secret of --tls-ticket-secret does not exist".to_owned(),
            Some(Err(error)) => error.to_string(),
            Some(Ok(read)) => {
                if self.read.as_ref() != data {
                    self.read = data.cloned();
                    self.current = read;
                    self.version += 1;
                }
                return;
            }
        };
        let effect = match self.read {
            Some(_) => "the keys of tickets follow from what it held before",
            None => "sessions are resumed by this node alone",
        };
        problems.push(Problem {
            severity: Severity::Error,
            object: secret.clone(),
            source: String::new(),
            field: String::new(),
            code: "ticket-secret-invalid",
            message,
            effect: effect.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::collections::BTreeMap;

    use super::*;
    use crate::model::Kind;

    #[test]
    fn the_last_good_one_stays_in_use() {
        let name = ObjectRef::new(Kind::Secret, "ns", "tickets");
        let data = |byte: u8| SecretData::new(BTreeMap::from([("key".to_owned(), vec![byte; 32])]));
        let mut store = TicketStore::new().unwrap();
        let mut update = |data: Option<&SecretData>| {
            let mut problems = Vec::new();
            store.update(Some((&name, data)), &mut problems);
            (store.current().0, problems.len())
        };
        assert_eq!(update(None), (0, 1));
        assert_eq!(update(Some(&data(1))), (1, 0));
        assert_eq!(update(Some(&data(1))), (1, 0));
        let bad = SecretData::new(BTreeMap::new());
        assert_eq!(update(Some(&bad)), (1, 1));
        assert_eq!(update(Some(&data(1))), (1, 0));
        assert_eq!(update(None), (1, 1));
        assert_eq!(update(Some(&data(2))), (2, 0));
    }
}
