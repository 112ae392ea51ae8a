//! Which Variant should answer, by a table of what was sent. Written in terms of text only.

use splitter::routing::Reason;

/// A rule, as a person would say it.
#[derive(Clone, Debug)]
pub enum Says {
    HeaderAlwaysNever(&'static str),
    HeaderIs(&'static str, &'static str),
    HeaderStartsWith(&'static str, &'static str),
    HeaderContains(&'static str, &'static str),
    HeaderInvalid(&'static str),
    CookieAlwaysNever(&'static str),
}

/// The Variant and the reason; the Variant that the weights give is asked for only when they decide.
pub fn decide(
    variants: usize,
    rules: &[(u8, Says)],
    sent: &[(String, String)],
    by_weight: impl FnOnce() -> usize,
) -> (usize, Reason) {
    if variants == 1 {
        return (0, Reason::Only);
    }
    for (variant, says) in rules {
        let variant = usize::from(*variant);
        let value = match says {
            Says::HeaderAlwaysNever(name)
            | Says::HeaderIs(name, _)
            | Says::HeaderStartsWith(name, _)
            | Says::HeaderContains(name, _) => header(sent, name),
            Says::HeaderInvalid(_) => None,
            Says::CookieAlwaysNever(name) => cookie(sent, name),
        };
        let Some(value) = value else { continue };
        let reason = match says {
            Says::CookieAlwaysNever(_) => Reason::Cookie,
            _ => Reason::Header,
        };
        let hit = match says {
            Says::HeaderAlwaysNever(_) | Says::CookieAlwaysNever(_) => {
                if value == "never" {
                    return (0, reason);
                }
                value == "always"
            }
            Says::HeaderIs(_, wanted) => value == *wanted,
            Says::HeaderStartsWith(_, wanted) => value.starts_with(wanted),
            Says::HeaderContains(_, wanted) => value.contains(wanted),
            Says::HeaderInvalid(_) => false,
        };
        if hit {
            return (variant, reason);
        }
    }
    (by_weight(), Reason::Weight)
}

fn header(sent: &[(String, String)], name: &str) -> Option<String> {
    let lines: Vec<&str> = sent
        .iter()
        .filter(|(sent, _)| sent.to_lowercase() == name)
        .map(|(_, value)| value.as_str())
        .collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

fn cookie(sent: &[(String, String)], name: &str) -> Option<String> {
    let lines = sent
        .iter()
        .filter(|(name, _)| name.to_lowercase() == "cookie");
    let all = lines
        .map(|(_, value)| value.as_str())
        .collect::<Vec<_>>()
        .join(";");
    for pair in all.split(';') {
        if let Some((key, value)) = pair.split_once('=')
            && key.trim().to_lowercase() == name.to_lowercase()
        {
            return Some(value.trim_start().to_owned());
        }
    }
    None
}

/// The Variant that owns a point: one place in a row for each unit, canaries first, stable last.
pub fn at(weights: &[u32], point: u32) -> usize {
    let order = (1..weights.len()).chain([0]);
    let row: Vec<usize> = order
        .flat_map(|variant| vec![variant; weights[variant] as usize])
        .collect();
    row.get(point as usize).copied().unwrap_or(0)
}
