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
        "GRPC" | "GRPCS" => Ok(Some(Protocol::Grpc)),
        _ => {
            problems.error(
                &view.subject,
                annotation.field(),
                "protocol-unsupported",
                format!(
                    "the protocol {:?} towards pods is not supported, only HTTP, HTTPS, GRPC and GRPCS \
                     are",
                    annotation.value
                ),
                "every path of the Ingress answers 503",
            );
            Err(BackendFault::ProtocolUnsupported)
        }
    }
}

/// What is spoken to pods over TLS, if anything is.
pub(super) fn over_tls(view: &View<'_>) -> Option<Protocol> {
    let annotation = view.annotations.get("backend-protocol")?;
    match &*annotation.value.trim().to_ascii_uppercase() {
        "HTTPS" => Some(Protocol::Http11),
        "GRPCS" => Some(Protocol::Grpc),
        _ => None,
    }
}
