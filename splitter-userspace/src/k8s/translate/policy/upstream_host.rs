use std::sync::Arc;

use http::HeaderValue;
use http::uri::Authority;

use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::report::Problems;

/// `upstream-vhost`: the Host that the pods see.
pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<Arc<str>> {
    let annotation = given(view, "upstream-vhost", problems)?;
    let value = annotation.value.trim();
    if HeaderValue::from_str(value).is_ok() && value.parse::<Authority>().is_ok() {
        return Some(value.into());
    }
    problems.error(
        &view.subject,
        annotation.field(),
        "upstream-vhost-invalid",
        format!("{value:?} is no host name, with or without a port"),
        "it counts as not set: the pods see the client's Host",
    );
    None
}
