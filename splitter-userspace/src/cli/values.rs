//! Parsers of single values. Their errors say what is allowed.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr as _;
use std::time::Duration;

use ipnet::IpNet;

use crate::config::AccessLog;
use crate::model::AddressSet;

/// An address to listen on.
pub(super) fn listen(text: &str) -> Result<SocketAddr, String> {
    let addr = text.parse();
    addr.map_err(|_| "expected an IP address and a port such as 0.0.0.0:80 or [::]:80".to_owned())
}

/// An address to listen on, or `off`.
pub(super) fn listen_or_off(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "off" {
        return Ok(None);
    }
    let addr = text.parse();
    let addr = addr.map_err(|_| {
        "expected an IP address and a port such as 0.0.0.0:443 or [::]:443, or off".to_owned()
    });
    addr.map(Some)
}

/// A value of Strict-Transport-Security (RFC 6797 6.1), or `off`.
pub(super) fn hsts(text: &str) -> Result<Option<String>, String> {
    if text == "off" {
        return Ok(None);
    }
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let mut directives = text.split(';').map(str::trim);
    let age = directives.find_map(|it| it.strip_prefix("max-age="));
    match age.map(str::parse::<u32>) {
        Some(Ok(_)) if plain => Ok(Some(text.to_owned())),
        _ => Err("expected off, or text such as max-age=31536000; includeSubDomains".to_owned()),
    }
}

/// As [`duration`], or none: `0s`.
pub(super) fn duration_or_none(text: &str) -> Result<Duration, String> {
    match text {
        "0" | "0s" => Ok(Duration::ZERO),
        text => duration(text),
    }
}

/// A time such as `30s`, `500ms`, `2m`, `1h`; a bare number is seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let allowed = || "expected a time greater than zero such as 30s, 500ms, 2m or 1h".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let number: u64 = digits.parse().map_err(|_| allowed())?;
    let millis = match unit {
        "ms" => Some(number),
        "s" | "" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => None,
    };
    match millis {
        // A year: longer is a mistake, and far from any overflow of an instant.
        Some(millis @ 1..=31_536_000_000) => Ok(Duration::from_millis(millis)),
        Some(0) | None => Err(allowed()),
        Some(_) => Err("expected at most a year".to_owned()),
    }
}

/// A parser of whole numbers in a range.
pub(super) fn number(
    range: RangeInclusive<usize>,
) -> impl Fn(&str) -> Result<usize, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let (low, high) = (range.start(), range.end());
            format!("expected a whole number from {low} to {high}")
        })
    }
}

/// An address or a range of addresses.
pub(super) fn range(text: &str) -> Result<IpNet, String> {
    let set = AddressSet::from_str(text).map_err(|error| error.to_string())?;
    let first = set.ranges().next();
    first.ok_or_else(|| "expected an address or a range such as 10.0.0.0/8".to_owned())
}

/// `off`, `stdout` or the path of a file.
pub(super) fn access_log(text: &str) -> Result<AccessLog, String> {
    match text {
        "off" => Ok(AccessLog::Off),
        "stdout" => Ok(AccessLog::Stdout),
        "" => Err("expected off, stdout or the path of a file".to_owned()),
        path => Ok(AccessLog::File(path.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn an_address_has_a_port_and_no_name() {
        assert_eq!(
            listen("[::1]:80"),
            Ok(SocketAddr::from((Ipv6Addr::LOCALHOST, 80)))
        );
        for text in [
            "",
            "80",
            ":80",
            "0.0.0.0",
            "localhost:80",
            "1.2.3.4:65536",
            "::1:80",
        ] {
            let error = listen(text).err().unwrap_or_default();
            assert!(error.contains("[::]:80"), "{text}: {error}");
        }
    }

    #[test]
    fn durations_have_a_unit_or_are_seconds() {
        for (text, millis) in [
            ("30s", 30_000),
            ("30", 30_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn other_durations_are_refused_with_what_is_allowed() {
        for text in [
            "",
            "s",
            "0",
            "0s",
            "-1s",
            "1.5s",
            "1d",
            "10 s",
            "9999999999999h",
            "ms",
            "é",
        ] {
            let error = duration(text).err().unwrap_or_default();
            assert!(error.contains("30s"), "{text}: {error}");
        }
        assert_eq!(duration("9000h"), Err("expected at most a year".to_owned()));
    }

    #[test]
    fn numbers_are_whole_and_in_their_range() {
        let parse = number(1..=1024);
        assert_eq!(parse("1"), Ok(1));
        assert_eq!(parse("1024"), Ok(1024));
        for text in [
            "0",
            "1025",
            "-1",
            "1.5",
            "64K",
            "x",
            "",
            "99999999999999999999",
        ] {
            let error = "expected a whole number from 1 to 1024";
            assert_eq!(parse(text), Err(error.to_owned()), "{text}");
        }
    }

    #[test]
    fn an_access_log_is_a_word_or_a_path() {
        assert_eq!(access_log("off"), Ok(AccessLog::Off));
        assert_eq!(access_log("stdout"), Ok(AccessLog::Stdout));
        assert_eq!(
            access_log("/var/log/access.log"),
            Ok(AccessLog::File("/var/log/access.log".into()))
        );
        assert!(access_log("").is_err());
    }
}
