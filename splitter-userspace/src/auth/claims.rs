//! What a token says, for those who ask for it by name.

use std::borrow::Cow;

use http::HeaderValue;
use serde_json::Value;

use super::Verified;
use crate::model::{ClaimPath, ClaimTest};

/// Claims that are a list in one text, with blanks between (RFC 8693 4.2, RFC 9068).
const LISTS: [&str; 2] = ["scope", "scp"];

impl Verified {
    fn claim(&self, path: &ClaimPath) -> Option<&Value> {
        let (first, rest) = path.names.split_first()?;
        let first = self.claims.get(&**first)?;
        rest.iter()
            .try_fold(first, |value, name| value.get(&**name))
    }

    /// Whether a claim is what it must be.
    pub(super) fn passes(&self, test: &ClaimTest) -> bool {
        let wanted = |text: &str| test.values.iter().any(|it| **it == *text);
        match self.claim(&test.claim) {
            Some(Value::Array(list)) => list.iter().filter_map(text).any(|it| wanted(&it)),
            Some(Value::String(list)) if LISTS.contains(&&*test.claim.text) => {
                list.split_ascii_whitespace().any(wanted)
            }
            Some(value) => text(value).is_some_and(|it| wanted(&it)),
            None => false,
        }
    }

    /// A claim as the value of a header, the parts of a list with commas between. None when it is not
    /// there, is more than a list, or could be taken for something else: a part with a comma in it.
    pub fn header(&self, path: &ClaimPath) -> Option<HeaderValue> {
        let value = self.claim(path)?;
        let text = match value {
            Value::Array(list) => {
                let parts: Option<Vec<_>> = list.iter().map(text).collect();
                let parts = parts.filter(|parts| !parts.iter().any(|it| it.contains(',')))?;
                Cow::Owned(parts.join(","))
            }
            value => text(value)?,
        };
        // Of other bytes pods make what they like.
        let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        HeaderValue::from_str(&text).ok().filter(|_| plain)
    }
}

/// What is no list and no object.
fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(flag) => Some(Cow::Borrowed(if *flag { "true" } else { "false" })),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
