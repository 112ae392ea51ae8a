use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::digits;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The time of day as log lines write it, in UTC. What changes once a second is written once a
/// second.
#[derive(Default)]
pub(super) struct Stamp {
    second: Option<u64>,
    common: Vec<u8>,
    iso: Vec<u8>,
    millis: u32,
}

impl Stamp {
    /// Takes the clock's time.
    pub(super) fn now(&mut self) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        self.set(since.unwrap_or_default());
    }

    fn set(&mut self, since: Duration) {
        self.millis = since.subsec_millis();
        if self.second == Some(since.as_secs()) {
            return;
        }
        self.second = Some(since.as_secs());
        let (days, rest) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        let name = MONTHS[(month - 1) as usize];
        self.common.clear();
        self.iso.clear();
        // Writing to a Vec cannot fail.
        let _ = write!(
            self.common,
            "{day:02}/{name}/{year}:{hour:02}:{minute:02}:{second:02} +0000"
        );
        let _ = write!(
            self.iso,
            "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        );
    }

    /// `30/Nov/2025:13:39:01 +0000`, as nginx writes its local time.
    pub(super) fn common(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.common);
    }

    /// `2025-11-30T13:39:01.123Z`.
    pub(super) fn iso(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.iso);
        out.push(b'.');
        digits::decimal(out, u64::from(self.millis), 3);
        out.push(b'Z');
    }
}

/// Year, month (1 to 12) and day of the month, of a number of days since 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    // Count from 0000-03-01, so that the leap day is the last of its year.
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(secs: u64, millis: u64) -> (String, String) {
        let mut stamp = Stamp::default();
        stamp.set(Duration::from_secs(secs) + Duration::from_millis(millis));
        let (mut common, mut iso) = (Vec::new(), Vec::new());
        stamp.common(&mut common);
        stamp.iso(&mut iso);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&common), text(&iso))
    }

    #[test]
    fn known_moments() {
        // From `date -u -d @N`.
        for (secs, common, iso) in [
            (0, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00.007Z"),
            (
                951_782_399,
                "28/Feb/2000:23:59:59 +0000",
                "2000-02-28T23:59:59.007Z",
            ),
            (
                951_782_400,
                "29/Feb/2000:00:00:00 +0000",
                "2000-02-29T00:00:00.007Z",
            ),
            (
                1_772_323_200,
                "01/Mar/2026:00:00:00 +0000",
                "2026-03-01T00:00:00.007Z",
            ),
            (
                4_107_542_399,
                "28/Feb/2100:23:59:59 +0000",
                "2100-02-28T23:59:59.007Z",
            ),
            (
                4_107_542_400,
                "01/Mar/2100:00:00:00 +0000",
                "2100-03-01T00:00:00.007Z",
            ),
        ] {
            assert_eq!(written(secs, 7), (common.to_owned(), iso.to_owned()));
        }
    }

    #[test]
    fn a_later_second_replaces_the_one_before() {
        let mut stamp = Stamp::default();
        stamp.set(Duration::from_secs(59));
        stamp.set(Duration::from_secs(60));
        let mut out = Vec::new();
        stamp.common(&mut out);
        assert_eq!(out, b"01/Jan/1970:00:01:00 +0000");
    }
}
