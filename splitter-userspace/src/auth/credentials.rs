//! What a client says of itself in `Authorization: Basic` (RFC 7617).

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Clients leave the padding out.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The most characters that are decoded.
const ENCODED_MAX: usize = 4096;

/// A name and a password. No `Debug`: nobody is to print it.
pub struct Credentials {
    /// The name: what is before the first colon.
    pub user: String,
    /// The rest, which may be anything.
    pub password: Vec<u8>,
}

impl Credentials {
    /// Reads the value of an Authorization field; none if it says something else, or nothing that
    /// can be read.
    pub fn read(value: &[u8]) -> Option<Self> {
        let encoded = scheme(value, b"basic")?;
        if encoded.len() > ENCODED_MAX {
            return None;
        }
        let mut user = LENIENT.decode(encoded).ok()?;
        let colon = user.iter().position(|byte| *byte == b':')?;
        let password = user.split_off(colon + 1);
        user.pop();
        let user = String::from_utf8(user).ok()?;
        Some(Credentials { user, password })
    }
}

/// What follows the name of a scheme, which is compared without regard to case (RFC 9110 11.1).
pub fn scheme<'a>(value: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = value.split_at_checked(name.len())?;
    let rest = Some(rest).filter(|_| start.eq_ignore_ascii_case(name))?;
    let rest = rest.strip_prefix(b" ")?.trim_ascii();
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn read(value: &str) -> Option<(String, Vec<u8>)> {
        Credentials::read(value.as_bytes()).map(|it| (it.user, it.password))
    }

    #[test]
    fn the_first_colon_divides() {
        let secret = Some(("ann".to_owned(), b"secret".to_vec()));
        for value in [
            "Basic YW5uOnNlY3JldA==",
            "basic   YW5uOnNlY3JldA==",
            "BASIC YW5uOnNlY3JldA",
        ] {
            assert_eq!(read(value), secret, "{value}");
        }
        let colons = Some(("a".to_owned(), b"b:c".to_vec()));
        assert_eq!(read("Basic YTpiOmM="), colons);
        assert_eq!(read("Basic Og=="), Some((String::new(), Vec::new())));
    }

    #[test]
    fn what_is_something_else_is_none() {
        for value in [
            "",
            "Basic",
            "Basic ",
            "Basic YW5u",
            "Basic !",
            "BasicYW5uOnNlY3JldA==",
            "Bearer YW5uOnNlY3JldA==",
            "Digest username=\"ann\"",
            "Basic YW5uOnNlY3JldA== x",
        ] {
            assert_eq!(read(value), None, "{value}");
        }
        assert_eq!(
            read(&format!("Basic {}", "A".repeat(ENCODED_MAX + 4))),
            None
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(value: Vec<u8>) {
            let _ = Credentials::read(&value);
            let _ = Credentials::read(&[b"Basic ", &value[..]].concat());
        }
    }
}
