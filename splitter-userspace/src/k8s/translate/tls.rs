//! The Secrets that Ingresses name for TLS.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::Secret;

use super::View;
use super::report::Problems;
use crate::k8s::{Objects, Sourced};

/// The Secrets by namespace and name.
pub(super) struct Secrets<'a>(HashMap<(&'a str, &'a str), &'a Sourced<Secret>>);

impl<'a> Secrets<'a> {
    pub(super) fn index(objects: &'a Objects) -> Self {
        let secrets = objects.secrets.iter();
        Secrets(
            secrets
                .map(|it| ((it.namespace(), it.name()), it))
                .collect(),
        )
    }

    /// Reports the Secrets of `spec.tls` that are missing or hold no certificate and key.
    pub(super) fn check(&self, view: &View<'_>, problems: &mut Problems) {
        let entries = view.spec().and_then(|it| it.tls.as_ref());
        if entries.is_some_and(|it| !it.is_empty()) {
            problems.warn(
                &view.subject,
                "spec.tls",
                "tls-unsupported",
                "TLS is not terminated yet",
                "its hosts are served over cleartext HTTP, without a redirect to https",
            );
        }
        for (index, entry) in entries.into_iter().flatten().enumerate() {
            let name = entry.secret_name.as_deref().unwrap_or("");
            if name.is_empty() {
                continue;
            }
            let namespace = &*view.subject.object.namespace;
            let (code, fault) = match self.0.get(&(namespace, name)) {
                None => (
                    "secret-not-found",
                    format!("there is no Secret {namespace}/{name}"),
                ),
                Some(secret) => match unusable(&secret.object) {
                    Some(why) => (
                        "secret-invalid",
                        format!("Secret {namespace}/{name}: {why}"),
                    ),
                    None => continue,
                },
            };
            let field = format!("spec.tls[{index}].secretName");
            let effect = "its hosts have no certificate; cleartext HTTP works";
            problems.error(&view.subject, field, code, fault, effect);
        }
    }
}

/// What keeps a Secret from being a certificate with its key; never with a part of its content.
fn unusable(secret: &Secret) -> Option<&'static str> {
    let holds = |key: &str, begin: &str, end: &str| {
        let data = secret
            .data
            .as_ref()
            .and_then(|it| it.get(key))
            .map(|it| it.0.as_slice());
        let text = secret
            .string_data
            .as_ref()
            .and_then(|it| it.get(key))
            .map(|it| it.as_bytes());
        // The API server lets stringData win.
        let pem = text.or(data).and_then(|it| std::str::from_utf8(it).ok());
        pem.is_some_and(|pem| pem.find(begin).is_some_and(|at| pem[at..].contains(end)))
    };
    if !holds(
        "tls.crt",
        "-----BEGIN CERTIFICATE-----",
        "-----END CERTIFICATE-----",
    ) {
        return Some("tls.crt is no certificate in PEM");
    }
    if !holds("tls.key", "PRIVATE KEY-----", "-----END ") {
        return Some("tls.key is no private key in PEM");
    }
    None
}
