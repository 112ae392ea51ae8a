//! `default-backend`: the Service that answers when nobody else can.

use k8s_openapi::api::networking::v1::{IngressBackend, IngressServiceBackend, ServiceBackendPort};

use super::View;
use super::backends::Backends;
use super::canary::given;
use super::report::Problems;
use crate::model::BackendKey;

/// What the port is called where the Service has none: the reference leads nowhere then.
const NO_PORT: i32 = 80;

/// The Backend of the Service in the Ingress's namespace that the annotation names, by its first
/// port. One that leads nowhere is reported, and has no Endpoint.
pub(super) fn read(
    view: &View<'_>,
    backends: &mut Backends<'_>,
    problems: &mut Problems,
) -> Option<BackendKey> {
    let annotation = given(view, "default-backend", problems)?;
    let name = annotation.value.trim();
    let namespace = &view.subject.object.namespace;
    let port = backends.first_port(namespace, name);
    let service = IngressServiceBackend {
        name: name.to_owned(),
        port: Some(ServiceBackendPort {
            name: None,
            number: Some(port.unwrap_or(NO_PORT)),
        }),
    };
    let backend = IngressBackend {
        resource: None,
        service: Some(service),
    };
    let effect = "nobody answers in the place of pods that are missing, or with error pages";
    let field = annotation.field();
    Some(backends.find(&view.subject, &backend, &field, effect, problems))
}
