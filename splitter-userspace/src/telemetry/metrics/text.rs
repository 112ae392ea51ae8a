use std::fmt::Write as _;

use super::Family;
use crate::model::LocationKey;
use crate::telemetry::side::{host_label, path_type};

/// Writes Prometheus' text format (version 0.0.4).
pub struct Text {
    out: String,
    /// The labels that ingress-nginx's families carry, already written out.
    controller: String,
}

/// Label pairs written out, without braces: `a="1",b="2"`.
#[derive(Clone, Debug, Default)]
pub struct Labels(String);

impl Labels {
    /// The constant labels that every sample of `family` carries.
    pub fn of(family: &Family, text: &Text) -> Self {
        if family.has_controller_labels() {
            Labels(text.controller.clone())
        } else {
            Labels::default()
        }
    }

    /// Adds `host`, `path` and `path_type` as our own families have them.
    pub fn push_location(&mut self, key: &LocationKey) {
        self.push("host", &host_label(&key.host));
        self.push("path", &key.path);
        self.push("path_type", path_type(key.kind));
    }

    /// Adds a pair.
    pub fn push(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(name);
        self.0.push_str("=\"");
        escape(&mut self.0, value, true);
        self.0.push('"');
    }
}

impl Text {
    /// An empty page; `controller` are the constant labels of ingress-nginx's families.
    pub(super) fn new(controller: &Labels) -> Self {
        Text {
            out: String::with_capacity(16 * 1024),
            controller: controller.0.clone(),
        }
    }

    /// The page so far.
    pub fn into_string(self) -> String {
        self.out
    }

    /// Begins a family. Its samples must follow without another family between them.
    pub fn family(&mut self, family: &Family) {
        self.out.push_str("# HELP ");
        self.out.push_str(family.name);
        self.out.push(' ');
        escape(&mut self.out, family.help, false);
        let kind = family.kind.as_str();
        // Writing to a String cannot fail.
        let _ = write!(self.out, "\n# TYPE {} {kind}\n", family.name);
    }

    /// One sample of a whole number.
    pub fn sample(&mut self, family: &Family, labels: &Labels, value: u64) {
        self.line(family.name, "", labels, None);
        let _ = writeln!(self.out, "{value}");
    }

    /// One sample of any number.
    pub fn sample_f64(&mut self, family: &Family, labels: &Labels, value: f64) {
        self.line(family.name, "", labels, None);
        let _ = writeln!(self.out, "{value}");
    }

    pub(super) fn signed(&mut self, family: &Family, labels: &Labels, value: u64, signed: bool) {
        self.line(family.name, "", labels, None);
        let _ = if signed {
            writeln!(self.out, "{}", value.cast_signed())
        } else {
            writeln!(self.out, "{value}")
        };
    }

    /// One histogram: `counts` are per bucket, not yet added up, the last one without a bound.
    pub(super) fn histogram(
        &mut self,
        family: &Family,
        labels: &Labels,
        bounds: &[&str],
        counts: &[u64],
        sum: f64,
    ) {
        let mut total = 0u64;
        let bounds = bounds.iter().copied().chain(["+Inf"]);
        for (bound, count) in bounds.zip(counts) {
            total = total.wrapping_add(*count);
            self.line(family.name, "_bucket", labels, Some(bound));
            let _ = writeln!(self.out, "{total}");
        }
        self.line(family.name, "_sum", labels, None);
        let _ = writeln!(self.out, "{sum}");
        self.line(family.name, "_count", labels, None);
        let _ = writeln!(self.out, "{total}");
    }

    /// Everything of a sample's line before its value.
    fn line(&mut self, name: &str, suffix: &str, labels: &Labels, bound: Option<&str>) {
        self.out.push_str(name);
        self.out.push_str(suffix);
        if !labels.0.is_empty() || bound.is_some() {
            self.out.push('{');
            self.out.push_str(&labels.0);
            if let Some(bound) = bound {
                if !labels.0.is_empty() {
                    self.out.push(',');
                }
                self.out.push_str("le=\"");
                self.out.push_str(bound);
                self.out.push('"');
            }
            self.out.push('}');
        }
        self.out.push(' ');
    }
}

/// Backslash and line feed are escaped everywhere, quotes in label values only.
fn escape(out: &mut String, value: &str, quotes: bool) {
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            c => out.push(c),
        }
    }
}
