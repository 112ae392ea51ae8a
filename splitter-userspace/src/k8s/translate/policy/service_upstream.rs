//! Whether the Service's own address is asked instead of its pods': `service-upstream`.

use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::parse_bool;
use crate::k8s::translate::report::Problems;

/// What an Ingress says, main or canary; none when it says nothing.
pub(in crate::k8s::translate) fn service_upstream(
    view: &View<'_>,
    problems: &mut Problems,
) -> Option<bool> {
    let annotation = given(view, "service-upstream", problems)?;
    let wanted = parse_bool(annotation.value);
    if wanted.is_none() {
        problems.error(
            &view.subject,
            annotation.field(),
            "service-upstream-invalid",
            format!("{:?} is neither true nor false", annotation.value),
            "it counts as not set",
        );
    }
    wanted
}
