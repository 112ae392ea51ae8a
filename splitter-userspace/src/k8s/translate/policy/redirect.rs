use http::HeaderValue;

use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::atoi;
use crate::k8s::translate::report::Problems;
use crate::model::Redirect;

/// Statuses that `permanent-redirect-code` and `temporal-redirect-code` may name.
const CODES: std::ops::RangeInclusive<i64> = 300..=308;

/// `temporal-redirect` before `permanent-redirect`, as in ingress-nginx, each with its code.
pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<Redirect> {
    one(view, "temporal-redirect", 302, problems)
        .or_else(|| one(view, "permanent-redirect", 301, problems))
}

fn one(view: &View<'_>, name: &str, default: u16, problems: &mut Problems) -> Option<Redirect> {
    let annotation = given(view, name, problems)?;
    let target = annotation.value.trim();
    if HeaderValue::from_str(target).is_err() || target.contains(char::is_whitespace) {
        problems.error(
            &view.subject,
            annotation.field(),
            "redirect-invalid",
            format!("{target:?} is no URL"),
            "it counts as not set: requests go to the Service",
        );
        return None;
    }
    let status = code(view, &format!("{name}-code"), default, problems);
    let target = target.into();
    Some(Redirect { target, status })
}

fn code(view: &View<'_>, name: &str, default: u16, problems: &mut Problems) -> u16 {
    let Some(annotation) = given(view, name, problems) else {
        return default;
    };
    let code = atoi(annotation.value);
    if let Some(code) = code.filter(|code| CODES.contains(code)) {
        return u16::try_from(code).unwrap_or(default);
    }
    problems.error(
        &view.subject,
        annotation.field(),
        "redirect-code-invalid",
        format!("{:?} is no status from 300 to 308", annotation.value),
        format!("{default} is sent"),
    );
    default
}
