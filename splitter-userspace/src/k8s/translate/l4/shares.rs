//! The text of `splitter.io/split`: pure.

/// The most digits behind the point of a share.
const DIGITS: u32 = 3;

/// What a text asks for: Services and weights out of one total.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shares<'a> {
    /// What all weights, that of the Service itself among them, add up to: 100, or with digits behind
    /// the point as many times that as they need.
    pub total: u32,
    /// In the order of the text.
    pub of: Vec<(&'a str, u32)>,
}

/// Reads `app-canary=10, app-next=0.5`: parts of a hundred, with at most three digits behind the point.
///
/// # Errors
/// Says what is wrong.
pub(super) fn parse(text: &str) -> Result<Shares<'_>, String> {
    let mut read = Vec::new();
    for item in text.split(',').map(str::trim) {
        let (name, share) = item.split_once('=').unwrap_or((item, ""));
        let (name, share) = (name.trim(), share.trim());
        if name.is_empty() {
            return Err(format!(
                "{item:?} is no Service and its share, such as app-canary=10"
            ));
        }
        let share = number(share).ok_or_else(|| {
            format!("{share:?} is no share of {name} from 0 to 100 with at most {DIGITS} digits behind the point")
        })?;
        if read.iter().any(|(other, _)| *other == name) {
            return Err(format!("{name} is there twice"));
        }
        read.push((name, share));
    }
    let sum: u32 = read.iter().map(|(_, (units, _))| units).sum();
    if sum > 100 * 10u32.pow(DIGITS) {
        return Err(format!("the shares add up to more than 100: {text:?}"));
    }
    // Whole numbers stay as they are written: people see them in the maps.
    let digits = read.iter().map(|(_, (_, digits))| *digits).max();
    let digits = digits.unwrap_or(0);
    let scale = 10u32.pow(DIGITS - digits);
    Ok(Shares {
        total: 100 * 10u32.pow(digits),
        of: read
            .into_iter()
            .map(|(name, (units, _))| (name, units / scale))
            .collect(),
    })
}

/// A share in thousandths, and how many digits behind the point it needs.
fn number(text: &str) -> Option<(u32, u32)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !digits(whole) || !digits(part) || whole.len() > 3 || part.len() > DIGITS as usize {
        return None;
    }
    let part = part.trim_end_matches('0');
    let used = part.len() as u32;
    let thousandths = match part {
        "" => 0,
        part => part.parse::<u32>().ok()? * 10u32.pow(DIGITS - used),
    };
    let all = whole.parse::<u32>().ok()? * 10u32.pow(DIGITS) + thousandths;
    (all <= 100 * 10u32.pow(DIGITS)).then_some((all, used))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn whole_shares_are_of_a_hundred_and_others_of_as_much_as_they_need() {
        let of = |text| {
            let shares = parse(text).unwrap();
            (shares.total, shares.of)
        };
        assert_eq!(of("a=10, b = 5"), (100, vec![("a", 10), ("b", 5)]));
        assert_eq!(of("a=0"), (100, vec![("a", 0)]));
        assert_eq!(of("a=100.0"), (100, vec![("a", 100)]));
        assert_eq!(of("a=0.1,b=20"), (1000, vec![("a", 1), ("b", 200)]));
        assert_eq!(
            of("a=33.333,b=66.667"),
            (100_000, vec![("a", 33_333), ("b", 66_667)])
        );
    }

    #[test]
    fn what_is_no_share_is_refused_with_what_is_wrong() {
        for (text, why) in [
            ("", "no Service"),
            ("a", "no share"),
            ("a=", "no share"),
            ("=5", "no Service"),
            ("a=5,", "no Service"),
            ("a=-1", "no share"),
            ("a=101", "no share"),
            ("a=1e1", "no share"),
            ("a=.5", "no share"),
            ("a=5.", "no share"),
            ("a=0.0001", "no share"),
            ("a=99999999999", "no share"),
            ("a=5,a=6", "twice"),
            ("a=60,b=40.001", "more than 100"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
