//! TLS towards pods: `backend-protocol: HTTPS` or `GRPCS`, and `proxy-ssl-*`. What cannot be read closes the
//! Ingress: pods are never spoken to in cleartext instead, nor without the proof that is asked for.

use std::net::IpAddr;
use std::sync::Arc;

use super::{protocol, tls_terms};
use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::host;
use crate::k8s::translate::report::Problems;
use crate::model::{BackendFault, HostPattern, ObjectRef, Protocol, TlsTerms, UpstreamTls};

const SECRET: &str = "proxy-ssl-secret";
const VERIFY: &str = "proxy-ssl-verify";
const NAME: &str = "proxy-ssl-name";
const SERVER_NAME: &str = "proxy-ssl-server-name";
const DEPTH: &str = "proxy-ssl-verify-depth";
const PROTOCOLS: &str = "proxy-ssl-protocols";
const CIPHERS: &str = "proxy-ssl-ciphers";

/// All of them.
const KEYS: [&str; 7] = [SECRET, VERIFY, NAME, SERVER_NAME, DEPTH, PROTOCOLS, CIPHERS];

/// Of more nobody knows a chain, and the library follows no more.
const DEPTH_MAX: u8 = 6;

/// How TLS is spoken with pods, if it is.
///
/// # Errors
/// When it cannot be told what a pod must prove, or to whom.
pub(super) fn read(
    view: &View<'_>,
    problems: &mut Problems,
) -> Result<Option<UpstreamTls>, BackendFault> {
    let Some(spoken) = protocol::over_tls(view) else {
        report_unused(view, problems);
        return Ok(None);
    };
    let asked = switch(view, VERIFY, problems)?;
    let tls = UpstreamTls {
        verify: asked || view.strict_pods,
        depth: depth(view, problems)?,
        terms: terms(view, problems),
        server_name: switch(view, SERVER_NAME, problems)?,
        name: name(view, problems)?,
        secret: secret(view, problems)?,
        http2: spoken == Protocol::Grpc,
    };
    // With `--upstream-tls-verify` it need not be there.
    let verify = view.annotations.get(VERIFY);
    let verify = verify.or_else(|| view.annotations.get("backend-protocol"));
    if tls.verify
        && let Some(annotation) = verify
    {
        let holds = |secret: &ObjectRef| view.secrets.holds(secret, "ca.crt");
        if !tls.secret.as_ref().is_some_and(holds) {
            let what = format!("there is no {SECRET} with a ca.crt, so nobody vouches for pods");
            return Err(close(view, annotation, what, problems));
        }
        if tls.name.is_none() {
            let what = format!("there is no {NAME}, so no pod's certificate is for the right name");
            return Err(close(view, annotation, what, problems));
        }
    }
    if tls.server_name
        && tls.name.is_none()
        && let Some(it) = view.annotations.get(SERVER_NAME)
    {
        let what = format!("there is no {NAME}");
        let effect = "pods are told no name";
        let code = "upstream-tls-unnamed";
        problems.warn(&view.subject, it.field(), code, what, effect);
    }
    Ok(Some(tls))
}

/// Says that pods prove nothing where TLS is not spoken with them.
fn report_unused(view: &View<'_>, problems: &mut Problems) {
    let says = |it: &Annotation<'_>| it.value.trim() != "off";
    let unused = KEYS.iter().filter_map(|key| view.annotations.own(key));
    if let Some(unused) = unused.into_iter().find(says) {
        let what = "backend-protocol is neither HTTPS nor GRPCS";
        let effect =
            "pods are spoken to in cleartext, and what is said of TLS with them is ignored";
        let code = "upstream-tls-unused";
        problems.warn(&view.subject, unused.field(), code, what, effect);
    }
}

fn switch(view: &View<'_>, key: &str, problems: &mut Problems) -> Result<bool, BackendFault> {
    let Some(annotation) = view.annotations.get(key) else {
        return Ok(false);
    };
    match annotation.value.trim() {
        "on" => Ok(true),
        "off" => Ok(false),
        other => {
            let what = format!("{other:?} is neither on nor off");
            Err(close(view, annotation, what, problems))
        }
    }
}

fn depth(view: &View<'_>, problems: &mut Problems) -> Result<u8, BackendFault> {
    let Some(annotation) = view.annotations.get(DEPTH) else {
        return Ok(1);
    };
    let depth = annotation.value.trim().parse().ok();
    depth
        .filter(|it| (1..=DEPTH_MAX).contains(it))
        .ok_or_else(|| {
            let what = format!("{:?} is no number from 1 to {DEPTH_MAX}", annotation.value);
            close(view, annotation, what, problems)
        })
}

fn terms(view: &View<'_>, problems: &mut Problems) -> TlsTerms {
    let versions = given(view, PROTOCOLS, problems);
    let suites = given(view, CIPHERS, problems);
    let versions = versions.and_then(|it| tls_terms::versions(view, it, problems));
    let versions = versions.unwrap_or_default();
    let suites = suites.and_then(|it| tls_terms::suites(view, it, versions, problems));
    TlsTerms {
        versions,
        suites: suites.unwrap_or_default(),
        server_order: false,
    }
}

fn name(view: &View<'_>, problems: &mut Problems) -> Result<Option<Arc<str>>, BackendFault> {
    let Some(annotation) = view.annotations.get(NAME) else {
        return Ok(None);
    };
    let value = annotation.value.trim();
    if let Ok(address) = value.parse::<IpAddr>() {
        return Ok(Some(address.to_string().into()));
    }
    match host::parse(value) {
        Ok(HostPattern::Exact(name)) => Ok(Some(name)),
        _ => {
            let what = format!("{value:?} is neither a DNS name nor an IP address");
            Err(close(view, annotation, what, problems))
        }
    }
}

fn secret(view: &View<'_>, problems: &mut Problems) -> Result<Option<ObjectRef>, BackendFault> {
    let Some(annotation) = view.annotations.get(SECRET) else {
        return Ok(None);
    };
    let value = annotation.value.trim();
    let own = &*view.subject.object.namespace;
    let what = match value.split_once('/') {
        None => format!("{value:?} is not NAMESPACE/NAME of a Secret"),
        Some((namespace, _)) if namespace != own => {
            format!("the Secret {value} is not in the Ingress's own namespace {own}")
        }
        Some((namespace, name)) => match view.secrets.take(namespace, name) {
            Some(secret) => return Ok(Some(secret)),
            None => format!("there is no Secret {value}"),
        },
    };
    Err(close(view, annotation, what, problems))
}

fn close(
    view: &View<'_>,
    annotation: Annotation<'_>,
    what: String,
    problems: &mut Problems,
) -> BackendFault {
    problems.error(
        &view.subject,
        annotation.field(),
        "upstream-tls-invalid",
        what,
        "every path of the Ingress answers 503, as it cannot be told whom to trust",
    );
    BackendFault::UpstreamTlsInvalid
}
