//! Annotations that are true or false.

use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::parse_bool;
use crate::k8s::translate::report::Problems;

/// What the annotation says; `default` when it is not there, or reported and neither true nor false.
pub(super) fn read(view: &View<'_>, name: &str, default: bool, problems: &mut Problems) -> bool {
    let Some(annotation) = given(view, name, problems) else {
        return default;
    };
    if let Some(value) = parse_bool(annotation.value) {
        return value;
    }
    problems.error(
        &view.subject,
        annotation.field(),
        "flag-invalid",
        format!("{:?} is neither true nor false", annotation.value),
        format!("it counts as {default}"),
    );
    default
}
