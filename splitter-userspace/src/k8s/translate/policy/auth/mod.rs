//! Who may call, by what a client knows or was given: `auth-type`, `jwt-*`, `auth-url`,
//! `satisfy`. What cannot be read
//! closes the Ingress: ingress-nginx opens it in many of these cases.

mod basic;
mod external;
mod fields;
mod jwt;
mod place;
mod times;

use std::sync::Arc;

pub(in crate::k8s::translate) use external::{ExternalWish, GLOBAL, read as read_external};

use http::HeaderValue;

use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::golang::parse_bool;
use crate::k8s::translate::report::Problems;
use crate::model::{BackendFault, Guarded, ObjectRef};

/// The key of the ConfigMap that names what paths begin with that are answered whoever asks.
pub(in crate::k8s::translate) const OPEN_KEY: &str = "no-auth-locations";

/// Its default: an authority looks there whether somebody has a host.
const OPEN: &str = "/.well-known/acme-challenge";

/// Reads the annotations.
///
/// # Errors
/// When it cannot be told who may call.
pub(super) fn read(
    view: &View<'_>,
    problems: &mut Problems,
) -> Result<Option<Arc<Guarded>>, BackendFault> {
    let guarded = Guarded {
        basic: basic::read(view, problems)?,
        jwt: jwt::read(view, problems)?,
        // It needs the host and DNS, see `mains`.
        external: None,
        any: any(view, problems),
    };
    let asks = guarded.asks() || view.annotations.get("auth-url").is_some();
    if asks {
        report_order(view, guarded.any, problems);
    }
    Ok(guarded.asks().then(|| Arc::new(guarded)))
}

/// Says where ingress-nginx's order, which is kept, may surprise.
fn report_order(view: &View<'_>, any: bool, problems: &mut Problems) {
    let given = |name: &str| view.annotations.get(name);
    let cors = given("enable-cors").filter(|it| parse_bool(it.value.trim()) == Some(true));
    let redirect = given("permanent-redirect").or_else(|| given("temporal-redirect"));
    let deny = given("denylist-source-range").filter(|_| any);
    for (annotation, code, what) in [
        (
            cors,
            "guards-after-preflight",
            "preflights are answered before anybody is asked who it is",
        ),
        (
            redirect,
            "guards-after-redirect",
            "everybody is redirected before anybody is asked who it is",
        ),
        (
            deny,
            "guards-beat-denylist",
            "with satisfy: any, who is on the list and passes another access control may call",
        ),
    ] {
        if let Some(annotation) = annotation {
            let effect = "as in ingress-nginx";
            problems.warn(&view.subject, annotation.field(), code, what, effect);
        }
    }
}

/// Whether a path is not guarded, whatever its Ingress says. Only one that means nothing but itself,
/// also where paths are patterns.
pub(in crate::k8s::translate) fn is_open(view: &View<'_>, path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    let open = view.annotations.preset(OPEN_KEY).unwrap_or(OPEN);
    path.bytes().all(plain) && open_prefixes(open).any(|open| path.starts_with(open))
}

/// The parts of the key's value, good or not.
pub(in crate::k8s::translate) fn open_prefixes(list: &str) -> impl Iterator<Item = &str> {
    let parts = list.split(',').map(str::trim);
    parts.filter(|it| !it.is_empty())
}

/// `satisfy`: whether one guard is enough.
fn any(view: &View<'_>, problems: &mut Problems) -> bool {
    let Some(annotation) = view.annotations.get("satisfy") else {
        return false;
    };
    match annotation.value.trim() {
        "any" => true,
        "all" => false,
        other => {
            problems.error(
                &view.subject,
                annotation.field(),
                "satisfy-invalid",
                format!("{other:?} is neither any nor all"),
                "it counts as all: every access control must be passed",
            );
            false
        }
    }
}

/// Reports what makes it impossible to tell who may call.
fn close(
    view: &View<'_>,
    annotation: Annotation<'_>,
    what: impl Into<String>,
    problems: &mut Problems,
) -> BackendFault {
    problems.error(
        &view.subject,
        annotation.field(),
        "auth-invalid",
        what,
        "every path of the Ingress answers 503, as nobody can tell who may call it",
    );
    BackendFault::GuardInvalid
}

/// A Secret of the Ingress's own namespace, by its name alone or with the namespace.
fn secret(
    view: &View<'_>,
    annotation: Annotation<'_>,
    problems: &mut Problems,
) -> Result<ObjectRef, BackendFault> {
    let value = annotation.value.trim();
    let own = &*view.subject.object.namespace;
    let (namespace, name) = value.split_once('/').unwrap_or((own, value));
    let what = if name.is_empty() {
        format!("{value:?} names no Secret")
    } else if namespace != own {
        format!("the Secret {value} is not in the Ingress's own namespace {own}")
    } else {
        match view.secrets.take(namespace, name) {
            Some(secret) => return Ok(secret),
            None => format!("there is no Secret {namespace}/{name}"),
        }
    };
    Err(close(view, annotation, what, problems))
}

/// A text that clients are shown between quotes.
fn quoted(
    view: &View<'_>,
    annotation: Annotation<'_>,
    problems: &mut Problems,
) -> Result<Arc<str>, BackendFault> {
    let value = annotation.value.trim();
    if HeaderValue::from_str(value).is_err() {
        let what = format!("{value:?} cannot stand in a header");
        return Err(close(view, annotation, what, problems));
    }
    Ok(value.into())
}
