//! JSON as tokens and keys are read: one object, in which no name is there twice. Parsers that take
//! the first and parsers that take the last would read two tokens (RFC 8725 does not allow it; RFC
//! 7519 4 lets us refuse).

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// An object.
pub(super) type Object = Map<String, Value>;

/// Reads an object; none if the bytes are anything else, or more than that.
pub(super) fn object(bytes: &[u8]) -> Option<Object> {
    match serde_json::from_slice(bytes).ok()? {
        Strict(Value::Object(object)) => Some(object),
        Strict(_) => None,
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Build).map(Strict)
    }
}

struct Build;

impl<'de> Visitor<'de> for Build {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without names that are there twice")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((name, Strict(value))) = members.next_entry::<String, Strict>()? {
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("a name is there twice"));
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn an_object_is_read_as_it_is() {
        let text = r#"{"a": [1, -2, 1.5, true, null, "x"], "b": {"a": {}}}"#;
        let read = object(text.as_bytes()).unwrap();
        assert_eq!(
            Value::Object(read),
            serde_json::from_str::<Value>(text).unwrap()
        );
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_none() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"x":{"a":1,"b":2,"a":3}}"#,
            r#"{"x":[{"a":1,"a":2}]}"#,
            r#"{"a":1}{}"#,
            r#"{"a":1e400}"#,
            r#"{"a":01}"#,
            r#"{"a":1,}"#,
            "[1]",
            "1",
            "",
            "\u{feff}{}",
        ] {
            assert_eq!(object(text.as_bytes()), None, "{text}");
        }
        assert_eq!(object(b"{\"a\":\"\xff\"}"), None);
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(object(deep.as_bytes()), None);
    }
}
