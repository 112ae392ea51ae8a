//! How large bodies may be: `proxy-body-size`.

use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::report::Problems;

/// The most bytes of a body; 0 for no limit.
pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<u64> {
    let annotation = given(view, "proxy-body-size", problems)?;
    let size = size(annotation.value.trim());
    if size.is_none() {
        problems.error(
            &view.subject,
            annotation.field(),
            "body-size-invalid",
            format!(
                "{:?} is no number of bytes, with k, m or g or without a unit",
                annotation.value
            ),
            "it counts as not set: the default limit holds",
        );
    }
    size
}

/// As nginx reads sizes: digits and at most one letter.
fn size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (text.get(..text.len() - 1)?, 1 << 10),
        b'm' | b'M' => (text.get(..text.len() - 1)?, 1 << 20),
        b'g' | b'G' => (text.get(..text.len() - 1)?, 1 << 30),
        _ => (text, 1u64),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_as_nginx_reads_them() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1", Some(1)),
            ("8k", Some(8 << 10)),
            ("8K", Some(8 << 10)),
            ("1m", Some(1 << 20)),
            ("2G", Some(2 << 30)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("18446744073709551615k", None),
            ("m", None),
            ("1mb", None),
            ("1 m", None),
            ("-1", None),
            ("+1", None),
            ("1.5m", None),
            ("unlimited", None),
        ] {
            assert_eq!(size(text), expected, "{text}");
        }
        assert_eq!(size(""), None);
        assert_eq!(size("1\u{e9}"), None);
    }
}
