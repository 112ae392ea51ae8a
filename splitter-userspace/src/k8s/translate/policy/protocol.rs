//! What is spoken to pods: `backend-protocol`.

use crate::k8s::translate::View;
use crate::k8s::translate::report::Problems;
use crate::model::{BackendFault, Protocol};

/// The protocol, if another one than `proxy-http-version` says.
///
/// # Errors
/// A protocol that is not spoken here closes the Ingress: pods that want TLS must not be spoken to
/// in cleartext, and others would not understand a word.
pub(super) fn read(
    view: &View<'_>,
    problems: &mut Problems,
) -> Result<Option<Protocol>, BackendFault> {
    let Some(annotation) = view.annotations.get("backend-protocol") else {
        return Ok(None);
    };
    match &*annotation.value.trim().to_ascii_uppercase() {
        // What is spoken over TLS is the same.
        "HTTP" | "HTTPS" => Ok(None),
        "GRPC" => Ok(Some(Protocol::Grpc)),
        _ => {
            problems.error(
                &view.subject,
                annotation.field(),
                "protocol-unsupported",
                format!(
                    "the protocol {:?} towards pods is not supported, only HTTP, HTTPS and GRPC are",
                    annotation.value
                ),
                "every path of the Ingress answers 503",
            );
            Err(BackendFault::ProtocolUnsupported)
        }
    }
}

/// Whether pods are spoken to over TLS.
pub(super) fn is_https(view: &View<'_>) -> bool {
    let annotation = view.annotations.get("backend-protocol");
    annotation.is_some_and(|it| it.value.trim().eq_ignore_ascii_case("HTTPS"))
}
