//! Parsers of `NAME=VALUE`, where the names are a fixed set.

use splitter_common::{Class, Limit, Pool, Spoof, SpoofAction};

use crate::config::SettingsError;

/// The most worker threads of one pool: more is taken for a mistake.
pub(super) const MAX_WORKERS: usize = 1_024;

/// A value for one of several things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<K, V> {
    /// Which thing.
    pub name: K,
    /// Its value.
    pub value: V,
}

/// The value for one name, if it was given.
///
/// # Errors
/// When it was given twice, with different values.
pub(super) fn value<K: Copy + PartialEq, V: Copy + PartialEq + std::fmt::Debug, N: Into<String>>(
    flag: &'static str,
    what: &'static str,
    given: &[Named<K, V>],
    name: K,
    text: impl Fn(K) -> N,
) -> Result<Option<V>, SettingsError> {
    let mut values = given.iter().filter(|given| given.name == name);
    let first = values.next().map(|given| given.value);
    match (first, values.find(|other| Some(other.value) != first)) {
        (Some(first), Some(second)) => Err(SettingsError::Twice {
            flag,
            name: text(name).into(),
            first: format!("{first:?}"),
            second: format!("{:?}", second.value),
            what,
        }),
        _ => Ok(first),
    }
}

/// `node=north-south`.
pub(super) fn class_pool(text: &str) -> Result<Named<Class, Pool>, String> {
    named(text, class, pool)
}

/// `cluster=drop`.
pub(super) fn spoof_rule(text: &str) -> Result<Named<Spoof, SpoofAction>, String> {
    let rule = |text: &str| one_of("a rule", text, Spoof::ALL, Spoof::name);
    named(text, rule, spoof_action)
}

/// `north-south=1000:2000`.
pub(super) fn class_limit(text: &str) -> Result<Named<Class, Limit>, String> {
    named(text, class, limit)
}

/// `drop`, `count` or `off`.
pub(super) fn spoof_action(text: &str) -> Result<SpoofAction, String> {
    let all = [SpoofAction::Drop, SpoofAction::Count, SpoofAction::Off];
    one_of("an action", text, all, SpoofAction::name)
}

/// A rate a second and, after a colon, how much may come at once; the rate where it is left out.
pub(super) fn limit(text: &str) -> Result<Limit, String> {
    let (rate, burst) = text.split_once(':').unwrap_or((text, text));
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    match (number(rate), number(burst)) {
        (Some(rate), Some(burst)) => Ok(Limit { rate, burst }),
        _ => Err(format!(
            "expected a rate a second such as 1000, or rate and burst such as 1000:5000, each from \
             1 to {}",
            u32::MAX
        )),
    }
}

pub(super) fn pool(text: &str) -> Result<Pool, String> {
    one_of("a pool", text, Pool::ALL, Pool::name)
}

fn class(text: &str) -> Result<Class, String> {
    one_of("a class", text, Class::ALL, Class::name)
}

pub(super) fn named<K, V>(
    text: &str,
    name: impl Fn(&str) -> Result<K, String>,
    value: impl Fn(&str) -> Result<V, String>,
) -> Result<Named<K, V>, String> {
    let (left, right) = text.split_once('=').unwrap_or((text, ""));
    Ok(Named {
        name: name(left)?,
        value: value(right)?,
    })
}

/// The one of `all` that has this name.
pub(super) fn one_of<T: Copy>(
    what: &str,
    text: &str,
    all: impl IntoIterator<Item = T> + Clone,
    name: fn(T) -> &'static str,
) -> Result<T, String> {
    let found = all.clone().into_iter().find(|item| name(*item) == text);
    found.ok_or_else(|| {
        let names: Vec<_> = all.into_iter().map(name).collect();
        format!("expected {what}: {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_rate_with_or_without_a_burst() {
        let of = |rate, burst| Ok(Limit { rate, burst });
        assert_eq!(limit("5"), of(5, 5));
        assert_eq!(limit("5:9"), of(5, 9));
        for text in ["", "0", "5:", ":5", "5:0", "-1", "5:6:7", "4294967296"] {
            let error = limit(text).err().unwrap_or_default();
            assert!(error.contains("1000:5000"), "{text}: {error}");
        }
    }

    #[test]
    fn names_and_values_are_of_their_sets() {
        assert_eq!(
            class_pool("node=north-south"),
            Ok(Named {
                name: Class::Node,
                value: Pool::NorthSouth
            })
        );
        let error = |result: Result<Named<Spoof, SpoofAction>, String>| result.err();
        let names = "expected a rule: own-address, own-pods, loopback, martian, cluster";
        assert_eq!(error(spoof_rule("pods=drop")), Some(names.to_owned()));
        let actions = "expected an action: drop, count, off";
        assert_eq!(error(spoof_rule("cluster")), Some(actions.to_owned()));
        assert_eq!(error(spoof_rule("cluster=")), Some(actions.to_owned()));
    }

    #[test]
    fn two_values_for_one_name_are_refused() {
        let list = ["cluster=drop", "martian=off", "cluster=count"];
        let list = list.map(|text| spoof_rule(text).ok());
        let list: Vec<_> = list.into_iter().flatten().collect();
        let value = |rule| value("spoof-rule", "rule", &list, rule, Spoof::name);
        assert_eq!(value(Spoof::Martian), Ok(Some(SpoofAction::Off)));
        assert_eq!(value(Spoof::OwnPods), Ok(None));
        let error = value(Spoof::Cluster).err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(
            error.contains("--spoof-rule cluster is given twice"),
            "{error}"
        );
    }
}
