//! How fast an answer may go: `limit-rate`, `limit-rate-after`, both in kilobytes (of 1,024).

use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::atoi;
use crate::k8s::translate::report::Problems;
use crate::model::Pace;

const KILOBYTE: u64 = 1024;

pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<Pace> {
    let rate = kilobytes(
        view,
        "limit-rate",
        "answers go as fast as they can",
        problems,
    );
    let after = kilobytes(
        view,
        "limit-rate-after",
        "the rate counts from the start",
        problems,
    );
    let unused = view.annotations.own("limit-rate-after");
    if let (None, Some(unused)) = (view.annotations.get("limit-rate"), unused) {
        let (what, effect) = ("there is no limit-rate", "answers go as fast as they can");
        let code = "limit-unused";
        problems.warn(&view.subject, unused.field(), code, what, effect);
    }
    rate.filter(|rate| *rate > 0).map(|rate| Pace {
        rate,
        after: after.unwrap_or(0),
    })
}

/// In bytes.
fn kilobytes(view: &View<'_>, name: &str, effect: &str, problems: &mut Problems) -> Option<u64> {
    let annotation = given(view, name, problems)?;
    let number = atoi(annotation.value).and_then(|number| u64::try_from(number).ok());
    if number.is_none() {
        problems.error(
            &view.subject,
            annotation.field(),
            "limit-invalid",
            format!(
                "{:?} is no whole number of kilobytes from 0 on",
                annotation.value
            ),
            effect,
        );
    }
    number.map(|number| number.saturating_mul(KILOBYTE))
}
