//! Host names of rules.

use std::net::IpAddr;

use crate::model::HostPattern;

/// The longest host name, in bytes.
const MAX_NAME: usize = 253;
/// The longest part of a host name between two dots, in bytes.
const MAX_LABEL: usize = 63;

/// Reads a rule's host: nothing, a DNS name, or `*.` and a DNS name.
pub(super) fn parse(text: &str) -> Result<HostPattern, &'static str> {
    if text.is_empty() {
        return Ok(HostPattern::Any);
    }
    let name = text.to_ascii_lowercase();
    if name.parse::<IpAddr>().is_ok() {
        return Err("an IP address is not a host name");
    }
    if name.contains(':') {
        return Err("a host has no port");
    }
    if let Some(suffix) = name.strip_prefix("*.") {
        check(suffix)?;
        return Ok(HostPattern::Wildcard(suffix.into()));
    }
    if name.contains('*') {
        return Err("* can only be the whole first label of a longer name, as in *.example.com");
    }
    check(&name)?;
    Ok(HostPattern::Exact(name.into()))
}

fn check(name: &str) -> Result<(), &'static str> {
    if name.contains('*') {
        return Err("* can only be the whole first label of a longer name, as in *.example.com");
    }
    if name.len() > MAX_NAME {
        return Err("a host name has at most 253 characters");
    }
    let fine = |label: &str| {
        let inner = label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-');
        inner
            && (1..=MAX_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.split('.').all(fine) {
        Ok(())
    } else {
        Err("a host name is made of labels of letters, digits and -, up to 63 characters each")
    }
}
