//! MD5-crypt, as FreeBSD brought it (`$1$`) and as Apache's htpasswd varies it (`$apr1$`): the same
//! steps with another magic. MD5 itself is the library's.

use md5::{Digest, Md5};

/// The digits of crypt's base64, which is not that of RFC 4648.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The bytes of the digest in the order in which they are written, three to four digits; the last
/// byte stands alone.
const ORDER: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];

/// How many digits a digest has.
pub(super) const DIGITS_LEN: usize = 22;

/// The most bytes of a salt that count.
pub(super) const SALT_MAX: usize = 8;

/// The digits of the hash of `password`. `magic` is the one with both `$`.
pub(super) fn md5_crypt(password: &[u8], salt: &[u8], magic: &str) -> [u8; DIGITS_LEN] {
    let inner = Md5::new()
        .chain_update(password)
        .chain_update(salt)
        .chain_update(password)
        .finalize();
    let mut outer = Md5::new()
        .chain_update(password)
        .chain_update(magic)
        .chain_update(salt);
    for piece in password.chunks(inner.len()) {
        outer.update(inner.get(..piece.len()).unwrap_or_default());
    }
    let mut bits = password.len();
    while bits > 0 {
        match bits & 1 {
            1 => outer.update([0]),
            _ => outer.update(password.get(..1).unwrap_or_default()),
        }
        bits >>= 1;
    }
    let mut digest = outer.finalize();
    for round in 0..1000 {
        let odd = round & 1 == 1;
        let mut next = Md5::new();
        next.update(if odd { password } else { digest.as_slice() });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if odd { digest.as_slice() } else { password });
        digest = next.finalize();
    }
    digits(&digest)
}

fn digits(digest: &[u8]) -> [u8; DIGITS_LEN] {
    let byte = |at: usize| u32::from(digest.get(at).copied().unwrap_or(0));
    let mut text = [0; DIGITS_LEN];
    let groups = ORDER.map(|[a, b, c]| byte(a) << 16 | byte(b) << 8 | byte(c));
    let groups = groups.into_iter().chain([byte(11)]);
    for (group, out) in groups.zip(text.chunks_mut(4)) {
        for (place, digit) in out.iter_mut().enumerate() {
            *digit = DIGITS[(group >> (6 * place) & 63) as usize];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(password: &str, salt: &str, magic: &str) -> String {
        let digits = md5_crypt(password.as_bytes(), salt.as_bytes(), magic);
        String::from_utf8_lossy(&digits).into_owned()
    }

    /// By `openssl passwd -apr1` and `-1`.
    #[test]
    fn the_digits_are_those_of_other_programs() {
        for (password, salt, magic, digits) in [
            ("secret", "abcdefgh", "$apr1$", "h9FWgUz3n9YxylKLlR5SQ/"),
            ("secret", "abcdefgh", "$1$", "cHJi5PXp/ki/ktXzqlk6I1"),
            ("", "12345678", "$apr1$", "sHuPAw7VA9xjRbJz7zKV7/"),
            ("", "12345678", "$1$", "xek.CpjQUVgdf/P2N9KQf/"),
            ("a", "x", "$apr1$", "16j9.5e7KiXmuYFAYpPJM/"),
            ("a", "x", "$1$", "P8VObTrxaqT4VBmnH06P8."),
            ("password", "r31.....", "$apr1$", "ARC3pREO82RIm0aQ2zszC0"),
            ("password", "r31.....", "$1$", "1S1.JCfrS0JpsV9gzsADG/"),
            (
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                "saltsalt",
                "$apr1$",
                "2mFfzhmPOknAGlGo8.2/30",
            ),
            (
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                "saltsalt",
                "$1$",
                "lTT80f5GEB.8cfLv43D0D1",
            ),
            ("0123456789abcdef", "zz", "$apr1$", "zqHZLhGoQj5sjb1kEc41B0"),
            ("0123456789abcdef", "zz", "$1$", "CDf.CKjkw4i59MxID89IF/"),
            ("päss wörd", "q1w2e3r4", "$apr1$", "TND.ejVwK9RjIa6fL2cE8."),
            ("päss wörd", "q1w2e3r4", "$1$", "ZYWDlS8PIeUQyhd6PN7Xr."),
        ] {
            assert_eq!(text(password, salt, magic), digits, "{password}");
        }
    }
}
