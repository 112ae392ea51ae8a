//! What [`Defaults`] say about the process itself, which is read when it starts.

use std::str::FromStr;

use super::{Defaults, Settings};
use crate::model::AddressSet;

/// Settings of the process in [`Defaults`], by the keys of [`super::DEFAULT_SETTINGS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessDefaults {
    /// `use-forwarded-headers`, default false.
    pub use_forwarded_headers: bool,
    /// `use-proxy-protocol`, default false.
    pub use_proxy_protocol: bool,
    /// `proxy-real-ip-cidr`, if it is there.
    pub proxy_real_ip: Option<AddressSet>,
}

/// A value that cannot be read; it counts as not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {value:?}; {allowed}")]
pub struct BadDefault {
    /// The key.
    pub key: &'static str,
    /// As written.
    pub value: String,
    /// What it may be.
    pub allowed: &'static str,
}

impl ProcessDefaults {
    /// What can be read, and what cannot.
    pub fn read(defaults: &Defaults) -> (Self, Vec<BadDefault>) {
        let mut bad = Vec::new();
        let read = ProcessDefaults {
            use_forwarded_headers: switch(defaults, "use-forwarded-headers", &mut bad),
            use_proxy_protocol: switch(defaults, "use-proxy-protocol", &mut bad),
            proxy_real_ip: value(
                defaults,
                "proxy-real-ip-cidr",
                "it may be a list such as 10.0.0.0/8,2001:db8::/32",
                &mut bad,
            ),
        };
        (read, bad)
    }

    /// The keys that say something else there.
    pub fn differing(&self, other: &Self) -> Vec<&'static str> {
        let same = [
            (
                "proxy-real-ip-cidr",
                self.proxy_real_ip == other.proxy_real_ip,
            ),
            (
                "use-forwarded-headers",
                self.use_forwarded_headers == other.use_forwarded_headers,
            ),
            (
                "use-proxy-protocol",
                self.use_proxy_protocol == other.use_proxy_protocol,
            ),
        ];
        let differing = same.into_iter().filter(|(_, same)| !same);
        differing.map(|(key, _)| key).collect()
    }
}

impl Settings {
    /// Adds what the defaults say: a switch that a flag has set stays on, and ranges count where the
    /// flag is left at everybody.
    pub fn add(&mut self, defaults: &ProcessDefaults) {
        self.use_forwarded_headers |= defaults.use_forwarded_headers;
        self.use_proxy_protocol |= defaults.use_proxy_protocol;
        if let Some(ranges) = &defaults.proxy_real_ip
            && self.proxy_real_ip.is_all()
        {
            self.proxy_real_ip = ranges.clone();
        }
    }
}

fn switch(defaults: &Defaults, key: &'static str, bad: &mut Vec<BadDefault>) -> bool {
    if defaults
        .values
        .get(key)
        .is_some_and(|it| it.trim().is_empty())
    {
        return false;
    }
    value(defaults, key, "it may be true or false", bad).unwrap_or(false)
}

fn value<T: FromStr>(
    defaults: &Defaults,
    key: &'static str,
    allowed: &'static str,
    bad: &mut Vec<BadDefault>,
) -> Option<T> {
    let value = defaults.values.get(key)?;
    let read = value.trim().parse().ok();
    if read.is_none() {
        bad.push(BadDefault {
            key,
            value: value.clone(),
            allowed,
        });
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(&str, &str)]) -> (ProcessDefaults, Vec<BadDefault>) {
        let values = values.iter();
        let values = values.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        ProcessDefaults::read(&Defaults {
            values: values.collect(),
            ..Defaults::default()
        })
    }

    #[test]
    fn a_bad_value_takes_no_good_one_with_it() {
        let (read, bad) = read(&[
            ("use-forwarded-headers", "perhaps"),
            ("use-proxy-protocol", " true "),
            ("proxy-real-ip-cidr", "office"),
        ]);
        let keys: Vec<_> = bad.iter().map(|it| it.key).collect();
        assert_eq!(keys, ["use-forwarded-headers", "proxy-real-ip-cidr"]);
        assert!(read.use_proxy_protocol && !read.use_forwarded_headers);
        assert_eq!(read.proxy_real_ip, None);
    }

    #[test]
    fn what_differs_is_named() {
        let (nothing, _) = read(&[("use-forwarded-headers", ""), ("proxy-body-size", "1m")]);
        assert_eq!(nothing, ProcessDefaults::default());
        let (all, _) = read(&[
            ("use-forwarded-headers", "true"),
            ("use-proxy-protocol", "true"),
            ("proxy-real-ip-cidr", "10.0.0.0/8"),
        ]);
        assert_eq!(all.differing(&nothing), super::super::DEFAULT_SETTINGS);
        assert!(all.differing(&all).is_empty());
    }
}
