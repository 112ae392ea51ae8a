//! The hash key of a request: requests with the same one go to the same Endpoint.

use super::{Shown, canonical, seen};
use crate::model::keyed::{Keyed, Purpose};
use crate::model::{HashBy, Piece};

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

struct Key {
    hash: Keyed,
    /// Whether a variable had a value.
    found: bool,
}

impl Key {
    fn piece(&mut self, piece: &Piece, shown: &Shown<'_>) {
        match piece {
            Piece::Text(text) => self.hash.add(text.as_bytes()),
            Piece::RequestUri => {
                self.value(shown.path.as_bytes());
                self.value(shown.query.as_bytes());
            }
            Piece::Uri => self.value(canonical(shown.path).as_bytes()),
            Piece::Query => self.value(shown.query.as_bytes()),
            Piece::Host => self.value(shown.host.as_bytes()),
            Piece::Address => match shown.client.to_canonical() {
                std::net::IpAddr::V4(address) => self.value(&address.octets()),
                std::net::IpAddr::V6(address) => self.value(&address.octets()),
            },
            Piece::Method => self.value(shown.method.as_bytes()),
            Piece::Header(name) => {
                self.value(&seen::header(shown.headers, name).unwrap_or_default());
            }
            Piece::Cookie(name) => {
                self.value(seen::cookie(shown.headers, name).unwrap_or_default());
            }
            Piece::Argument(name) => {
                self.value(seen::argument(shown.query, name).unwrap_or_default().as_bytes());
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

    fn by(pieces: &[Piece]) -> HashBy {
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
        let rows: [(Piece, Shown<'_>); 9] = [
            (Piece::RequestUri, Shown { query: "id=8", ..base }),
            (Piece::Uri, Shown { path: "/q", ..base }),
            (Piece::Query, Shown { query: "id=7", ..base }),
            (Piece::Host, Shown { host: "b.test", ..base }),
            (Piece::Address, Shown { client: "10.0.0.2".parse().unwrap(), ..base }),
            (Piece::Method, Shown { method: "PUT", ..base }),
            (
                Piece::Header(HeaderName::from_static("x-user")),
                Shown { headers: &other, ..base },
            ),
            (Piece::Cookie("sid".into()), Shown { headers: &other, ..base }),
            (Piece::Argument("ID".into()), Shown { query: "id=8", ..base }),
        ];
        for (index, (piece, changed)) in rows.iter().enumerate() {
            let by = by(&[Piece::Text("x".into()), piece.clone()]);
            assert!(key(&by, &base).is_some());
            assert_eq!(key(&by, &base), key(&by, &base));
            assert_ne!(key(&by, &base), key(&by, changed), "{index}");
        }
        let user = by(&[Piece::Header(HeaderName::from_static("x-user"))]);
        let elsewhere = Shown { path: "/q", host: "b.test", ..base };
        assert_eq!(key(&user, &base), key(&user, &elsewhere));
    }

    #[test]
    fn requests_without_a_key_are_not_alike() {
        let none = headers(&[]);
        let by = by(&[Piece::Text("x".into()), Piece::Argument("id".into())]);
        assert_eq!(key(&by, &Shown::of(&none)), None);
    }
}
