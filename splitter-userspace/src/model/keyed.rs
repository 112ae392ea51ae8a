//! Keyed hashes that every node and every start agree on.
//!
//! Their key is no secret: it only keeps the purposes apart, and values that clients see from being
//! the plain names and addresses of things.

use std::hash::Hasher as _;
use std::net::SocketAddr;

use siphasher::sip::SipHasher13;

/// What a hash is for. Equal input gives unrelated values for different purposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Names a Variant in a session cookie.
    Variant,
    /// Names an Endpoint in a session cookie.
    Endpoint,
    /// The place of a key on the line of the weights.
    Place,
    /// The hash key of a request.
    Request,
}

/// A hash under way.
#[derive(Clone, Copy)]
pub struct Keyed(SipHasher13);

/// "splitter" and "keyed" as numbers: any fixed numbers would do.
const KEY: [u64; 2] = [0x7370_6c69_7474_6572, 0x6b65_7965_6400_0000];

impl Keyed {
    /// Begins one.
    pub fn new(purpose: Purpose) -> Self {
        let [first, second] = KEY;
        Keyed(SipHasher13::new_with_keys(first, second ^ purpose as u64))
    }

    /// Adds a part. Two parts are never the same as one that is their concatenation.
    pub fn add(&mut self, part: &[u8]) {
        self.0.write(&(part.len() as u64).to_le_bytes());
        self.0.write(part);
    }

    /// The hash of all parts.
    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// What names an Endpoint in a session cookie: the same on every node for the same address.
pub fn endpoint_token(addr: SocketAddr) -> u64 {
    let mut hash = Keyed::new(Purpose::Endpoint);
    match addr.ip().to_canonical() {
        std::net::IpAddr::V4(ip) => hash.add(&ip.octets()),
        std::net::IpAddr::V6(ip) => hash.add(&ip.octets()),
    }
    hash.add(&addr.port().to_be_bytes());
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(purpose: Purpose, parts: &[&str]) -> u64 {
        let mut hash = Keyed::new(purpose);
        for part in parts {
            hash.add(part.as_bytes());
        }
        hash.finish()
    }

    /// These values stand in the cookies of clients: a change sends all of them elsewhere.
    #[test]
    fn is_the_same_for_ever() {
        assert_eq!(
            hash(Purpose::Variant, &["shop", "app", "80"]),
            0x1924_2864_a51a_9567
        );
        assert_eq!(
            endpoint_token(SocketAddr::from(([10, 0, 0, 1], 8080))),
            0xe976_25e5_3ccb_f070
        );
    }

    #[test]
    fn parts_and_purposes_are_kept_apart() {
        let one = hash(Purpose::Variant, &["ab", "c"]);
        assert_ne!(one, hash(Purpose::Variant, &["a", "bc"]));
        assert_ne!(one, hash(Purpose::Variant, &["abc"]));
        assert_ne!(one, hash(Purpose::Endpoint, &["ab", "c"]));
    }
}
