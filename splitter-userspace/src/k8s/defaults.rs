//! Reading [`Defaults`] from text: a ConfigMap manifest, or keys and values alone.

use serde_norway::{Mapping, Value};

use crate::config::Defaults;

/// Reads a ConfigMap, or `key: value` lines. `source` is the file, for Problems.
///
/// # Errors
/// When the text is neither.
pub fn read_defaults(source: &str, text: &str) -> Result<Defaults, String> {
    let document: Value = serde_norway::from_str(text)
        .map_err(|error| format!("{source} is not YAML with one document: {error}"))?;
    let mut defaults = Defaults {
        name: source.to_owned(),
        source: source.to_owned(),
        ..Defaults::default()
    };
    let Value::Mapping(top) = document else {
        return match document {
            Value::Null => Ok(defaults),
            _ => Err(format!(
                "{source} is neither a ConfigMap nor keys with values"
            )),
        };
    };
    let values = if top.get("kind").is_some() {
        config_map(source, &top, &mut defaults)?
    } else {
        Some(&top)
    };
    for (key, value) in values.into_iter().flatten() {
        let (Some(key), Some(value)) = (scalar(key), scalar(value)) else {
            return Err(format!("{source}: {key:?} is no key with a plain value"));
        };
        defaults.values.insert(key, value);
    }
    Ok(defaults)
}

fn config_map<'a>(
    source: &str,
    top: &'a Mapping,
    defaults: &mut Defaults,
) -> Result<Option<&'a Mapping>, String> {
    let kind = top.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind != "ConfigMap" {
        return Err(format!("{source} holds a {kind}, not a ConfigMap"));
    }
    let metadata = top.get("metadata").and_then(Value::as_mapping);
    let text = |name: &str| {
        let value = metadata.and_then(|it| it.get(name));
        value.and_then(Value::as_str).map(str::to_owned)
    };
    defaults.namespace = text("namespace").unwrap_or_else(|| "default".to_owned());
    defaults.name = text("name").unwrap_or_else(|| source.to_owned());
    match top.get("data") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Mapping(data)) => Ok(Some(data)),
        Some(_) => Err(format!("{source}: data is no mapping")),
    }
}

/// A value as it would stand in a ConfigMap, where all are text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        Value::Null => Some(String::new()),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_and_plain_lines_say_the_same() {
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nginx, namespace: ingress}\n\
                   data:\n  proxy-body-size: 8m\n  proxy-read-timeout: \"30\"\n";
        let map = read_defaults("f.yaml", map).unwrap();
        assert_eq!(
            (map.namespace.as_str(), map.name.as_str()),
            ("ingress", "nginx")
        );
        let plain = "proxy-body-size: 8m\nproxy-read-timeout: 30\n";
        let plain = read_defaults("f.yaml", plain).unwrap();
        assert_eq!(
            (plain.namespace.as_str(), plain.name.as_str()),
            ("", "f.yaml")
        );
        assert_eq!(plain.values, map.values);
        assert_eq!(map.values["proxy-read-timeout"], "30");
    }

    #[test]
    fn nothing_is_nothing() {
        for text in [
            "",
            "# none\n",
            "kind: ConfigMap\n",
            "kind: ConfigMap\ndata:\n",
        ] {
            assert!(
                read_defaults("f", text).unwrap().values.is_empty(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_something_else_is_an_error() {
        for text in [
            "- a",
            "just text",
            "a: [1]",
            "a: {b: c}",
            "kind: Secret\ndata: {}",
            "kind: ConfigMap\ndata: [1]",
            "a: b\n---\nc: d",
            "a: b: c",
        ] {
            let error = read_defaults("f.yaml", text).unwrap_err();
            assert!(error.contains("f.yaml"), "{text}: {error}");
        }
    }
}
