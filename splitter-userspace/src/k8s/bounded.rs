//! YAML values of a bounded size.
//!
//! A few kilobytes of YAML can stand for gigabytes (aliases of aliases), and can keep the parser
//! busy for hours (brackets in brackets). Both end here with an error.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_norway::{Error, Mapping, Value};

/// The most brackets that may be open at a time, those in quotes counted too: the parser's time
/// grows with their square.
pub(super) const MAX_OPEN_BRACKETS: usize = 2_000;

/// A node that is written out takes a byte of text at least. More
/// nodes than bytes come from aliases, of which this many are for free.
const FREE_NODES: usize = 10_000;

/// Parses one document.
///
/// # Errors
/// When it is not YAML, has a key twice, or stands for much more than its text.
pub(super) fn parse(text: &str) -> Result<Value, Error> {
    if open_brackets(text) > MAX_OPEN_BRACKETS {
        let message = format!("more than {MAX_OPEN_BRACKETS} brackets are open at a time");
        return Err(Error::custom(message));
    }
    let left = Cell::new(text.len() + FREE_NODES);
    let mut value = Node(&left).deserialize(serde_norway::Deserializer::from_str(text))?;
    value.apply_merge()?;
    Ok(value)
}

fn open_brackets(text: &str) -> usize {
    let mut open = 0usize;
    let mut most = 0;
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => continue,
        }
        most = most.max(open);
    }
    most
}

/// Reads one node, and with it everything below, out of a common budget of nodes.
#[derive(Clone, Copy)]
struct Node<'a>(&'a Cell<usize>);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.0.get().checked_sub(1);
        let left =
            left.ok_or_else(|| D::Error::custom("aliases make it far larger than its text"))?;
        self.0.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without a tag of its own")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
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

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut sequence = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            sequence.push(item);
        }
        Ok(Value::Sequence(sequence))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut mapping = Mapping::new();
        while let Some(key) = fields.next_key_seed(self)? {
            if mapping.contains_key(&key) {
                let shown = key.as_str().unwrap_or("…");
                return Err(A::Error::custom(format!(
                    "the key {shown:?} is there twice"
                )));
            }
            let value = fields.next_value_seed(self)?;
            mapping.insert(key, value);
        }
        Ok(Value::Mapping(mapping))
    }
}
