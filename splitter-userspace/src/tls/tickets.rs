//! Session tickets whose keys follow from a secret and the time, so that all who share the secret
//! resume each other's sessions.
//!
//! HKDF-SHA256 (RFC 5869) makes the key of each period and each kind of handshake; tickets are sealed
//! with AES-256-GCM-SIV (RFC 8452), which forgives nonces that two nodes happen to draw alike. A kind
//! says by whom clients' certificates may be signed and what they have revoked: when that changes,
//! keys are others, and no session goes on that was made before.

use std::fmt;
use std::sync::{Arc, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use super::TlsError;
use crate::model::SecretData;

/// For how long tickets are sealed with one key, in seconds; they are opened for one period more.
pub const TICKET_PERIOD: u64 = 6 * 3600;

/// The entries of a Secret with keys for tickets: the one that seals, and one that opens only.
const ENTRIES: [&str; 2] = ["key", "previous"];

/// The least that a secret has, in bytes: as much as the keys that are made of it.
const LEAST: usize = 32;

/// The bytes in front of a ticket that name its key.
const NAME: usize = 16;

/// Separates our keys from whatever else is made of the same secret.
const SALT: &[u8] = b"splitter session tickets 1";

/// What the keys of tickets follow from. The first seals, all of them open.
#[derive(Clone)]
pub struct TicketSecret(Vec<Prk>);

/// Why a Secret has no keys for tickets. Says nothing of what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketSecretError {
    /// Not there.
    #[error("it has no entry {:?}", ENTRIES[0])]
    Missing,
    /// Could be guessed.
    #[error("its entry {0:?} has less than 32 bytes")]
    Short(&'static str),
}

impl TicketSecret {
    /// One that nobody else has.
    ///
    /// # Errors
    /// When there is no randomness to be had.
    pub fn random() -> Result<Self, TlsError> {
        let mut secret = Zeroizing::new([0; LEAST]);
        rand::fill(&mut *secret).map_err(|_| rustls::Error::FailedToGetRandomBytes)?;
        Ok(TicketSecret(vec![extract(&*secret)]))
    }

    /// The one in a Secret: `key`, and `previous` while a change is on its way to all nodes.
    ///
    /// # Errors
    /// When it is not there, or too short.
    pub fn read(data: &SecretData) -> Result<Self, TicketSecretError> {
        let [key, previous] = ENTRIES;
        let own = data.get(key).ok_or(TicketSecretError::Missing)?;
        let mut all = Vec::new();
        for (name, secret) in [(key, Some(own)), (previous, data.get(previous))] {
            let Some(secret) = secret else {
                continue;
            };
            if secret.len() < LEAST {
                return Err(TicketSecretError::Short(name));
            }
            all.push(extract(secret));
        }
        Ok(TicketSecret(all))
    }
}

fn extract(secret: &[u8]) -> Prk {
    Salt::new(HKDF_SHA256, SALT).extract(secret)
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketSecret(..)")
    }
}

/// Seals and opens the tickets of one kind of handshake.
pub(super) struct Tickets {
    secret: TicketSecret,
    /// The kind, as a digest.
    kind: [u8; 32],
    /// Made anew once a period.
    keys: RwLock<Option<Arc<Keys>>>,
}

impl Tickets {
    pub(super) fn new(secret: TicketSecret, kind: [u8; 32]) -> Self {
        Tickets {
            secret,
            kind,
            keys: RwLock::default(),
        }
    }

    /// The keys of the period at this time, in seconds since 1970.
    fn keys(&self, now: u64) -> Option<Arc<Keys>> {
        let period = now / TICKET_PERIOD;
        let known = self.keys.read().ok()?.clone();
        if let Some(known) = known.filter(|keys| keys.period == period) {
            return Some(known);
        }
        let made = Arc::new(Keys::new(&self.secret, &self.kind, period)?);
        *self.keys.write().ok()? = Some(made.clone());
        Some(made)
    }

    fn seal(&self, plain: &[u8], now: u64) -> Option<Vec<u8>> {
        self.keys(now)?.own.seal(plain)
    }

    fn open(&self, ticket: &[u8], now: u64) -> Option<Vec<u8>> {
        let keys = self.keys(now)?;
        let (name, sealed) = ticket.split_at_checked(NAME)?;
        let mut all = std::iter::once(&keys.own).chain(&keys.others);
        all.find(|key| key.name == name)?.open(sealed)
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        TICKET_PERIOD as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(plain, now())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.open(ticket, now())
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets(..)")
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The keys of one period.
struct Keys {
    period: u64,
    own: Key,
    /// Of the period before, of the next one (a node's clock may be ahead), and those of the other
    /// secrets.
    others: Vec<Key>,
}

impl Keys {
    fn new(secret: &TicketSecret, kind: &[u8; 32], period: u64) -> Option<Self> {
        let (first, rest) = secret.0.split_first()?;
        let around = [Some(period), period.checked_sub(1), period.checked_add(1)];
        let around = around.into_iter().flatten();
        let mut others = Vec::new();
        for prk in std::iter::once(first).chain(rest) {
            for period in around.clone() {
                others.push(Key::new(prk, kind, period)?);
            }
        }
        // The first one of the first secret.
        let own = others.remove(0);
        Some(Keys {
            period,
            own,
            others,
        })
    }
}

/// One key and its name.
struct Key {
    name: [u8; NAME],
    aead: RandomizedNonceKey,
}

/// How much is made of a secret at a time.
#[derive(Clone, Copy)]
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl Key {
    fn new(prk: &Prk, kind: &[u8; 32], period: u64) -> Option<Self> {
        let period = period.to_be_bytes();
        let make = |purpose: &[u8; 4], out: &mut [u8]| {
            let info = [&purpose[..], kind, &period];
            let made = prk.expand(&info, Length(out.len())).ok()?;
            made.fill(out).ok()
        };
        let (mut name, mut key) = ([0; NAME], Zeroizing::new([0; 32]));
        make(b"name", &mut name)?;
        make(b"seal", &mut *key)?;
        let aead = RandomizedNonceKey::new(&AES_256_GCM_SIV, &*key).ok()?;
        Some(Key { name, aead })
    }

    /// Name, nonce, and the sealed text with its tag.
    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = Zeroizing::new(plain.to_vec());
        let aad = Aad::from(&self.name);
        let nonce = self.aead.seal_in_place_append_tag(aad, &mut *sealed).ok()?;
        Some([&self.name[..], nonce.as_ref(), &sealed].concat())
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = Zeroizing::new(sealed.to_vec());
        let aad = Aad::from(&self.name);
        let plain = self.aead.open_in_place(nonce, aad, &mut text).ok()?;
        Some(plain.to_vec())
    }
}

#[cfg(test)]
#[path = "tickets_tests.rs"]
mod tests;
