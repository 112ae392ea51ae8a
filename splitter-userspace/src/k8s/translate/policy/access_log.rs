//! Which requests are logged: `enable-access-log`.

use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::parse_bool;
use crate::k8s::translate::report::Problems;

/// Whether the Ingress's requests are left out of the access log.
pub(super) fn is_off(view: &View<'_>, problems: &mut Problems) -> bool {
    let Some(annotation) = given(view, "enable-access-log", problems) else {
        return false;
    };
    let on = parse_bool(annotation.value);
    if on.is_none() {
        problems.error(
            &view.subject,
            annotation.field(),
            "access-log-invalid",
            format!("{:?} is neither true nor false", annotation.value),
            "it counts as not set: requests are logged",
        );
    }
    on == Some(false)
}
