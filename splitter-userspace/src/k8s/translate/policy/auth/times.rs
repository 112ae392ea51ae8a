//! How long answers are remembered, as nginx writes it.

use std::time::Duration;

use super::fields::parts;

/// The longest time that an answer is remembered.
const CACHE_MAX: Duration = Duration::from_secs(24 * 3600);

/// `200 202 10m, 401 1m`: statuses and how long answers with them are remembered.
pub(super) fn times(text: &str) -> Result<Vec<(u16, Duration)>, String> {
    let mut all = Vec::new();
    for part in parts(text, |c| c == ',') {
        let words: Vec<_> = part.split_ascii_whitespace().collect();
        let wrong = || format!("{part:?} is not statuses and a time, such as 200 202 5m");
        let (time, statuses) = words.split_last().ok_or_else(wrong)?;
        let time = time_of(time)
            .filter(|time| *time <= CACHE_MAX)
            .ok_or_else(wrong)?;
        if statuses.is_empty() {
            return Err(wrong());
        }
        for status in statuses {
            let status = status.parse().ok().filter(|it| (200..600).contains(it));
            all.push((status.ok_or_else(wrong)?, time));
        }
    }
    Ok(all)
}

/// A time as nginx writes it: `30s`, `5m`, `1h`, `1d`, or seconds.
fn time_of(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) => (number, text.get(number.len()..)?),
        None => (text, "s"),
    };
    let number: u64 = number.parse().ok()?;
    let seconds = match unit {
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => 1,
    };
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn times_are_those_of_nginx() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        assert_eq!(
            times("200 202 401 5m, 403 1h").unwrap(),
            [
                (200, minutes(5)),
                (202, minutes(5)),
                (401, minutes(5)),
                (403, minutes(60))
            ]
        );
        for bad in [
            "200", "5m", "200 5m;", "200 x", "99 5m", "200 2d", "any 5m", "200 -1s",
        ] {
            assert!(times(bad).is_err(), "{bad}");
        }
    }
}
