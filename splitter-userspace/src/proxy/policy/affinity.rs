//! The session cookie on an answer.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use http::header::{SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, response};

use crate::model::{Affinity, SameSite, SessionCookie};
use crate::routing::{self, Held};

/// What the attributes of the cookie depend on, taken from the request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visit {
    /// Whether the client's connection is encrypted, as far as we are told.
    encrypted: bool,
    /// Whether the client takes `SameSite=None` for `Strict`.
    misreads_none: bool,
}

impl Visit {
    /// Of a request that came on such a connection.
    pub fn of(cookie: &SessionCookie, headers: &HeaderMap, encrypted: bool) -> Self {
        let asks = cookie.conditional_none && cookie.same_site == Some(SameSite::None);
        let agent = headers.get(USER_AGENT).filter(|_| asks);
        Visit {
            encrypted,
            misreads_none: agent
                .and_then(|agent| agent.to_str().ok())
                .is_some_and(misreads_none),
        }
    }
}

/// Gives the client the cookie that keeps it with this Variant and Endpoint.
pub fn give(affinity: &Affinity, held: Held, visit: Visit, parts: &mut response::Parts) {
    let Some(value) = routing::value(affinity, held) else {
        return;
    };
    let text = text(affinity, &value, visit, SystemTime::now());
    if let Ok(field) = HeaderValue::from_str(&text) {
        parts.headers.append(SET_COOKIE, field);
    }
}

fn text(affinity: &Affinity, value: &str, visit: Visit, now: SystemTime) -> String {
    let cookie = &*affinity.cookie;
    let mut text = format!("{}={value}; Path={}", cookie.name, affinity.path);
    let mut add = |name: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = write!(text, "; {name}={value}");
    };
    if let Some(domain) = &cookie.domain {
        add("Domain", domain);
    }
    if let Some(seconds) = cookie.expires {
        add("Expires", &httpdate::fmt_http_date(after(now, seconds)));
    }
    if let Some(seconds) = cookie.max_age {
        add("Max-Age", &seconds.to_string());
    }
    let same_site = cookie.same_site;
    if let Some(same_site) = same_site.filter(|it| *it != SameSite::None || !visit.misreads_none) {
        add("SameSite", same_site.as_str());
    }
    if cookie.secure || visit.encrypted {
        text.push_str("; Secure");
    }
    text.push_str("; HttpOnly");
    text
}

/// `now` and so many seconds, which may be negative, but never before 1970.
fn after(now: SystemTime, seconds: i64) -> SystemTime {
    let span = Duration::from_secs(seconds.unsigned_abs());
    let then = match seconds {
        0.. => now.checked_add(span),
        _ => now.checked_sub(span),
    };
    then.unwrap_or(now).max(SystemTime::UNIX_EPOCH)
}

/// Browsers known to take `SameSite=None` for `Strict`, or to drop such a cookie: Chromium 51 to 66,
/// all on iOS 12, Safari and embedded views on macOS 10.14, UC before 12.13.2.
fn misreads_none(agent: &str) -> bool {
    if agent.contains("(iPhone; CPU iPhone OS 12") || agent.contains("(iPad; CPU OS 12") {
        return true;
    }
    let chromium = ["Chrome/", "Chromium/"]
        .iter()
        .find_map(|name| version(agent, name));
    if agent.contains("Macintosh; Intel Mac OS X 10_14") && chromium.is_none() {
        return agent.contains("Safari/") || agent.ends_with("(KHTML, like Gecko)");
    }
    if let Some(uc) = version(agent, "UCBrowser/") {
        return uc < [12, 13, 2];
    }
    chromium.is_some_and(|[major, ..]| (51..=66).contains(&major))
}

/// The first three numbers behind `name`; what is missing is 0.
fn version(agent: &str, name: &str) -> Option<[u32; 3]> {
    let (_, rest) = agent.split_once(name)?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let mut numbers = rest
        .get(..end)?
        .split('.')
        .map(|it| it.parse().unwrap_or(0));
    Some(std::array::from_fn(|_| numbers.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests;
