//! What is changed in the answers of pods on their way to the client.

use http::{HeaderName, HeaderValue};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::Template;
use crate::model::Pattern;

/// Texts in answers of pods that become others. At least one is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AnswerEdits {
    /// The beginning of Location, and of the URL in Refresh (`proxy-redirect-from`, `-to`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Replace>,
    /// The Domain of cookies, without a dot before it (`proxy-cookie-domain`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookie_domain: Option<Replace>,
    /// The beginning of the Path of cookies (`proxy-cookie-path`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookie_path: Option<Replace>,
}

/// One text in place of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replace {
    /// What is looked for.
    pub from: Sought,
    /// What stands there instead: of a text, in its place; of a pattern, in place of the whole value.
    pub to: Template,
}

/// What is looked for in a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sought {
    /// What it begins with; nothing else, of a domain.
    Text(Template),
    /// A pattern that matches anywhere in it.
    Pattern(Pattern),
}

impl Serialize for Sought {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Sought::Text(text) => text.serialize(serializer),
            Sought::Pattern(pattern) => {
                serializer.collect_str(&format_args!("~{}", pattern.as_str()))
            }
        }
    }
}

/// Fields that every answer of a Location has, the proxy's own included; they replace the pod's
/// (`custom-headers`). Sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomHeaders(pub Vec<(HeaderName, HeaderValue)>);

impl CustomHeaders {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for CustomHeaders {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name.as_str(), &String::from_utf8_lossy(value.as_bytes()))?;
        }
        map.end()
    }
}

/// How fast one answer may go to its client (`limit-rate`, `limit-rate-after`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Pace {
    /// Bytes a second, at least 1.
    pub rate: u64,
    /// Bytes that go before the rate counts.
    pub after: u64,
}
