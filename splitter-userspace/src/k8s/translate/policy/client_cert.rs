//! `auth-tls-*`: who may call, by certificate. What cannot be read closes the Ingress: ingress-nginx
//! opens it in some of these cases.

use std::sync::Arc;

use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::golang::parse_bool;
use crate::k8s::translate::pattern;
use crate::k8s::translate::report::Problems;
use crate::model::{BackendFault, ClientCert, ClientVerify, Identities, ObjectRef, Pattern};

const SECRET: &str = "auth-tls-secret";
const VERIFY: &str = "auth-tls-verify-client";
const DEPTH: &str = "auth-tls-verify-depth";
const MATCH: &str = "auth-tls-match-cn";
const PAGE: &str = "auth-tls-error-page";
const PASS: &str = "auth-tls-pass-certificate-to-upstream";

const IDENTITIES: &str = "auth-tls-allowed-identities";

/// All of them but [`IDENTITIES`], which is read under our own prefix only.
const KEYS: [&str; 6] = [SECRET, VERIFY, DEPTH, MATCH, PAGE, PASS];

/// Of more nobody knows a chain, and the library follows no more.
const DEPTH_MAX: u8 = 6;

/// Reads the annotations.
///
/// # Errors
/// When it cannot be told who may call.
pub(super) fn read(
    view: &View<'_>,
    problems: &mut Problems,
) -> Result<Option<ClientCert>, BackendFault> {
    let Some(first) = first(view) else {
        return Ok(None);
    };
    let Some(verify) = verify(view, problems) else {
        let named = view.annotations.get(IDENTITIES);
        let Some(named) = named.filter(|it| it.is_own()) else {
            return Ok(None);
        };
        let what = format!("{VERIFY} is off, so nobody can show one of these names");
        return Err(close(view, named, what, problems));
    };
    let authorities = authorities(view, first, problems)?;
    Ok(Some(ClientCert {
        authorities,
        verify,
        depth: depth(view, problems),
        common_name: common_name(view, problems)?,
        identities: identities(view, problems)?,
        error_page: error_page(view, problems),
        pass: pass(view, problems),
    }))
}

/// Whether an Ingress asks clients for a certificate.
pub(in crate::k8s::translate) fn asks_for_certificate(view: &View<'_>) -> bool {
    let off = view.annotations.get(VERIFY);
    let off = off.is_some_and(|it| it.value.trim() == "off");
    !off && first(view).is_some()
}

fn first<'a>(view: &View<'a>) -> Option<Annotation<'a>> {
    let mut keys = KEYS.iter();
    keys.find_map(|key| view.annotations.get(key))
        .or_else(|| view.annotations.get(IDENTITIES).filter(|it| it.is_own()))
}

/// None when no certificate is asked for.
fn verify(view: &View<'_>, problems: &mut Problems) -> Option<ClientVerify> {
    let Some(annotation) = view.annotations.get(VERIFY) else {
        return Some(ClientVerify::On);
    };
    match annotation.value.trim() {
        "off" => None,
        "on" => Some(ClientVerify::On),
        "optional" => Some(ClientVerify::Optional),
        "optional_no_ca" => Some(ClientVerify::OptionalNoCa),
        other => {
            let what = format!("{other:?} is none of on, off, optional, optional_no_ca");
            warn(view, annotation, what, "it counts as on", problems);
            Some(ClientVerify::On)
        }
    }
}

fn authorities(
    view: &View<'_>,
    first: Annotation<'_>,
    problems: &mut Problems,
) -> Result<ObjectRef, BackendFault> {
    let Some(annotation) = view.annotations.get(SECRET) else {
        let what = format!("there is no {SECRET}, so nobody's certificate is good");
        return Err(close(view, first, what, problems));
    };
    let value = annotation.value.trim();
    let own = &*view.subject.object.namespace;
    let Some((namespace, name)) = value.split_once('/') else {
        let what = format!("{value:?} is not NAMESPACE/NAME of a Secret");
        return Err(close(view, annotation, what, problems));
    };
    if namespace != own {
        let what = format!("the Secret {value} is not in the Ingress's own namespace {own}");
        return Err(close(view, annotation, what, problems));
    }
    let Some(secret) = view.secrets.take(namespace, name) else {
        let what = format!("there is no Secret {value}");
        return Err(close(view, annotation, what, problems));
    };
    if !view.secrets.holds(&secret, "ca.crt") {
        let what = format!("the Secret {value} has no ca.crt");
        return Err(close(view, annotation, what, problems));
    }
    Ok(secret)
}

fn depth(view: &View<'_>, problems: &mut Problems) -> u8 {
    let Some(annotation) = view.annotations.get(DEPTH) else {
        return 1;
    };
    let depth = annotation.value.trim().parse().ok();
    depth
        .filter(|it| (1..=DEPTH_MAX).contains(it))
        .unwrap_or_else(|| {
            let what = format!("{:?} is no number from 1 to {DEPTH_MAX}", annotation.value);
            warn(view, annotation, what, "it counts as 1", problems);
            1
        })
}

/// The pattern is for the whole common name; ingress-nginx looks for it anywhere in the subject, so
/// that `CN=admin` fits an organisation of that name.
fn common_name(view: &View<'_>, problems: &mut Problems) -> Result<Option<Pattern>, BackendFault> {
    let Some(annotation) = view.annotations.get(MATCH) else {
        return Ok(None);
    };
    let value = annotation.value.trim();
    let Some(text) = value.strip_prefix("CN=") else {
        let what = format!("{value:?} does not begin with CN=");
        return Err(close(view, annotation, what, problems));
    };
    match pattern::compile(text).and_then(|_| pattern::compile(&format!("^(?:{text})$"))) {
        Ok(pattern) => Ok(Some(pattern)),
        Err(why) => {
            let what = format!("{value:?} is no pattern: {why}");
            Err(close(view, annotation, what, problems))
        }
    }
}

fn identities(
    view: &View<'_>,
    problems: &mut Problems,
) -> Result<Option<Identities>, BackendFault> {
    let annotation = view.annotations.get(IDENTITIES);
    let Some(annotation) = annotation.filter(|it| it.is_own()) else {
        return Ok(None);
    };
    let read = Identities::parse(annotation.value).map(Some);
    read.map_err(|why| close(view, annotation, why.to_string(), problems))
}

fn error_page(view: &View<'_>, problems: &mut Problems) -> Option<Arc<str>> {
    let annotation = view.annotations.get(PAGE)?;
    let value = annotation.value.trim();
    let absolute = value.starts_with("https://") || value.starts_with("http://");
    if absolute && http::HeaderValue::from_str(value).is_ok() {
        return Some(value.into());
    }
    let what = format!("{value:?} is no URL of http or https");
    warn(
        view,
        annotation,
        what,
        "who has no good certificate gets a 400",
        problems,
    );
    None
}

fn pass(view: &View<'_>, problems: &mut Problems) -> bool {
    let Some(annotation) = view.annotations.get(PASS) else {
        return false;
    };
    parse_bool(annotation.value.trim()).unwrap_or_else(|| {
        let what = format!("{:?} is neither true nor false", annotation.value);
        warn(
            view,
            annotation,
            what,
            "the certificate is not passed on",
            problems,
        );
        false
    })
}

fn warn(
    view: &View<'_>,
    annotation: Annotation<'_>,
    what: String,
    effect: &str,
    problems: &mut Problems,
) {
    let code = "client-cert-invalid";
    problems.warn(&view.subject, annotation.field(), code, what, effect);
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
        "client-cert-invalid",
        what,
        "every path of the Ingress answers 503, as nobody can tell who may call it",
    );
    BackendFault::GuardInvalid
}
