//! The hash key of a request: requests with the same one go to the same Endpoint.

use super::{Shown, canonical, seen};
use crate::model::keyed::{Keyed, Purpose};
use crate::model::{HashBy, HashPart};

/// The key of a request; none when it has nothing of what the key is made of. Such requests are not
/// alike: they would all go to one Endpoint.
pub fn key(by: &HashBy, shown: &Shown<'_>) -> Option<u64> {
    let mut key = Key {
        hash: Keyed::new(Purpose::Request),
        found: false,
    };
    for piece in by.pieces.iter() {
        key.piece(piece, shown);
    }
    key.found.then(|| key.hash.finish())
}

/// The key of a request as text in which no part can be taken for another; none when it has nothing
/// of what the key is made of.
pub fn key_text(pieces: &[HashPart], shown: &Shown<'_>) -> Option<Vec<u8>> {
    let mut key = Key {
        hash: Vec::new(),
        found: false,
    };
    for piece in pieces {
        key.piece(piece, shown);
    }
    key.found.then_some(key.hash)
}

/// What a key is put into.
trait Sink {
    fn add(&mut self, part: &[u8]);
}

impl Sink for Keyed {
    fn add(&mut self, part: &[u8]) {
        Keyed::add(self, part);
    }
}

impl Sink for Vec<u8> {
    fn add(&mut self, part: &[u8]) {
        self.extend_from_slice(&(part.len() as u64).to_le_bytes());
        self.extend_from_slice(part);
    }
}

struct Key<S> {
    hash: S,
    /// Whether a variable had a value.
    found: bool,
}

impl<S: Sink> Key<S> {
    fn piece(&mut self, piece: &HashPart, shown: &Shown<'_>) {
        match piece {
            HashPart::Text(text) => self.hash.add(text.as_bytes()),
            HashPart::RequestUri => {
                self.value(shown.path.as_bytes());
                self.value(shown.query.as_bytes());
            }
            HashPart::Uri => self.value(canonical(shown.path).as_bytes()),
            HashPart::Query => self.value(shown.query.as_bytes()),
            HashPart::Host => self.value(shown.host.as_bytes()),
            HashPart::Address => match shown.client.to_canonical() {
                std::net::IpAddr::V4(address) => self.value(&address.octets()),
                std::net::IpAddr::V6(address) => self.value(&address.octets()),
            },
            HashPart::Method => self.value(shown.method.as_bytes()),
            HashPart::Header(name) => {
                self.value(&seen::header(shown.headers, name).unwrap_or_default());
            }
            HashPart::Cookie(name) => {
                self.value(seen::cookie(shown.headers, name).unwrap_or_default());
            }
            HashPart::Argument(name) => {
                self.value(
                    seen::argument(shown.query, name)
                        .unwrap_or_default()
                        .as_bytes(),
                );
            }
        }
    }

    fn value(&mut self, value: &[u8]) {
        self.found |= !value.is_empty();
        self.hash.add(value);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use http::HeaderName;

    use super::*;
    use crate::routing::fixtures::headers;

    fn by(pieces: &[HashPart]) -> HashBy {
        HashBy {
            pieces: pieces.into(),
            subset: None,
        }
    }

    #[test]
    fn a_key_is_made_of_what_is_named_and_nothing_else() {
        let lines = headers(&[("x-user", "u"), ("cookie", "sid=1")]);
        let base = Shown {
            method: "GET",
            host: "a.test",
            path: "/p",
            query: "id=7&z=1",
            client: "10.0.0.1".parse().unwrap(),
            ..Shown::of(&lines)
        };
        let other = headers(&[("x-user", "v"), ("cookie", "sid=2")]);
        let rows: [(HashPart, Shown<'_>); 9] = [
            (
                HashPart::RequestUri,
                Shown {
                    query: "id=8",
                    ..base
                },
            ),
            (HashPart::Uri, Shown { path: "/q", ..base }),
            (
                HashPart::Query,
                Shown {
                    query: "id=7",
                    ..base
                },
            ),
            (
                HashPart::Host,
                Shown {
                    host: "b.test",
                    ..base
                },
            ),
            (
                HashPart::Address,
                Shown {
                    client: "10.0.0.2".parse().unwrap(),
                    ..base
                },
            ),
            (
                HashPart::Method,
                Shown {
                    method: "PUT",
                    ..base
                },
            ),
            (
                HashPart::Header(HeaderName::from_static("x-user")),
                Shown {
                    headers: &other,
                    ..base
                },
            ),
            (
                HashPart::Cookie("sid".into()),
                Shown {
                    headers: &other,
                    ..base
                },
            ),
            (
                HashPart::Argument("ID".into()),
                Shown {
                    query: "id=8",
                    ..base
                },
            ),
        ];
        for (index, (piece, changed)) in rows.iter().enumerate() {
            let by = by(&[HashPart::Text("x".into()), piece.clone()]);
            assert!(key(&by, &base).is_some());
            assert_eq!(key(&by, &base), key(&by, &base));
            assert_ne!(key(&by, &base), key(&by, changed), "{index}");
        }
        let user = by(&[HashPart::Header(HeaderName::from_static("x-user"))]);
        let elsewhere = Shown {
            path: "/q",
            host: "b.test",
            ..base
        };
        assert_eq!(key(&user, &base), key(&user, &elsewhere));
    }

    #[test]
    fn requests_without_a_key_are_not_alike() {
        let none = headers(&[]);
        let by = by(&[HashPart::Text("x".into()), HashPart::Argument("id".into())]);
        assert_eq!(key(&by, &Shown::of(&none)), None);
    }
}
