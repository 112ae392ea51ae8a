//! What an htpasswd line says of a password, and whether a password is the one.

use std::str::FromStr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA1_OUTPUT_LEN};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha_crypt::{PasswordVerifier as _, ShaCrypt};

use super::md5_crypt::{DIGITS_LEN, SALT_MAX, md5_crypt};

/// The longest password that is looked at, in bytes, as in musl's crypt: some hashes take time that
/// grows with its square. A longer one is wrong.
pub const PASSWORD_MAX: usize = 256;

/// The highest cost of a bcrypt hash: each step doubles its time, and this one takes about a second.
pub const BCRYPT_COST_MAX: u32 = 14;

/// The most rounds of a sha-crypt hash: about a second.
pub const SHA_ROUNDS_MAX: u32 = 1_000_000;

/// One password's hash.
pub enum Hash {
    /// `$2a$`, `$2b$`, `$2x$`, `$2y$`.
    Bcrypt(Box<str>),
    /// `$5$` (SHA-256) and `$6$` (SHA-512).
    ShaCrypt(Box<str>),
    /// `$apr1$` and `$1$`.
    Md5Crypt {
        /// The magic with both `$`.
        magic: &'static str,
        /// Mixed in.
        salt: Box<[u8]>,
        /// The digits of the hash.
        digits: [u8; DIGITS_LEN],
    },
    /// `{SHA}` and, with a salt, `{SSHA}`.
    Sha1 {
        /// The hash.
        digest: [u8; SHA1_OUTPUT_LEN],
        /// Mixed in; empty for `{SHA}`.
        salt: Box<[u8]>,
    },
    /// `{PLAIN}`: the password itself.
    Plain(Box<[u8]>),
}

/// Why a text is no hash that can be checked. Says nothing of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// No such kind, or not one that is supported.
    #[error("a hash that is none of bcrypt, apr1, sha-crypt, SHA-1")]
    Unknown,
    /// It breaks the rules of its kind.
    #[error("a hash that is broken")]
    Broken,
    /// Everybody who asks would make us work for seconds.
    #[error("a hash that takes too long (bcrypt above cost 14, sha-crypt above 1000000 rounds)")]
    TooCostly,
}

impl FromStr for Hash {
    type Err = HashError;

    fn from_str(text: &str) -> Result<Self, HashError> {
        if !text.is_ascii() && !text.starts_with("{PLAIN}") {
            return Err(HashError::Unknown);
        }
        match text.split_at_checked(4).unwrap_or((text, "")) {
            ("$2a$" | "$2b$" | "$2x$" | "$2y$", _) => return bcrypt_hash(text),
            _ if text.starts_with("$5$") => return sha_crypt_hash(text, 43),
            _ if text.starts_with("$6$") => return sha_crypt_hash(text, 86),
            _ => {}
        }
        for magic in ["$apr1$", "$1$"] {
            if let Some(rest) = text.strip_prefix(magic) {
                return md5_crypt_hash(magic, rest);
            }
        }
        if let Some(rest) = text.strip_prefix("{SHA}") {
            return sha1_hash(rest, false);
        }
        if let Some(rest) = text.strip_prefix("{SSHA}") {
            return sha1_hash(rest, true);
        }
        let plain = text.strip_prefix("{PLAIN}").ok_or(HashError::Unknown)?;
        Ok(Hash::Plain(plain.as_bytes().into()))
    }
}

fn bcrypt_hash(text: &str) -> Result<Hash, HashError> {
    const LEN: usize = 60;
    if text.len() != LEN {
        return Err(HashError::Broken);
    }
    let parts = bcrypt::HashParts::from_str(text).map_err(|_| HashError::Broken)?;
    match parts.get_cost() {
        4..=BCRYPT_COST_MAX => Ok(Hash::Bcrypt(text.into())),
        0..4 => Err(HashError::Broken),
        _ => Err(HashError::TooCostly),
    }
}

fn sha_crypt_hash(text: &str, digits: usize) -> Result<Hash, HashError> {
    const ROUNDS_MIN: u32 = 1000;
    const SALT_MAX: usize = 16;
    let mut fields = text.split('$').skip(2);
    let mut salt = fields.next().ok_or(HashError::Broken)?;
    if let Some(rounds) = salt.strip_prefix("rounds=") {
        match rounds.parse().map_err(|_| HashError::Broken)? {
            ROUNDS_MIN..=SHA_ROUNDS_MAX => {}
            0..ROUNDS_MIN => return Err(HashError::Broken),
            _ => return Err(HashError::TooCostly),
        }
        salt = fields.next().ok_or(HashError::Broken)?;
    }
    let whole = salt.len() <= SALT_MAX
        && fields
            .next()
            .is_some_and(|it| it.len() == digits && is_crypt64(it))
        && fields.next().is_none();
    match whole {
        true => Ok(Hash::ShaCrypt(text.into())),
        false => Err(HashError::Broken),
    }
}

fn md5_crypt_hash(magic: &'static str, rest: &str) -> Result<Hash, HashError> {
    let (salt, digits) = rest.split_once('$').ok_or(HashError::Broken)?;
    let digits = Some(digits).filter(|it| is_crypt64(it));
    let digits = digits.and_then(|it| it.as_bytes().try_into().ok());
    if salt.len() > SALT_MAX {
        return Err(HashError::Broken);
    }
    Ok(Hash::Md5Crypt {
        magic,
        salt: salt.as_bytes().into(),
        digits: digits.ok_or(HashError::Broken)?,
    })
}

fn is_crypt64(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'/';
    text.bytes().all(digit)
}

fn sha1_hash(text: &str, salted: bool) -> Result<Hash, HashError> {
    let bytes = STANDARD.decode(text).map_err(|_| HashError::Broken)?;
    let (digest, salt) = bytes.split_first_chunk().ok_or(HashError::Broken)?;
    if salted == salt.is_empty() {
        return Err(HashError::Broken);
    }
    Ok(Hash::Sha1 {
        digest: *digest,
        salt: salt.into(),
    })
}

impl Hash {
    /// Whether a password is the one. Takes as long for a wrong one.
    pub fn is_of(&self, password: &[u8]) -> bool {
        if password.len() > PASSWORD_MAX {
            return false;
        }
        match self {
            Hash::Bcrypt(text) => bcrypt::verify(password, text).unwrap_or(false),
            Hash::ShaCrypt(text) => ShaCrypt::default()
                .verify_password(password, &**text)
                .is_ok(),
            Hash::Md5Crypt {
                magic,
                salt,
                digits,
            } => equal(&md5_crypt(password, salt, magic), digits),
            Hash::Sha1 { digest, salt } => {
                let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
                context.update(password);
                context.update(salt);
                equal(context.finish().as_ref(), digest)
            }
            Hash::Plain(own) => equal(password, own),
        }
    }

    /// Whether it takes so long that a worker's other requests would notice.
    pub fn is_slow(&self) -> bool {
        !matches!(self, Hash::Sha1 { .. } | Hash::Plain(_))
    }
}

fn equal(one: &[u8], other: &[u8]) -> bool {
    verify_slices_are_equal(one, other).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    /// Of `secret`, by openssl, libxcrypt and htpasswd.
    const OF_SECRET: [&str; 10] = [
        "$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a",
        "$2a$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a",
        "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a",
        "$5$saltstring$C3o4O1TC6aRHF4FI.QSZMXtHbaj2gSXr4sUc/3NcUi.",
        "$6$saltstring$AIsRs/Ee56G/tC8MEHhvReZTfx8u3rXXMl6eYrjCG9ibix19DxoMBLogdTET5Ukw9Sf7eZTITsuk0Ry5qulYz.",
        "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/",
        "$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1",
        "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
        "{SSHA}gVK8WC9YyFT1gMsQHTGCgT3sSv5zYWx0",
        "{PLAIN}secret",
    ];

    #[test]
    fn every_kind_knows_its_password_and_no_other() {
        for text in OF_SECRET {
            let hash: Hash = text.parse().unwrap();
            assert!(hash.is_of(b"secret"), "{text}");
            for wrong in ["", "Secret", "secret ", "secre"] {
                assert!(!hash.is_of(wrong.as_bytes()), "{text} {wrong:?}");
            }
        }
    }

    #[test]
    fn what_is_unknown_broken_or_too_costly_is_no_hash() {
        for (text, error) in [
            ("", HashError::Unknown),
            ("secret", HashError::Unknown),
            ("rl.3StKT.4T8M", HashError::Unknown),
            ("$y$j9T$x$y", HashError::Unknown),
            (
                "$argon2id$v=19$m=1,t=1,p=1$c2FsdA$aGFzaA",
                HashError::Unknown,
            ),
            ("$2y$05$abc", HashError::Broken),
            (
                "$2y$15$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a",
                HashError::TooCostly,
            ),
            (
                "$2y$31$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a",
                HashError::TooCostly,
            ),
            (
                "$5$rounds=1000001$a$C3o4O1TC6aRHF4FI.QSZMXtHbaj2gSXr4sUc/3NcUi.",
                HashError::TooCostly,
            ),
            (
                "$5$rounds=x$a$C3o4O1TC6aRHF4FI.QSZMXtHbaj2gSXr4sUc/3NcUi.",
                HashError::Broken,
            ),
            ("$6$a$short", HashError::Broken),
            ("$apr1$abcdefghi$h9FWgUz3n9YxylKLlR5SQ/", HashError::Broken),
            ("$apr1$a", HashError::Broken),
            ("{SHA}5en6", HashError::Broken),
            ("{SSHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", HashError::Broken),
        ] {
            assert_eq!(text.parse::<Hash>().err(), Some(error), "{text}");
        }
    }

    #[test]
    fn a_password_that_is_too_long_is_wrong() {
        let long = "x".repeat(PASSWORD_MAX + 1);
        let hash: Hash = format!("{{PLAIN}}{long}").parse().unwrap();
        assert!(!hash.is_of(long.as_bytes()));
    }

    proptest! {
        /// A hash with one byte changed is no hash, or one of another password; nothing panics.
        #[test]
        fn mutated_hashes_do_not_panic(
            index in 0..OF_SECRET.len(), at in 0_usize..110, byte in 0x20_u8..0x7f, cut in 0_usize..110,
        ) {
            let mut text = OF_SECRET[index].as_bytes().to_vec();
            let at = at % text.len();
            text[at] = byte;
            for text in [&text[..], &text[..cut.min(text.len())]] {
                if let Ok(hash) = String::from_utf8_lossy(text).parse::<Hash>() {
                    // Of the bcrypt hashes some of the last bits do not count.
                    let _ = hash.is_of(b"secret");
                }
            }
        }
    }
}
