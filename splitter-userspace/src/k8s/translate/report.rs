//! Collecting Problems.

use crate::model::{ObjectRef, Problem, Severity};

/// The object that is being looked at.
#[derive(Clone, Debug)]
pub(super) struct Subject<'a> {
    pub object: ObjectRef,
    pub source: &'a str,
}

/// The Problems found so far.
#[derive(Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    /// Something is left out or answers with an error.
    pub(super) fn error(
        &mut self,
        subject: &Subject<'_>,
        field: impl Into<String>,
        code: &'static str,
        message: impl Into<String>,
        effect: impl Into<String>,
    ) {
        let texts = [field.into(), message.into(), effect.into()];
        self.add(Severity::Error, subject, code, texts);
    }

    /// It works, but not as somebody might expect.
    pub(super) fn warn(
        &mut self,
        subject: &Subject<'_>,
        field: impl Into<String>,
        code: &'static str,
        message: impl Into<String>,
        effect: impl Into<String>,
    ) {
        let texts = [field.into(), message.into(), effect.into()];
        self.add(Severity::Warning, subject, code, texts);
    }

    fn add(
        &mut self,
        severity: Severity,
        subject: &Subject<'_>,
        code: &'static str,
        [field, message, effect]: [String; 3],
    ) {
        self.0.push(Problem {
            severity,
            object: subject.object.clone(),
            source: subject.source.to_owned(),
            field,
            code,
            message,
            effect,
        });
    }

    /// All of them in the order of [`sort`].
    pub(super) fn into_sorted(self) -> Vec<Problem> {
        let mut all = self.0;
        sort(&mut all);
        all
    }
}

/// Sorts Problems by object and field, whatever the order in which they were found, each once.
pub(super) fn sort(problems: &mut Vec<Problem>) {
    problems.sort_by(|a, b| {
        let rest = |it: &Problem| (it.code, it.severity);
        (&a.object, &a.source, &a.field, &a.message)
            .cmp(&(&b.object, &b.source, &b.field, &b.message))
            .then_with(|| rest(a).cmp(&rest(b)))
            .then_with(|| a.effect.cmp(&b.effect))
    });
    problems.dedup();
}
