//! `auth-type`, `auth-secret`, `auth-secret-type`, `auth-realm`.

use super::{close, quoted, secret};
use crate::k8s::translate::View;
use crate::k8s::translate::report::Problems;
use crate::model::{BackendFault, Basic, UserLayout};

const TYPE: &str = "auth-type";
const SECRET: &str = "auth-secret";
const LAYOUT: &str = "auth-secret-type";
/// The entry of the Secret that is an htpasswd file.
const FILE_KEY: &str = UserLayout::FILE_KEY;

const REALM: &str = "auth-realm";

/// Reads the annotations.
///
/// # Errors
/// When it cannot be told who may call.
pub(super) fn read(
    view: &View<'_>,
    problems: &mut Problems,
) -> Result<Option<Basic>, BackendFault> {
    let Some(kind) = view.annotations.get(TYPE) else {
        return without_type(view, problems);
    };
    match kind.value.trim() {
        "basic" => {}
        "digest" => {
            let what = "digest is not supported: it needs passwords, or what is as good as them, \
                        stored under MD5; use basic over TLS";
            return Err(close(view, kind, what, problems));
        }
        other => {
            let what = format!("{other:?} is not basic");
            return Err(close(view, kind, what, problems));
        }
    }
    let Some(named) = view.annotations.get(SECRET) else {
        let what = format!("there is no {SECRET}, so nobody has a password");
        return Err(close(view, kind, what, problems));
    };
    let users = secret(view, named, problems)?;
    let layout = layout(view, problems)?;
    if layout == UserLayout::File && !view.secrets.holds(&users, FILE_KEY) {
        let what = format!("the {users} has no entry {FILE_KEY}");
        return Err(close(view, named, what, problems));
    }
    let realm = match view.annotations.get(REALM) {
        // nginx takes it for a switch.
        Some(realm) if realm.value.trim() == "off" => {
            let what = "off would have ingress-nginx let everybody in";
            return Err(close(view, realm, what, problems));
        }
        Some(realm) => quoted(view, realm, problems)?,
        None => "".into(),
    };
    Ok(Some(Basic {
        users,
        layout,
        realm,
    }))
}

fn without_type(view: &View<'_>, problems: &mut Problems) -> Result<Option<Basic>, BackendFault> {
    if let Some(named) = view.annotations.get(SECRET) {
        let what = format!("there is no {TYPE}, so it is not told what the Secret is for");
        return Err(close(view, named, what, problems));
    }
    for name in [LAYOUT, REALM] {
        if let Some(annotation) = view.annotations.get(name) {
            problems.warn(
                &view.subject,
                annotation.field(),
                "auth-unused",
                format!("there is no {TYPE}"),
                "ignored: nobody is asked for a password",
            );
        }
    }
    Ok(None)
}

fn layout(view: &View<'_>, problems: &mut Problems) -> Result<UserLayout, BackendFault> {
    let Some(annotation) = view.annotations.get(LAYOUT) else {
        return Ok(UserLayout::File);
    };
    match annotation.value.trim() {
        "auth-file" => Ok(UserLayout::File),
        "auth-map" => Ok(UserLayout::Map),
        other => {
            let what = format!("{other:?} is neither auth-file nor auth-map");
            Err(close(view, annotation, what, problems))
        }
    }
}
