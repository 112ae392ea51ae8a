use http::HeaderValue;

use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::atoi;
use crate::k8s::translate::report::Problems;
use crate::model::{Redirect, Template};

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
    let read = match Template::parse(target) {
        Err(error) => Err(format!("{target:?}: {error}")),
        Ok(_) if HeaderValue::from_str(target).is_err() || target.contains(char::is_whitespace) => {
            Err(format!("{target:?} is no URL"))
        }
        Ok(target) => Ok(target),
    };
    match read {
        Ok(target) => Some(Redirect {
            target,
            status: code(view, &format!("{name}-code"), default, problems),
            cut_slash: false,
        }),
        Err(why) => {
            let effect = "it counts as not set: requests go to the Service";
            let field = annotation.field();
            problems.error(&view.subject, field, "redirect-invalid", why, effect);
            None
        }
    }
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
