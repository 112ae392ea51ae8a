use std::fmt;

use serde::Serialize;

use super::ObjectRef;

/// How bad a [`Problem`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Works, but not as somebody might expect.
    Warning,
    /// A part of the object is left out or answers with an error.
    Error,
}

/// A fault in one object. Everything that the fault does not touch keeps working.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Whose fault it is.
    pub object: ObjectRef,
    /// Where the object was read from, e.g. `shop/ingress.yaml#2` (second document); empty when it
    /// came from the API server.
    pub source: String,
    /// The field, e.g. `spec.rules[0].http.paths[1].backend`; empty for the object as a whole.
    pub field: String,
    /// A fixed name for this kind of fault, e.g. `service-not-found`: for tests, metrics, Events.
    pub code: &'static str,
    /// What is wrong, with the value that is wrong.
    pub message: String,
    /// What happens instead.
    pub effect: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{level}: {}", self.object)?;
        if !self.source.is_empty() {
            write!(f, " ({})", self.source)?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}; {}", self.message, self.effect)
    }
}
