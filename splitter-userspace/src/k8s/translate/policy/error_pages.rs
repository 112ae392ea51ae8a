//! `custom-http-errors`, `disable-proxy-intercept-errors`.

use std::collections::BTreeSet;

use super::flag;
use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::atoi;
use crate::k8s::translate::report::Problems;
use crate::model::ErrorPages;

/// Statuses that can be replaced, as in nginx.
const CODES: std::ops::RangeInclusive<i64> = 300..=599;

pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<ErrorPages> {
    let intercept = !flag::read(view, "disable-proxy-intercept-errors", false, problems);
    let annotation = given(view, "custom-http-errors", problems)?;
    let mut codes = BTreeSet::new();
    for text in annotation.value.split(',').map(str::trim) {
        let code = atoi(text).filter(|code| CODES.contains(code));
        if let Some(code) = code.and_then(|code| u16::try_from(code).ok()) {
            codes.insert(code);
            continue;
        }
        problems.error(
            &view.subject,
            annotation.field(),
            "error-code-invalid",
            format!("{text:?} is no status from 300 to 599"),
            "it is left out, the others are replaced",
        );
    }
    if codes.is_empty() {
        return None;
    }
    if view.annotations.get("default-backend").is_none() {
        problems.warn(
            &view.subject,
            annotation.field(),
            "error-pages-missing",
            "there is no default-backend to take the pages from",
            "answers are passed on as they are",
        );
        return None;
    }
    Some(ErrorPages {
        codes: codes.into_iter().collect(),
        intercept,
    })
}
