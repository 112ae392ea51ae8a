//! Annotations that are not supported: harmless ones are ignored, guards close the Ingress.

use super::is_supported;
use crate::k8s::translate::View;
use crate::k8s::translate::annotations::{Annotation, OWN_PREFIX};
use crate::k8s::translate::catalogue;
use crate::k8s::translate::golang::parse_bool;
use crate::k8s::translate::report::Problems;
use crate::model::BackendFault;

/// Reports the annotations of a main Ingress that have no effect here. Gives the fault that all
/// its Locations answer with, if serving them regardless would be wrong.
pub(super) fn close(view: &View<'_>, problems: &mut Problems) -> Option<BackendFault> {
    let mut fault = None;
    for (name, annotation) in view.annotations.iter() {
        if catalogue::CANARY.contains(&name) || is_supported(name) {
            continue;
        }
        let own = name == catalogue::RESPONSE_HEADER
            || catalogue::OWN_GUARDS.contains(&name)
            || catalogue::OWN_MAIN.contains(&name);
        if annotation.is_own() && own {
            continue;
        }
        match Meaning::of(name, annotation) {
            Meaning::Nothing => {}
            Meaning::Guard => {
                report_guard(view, annotation, problems);
                fault = Some(BackendFault::GuardUnsupported);
            }
            Meaning::OwnGuard => {
                report_own_guard(view, name, annotation, problems);
                fault = Some(BackendFault::GuardInvalid);
            }
            Meaning::Misplaced => problems.warn(
                &view.subject,
                annotation.field(),
                "annotation-misplaced",
                "it is read from canary Ingresses, and this one is none",
                "ignored",
            ),
            Meaning::Ignored => report_ignored(view, name, annotation, "ignored", problems),
        }
    }
    fault
}

/// Reports the annotations of a canary Ingress that have no effect: the main one's count for both
/// sides, guards included.
pub(in crate::k8s::translate) fn canary_policy(view: &View<'_>, problems: &mut Problems) {
    for (name, annotation) in view.annotations.iter() {
        if catalogue::CANARY.contains(&name)
            || ON_CANARY.contains(&name)
            || annotation.is_own() && catalogue::OWN.contains(&name)
        {
            continue;
        }
        let known = is_known(name, annotation);
        let effect = match known {
            false => "ignored",
            true => "ignored on a canary: the main Ingress's annotations count for both sides",
        };
        report_ignored(view, name, annotation, effect, problems);
    }
}

fn is_known(name: &str, annotation: Annotation<'_>) -> bool {
    let own = catalogue::OWN_GUARDS.iter().chain(&catalogue::OWN_MAIN);
    catalogue::is_known(name) || (annotation.is_own() && own.copied().any(|own| own == name))
}

/// What is read from the canary Ingress, as ingress-nginx does.
const ON_CANARY: [&str; 6] = [
    "affinity-canary-behavior",
    "service-upstream",
    "load-balance",
    "upstream-hash-by",
    "upstream-hash-by-subset",
    "upstream-hash-by-subset-size",
];

/// Whether an annotation is read from canary Ingresses only, beside those of the rules.
#[cfg(test)]
pub(in crate::k8s::translate) fn is_canarys(name: &str) -> bool {
    ON_CANARY.contains(&name)
}

enum Meaning {
    /// What happens without it anyway.
    Nothing,
    /// Keeps somebody out.
    Guard,
    /// The same, and is read under our own prefix only.
    OwnGuard,
    /// Something on a canary Ingress only.
    Misplaced,
    /// Anything else.
    Ignored,
}

impl Meaning {
    fn of(name: &str, annotation: Annotation<'_>) -> Meaning {
        let value = annotation.value.trim();
        let guard_unless = |open: bool| {
            if open {
                Meaning::Nothing
            } else {
                Meaning::Guard
            }
        };
        match name {
            _ if catalogue::OWN_GUARDS.contains(&name) => Meaning::OwnGuard,
            "enable-modsecurity" | "enable-owasp-core-rules" => {
                guard_unless(parse_bool(value) == Some(false))
            }
            "configuration-snippet" | "server-snippet" if guards(value) => Meaning::Guard,
            _ if ON_CANARY.contains(&name) => Meaning::Misplaced,
            _ if annotation.is_own() && catalogue::OWN.contains(&name) => Meaning::Misplaced,
            _ if SWITCHES.contains(&name) && parse_bool(value) == Some(false) => Meaning::Nothing,
            // A misspelled one is meant to keep somebody out.
            _ if GUARD_FAMILIES.iter().any(|it| name.starts_with(it)) => Meaning::Guard,
            _ => Meaning::Ignored,
        }
    }
}

/// What is off without the annotation as well.
const SWITCHES: &[&str] = &["enable-cors", "enable-opentelemetry"];

/// What the names of those begin with that say who may call.
const GUARD_FAMILIES: [&str; 3] = ["auth-", "jwt-", "modsecurity-"];

/// Whether raw nginx text holds a directive that can refuse a request.
fn guards(snippet: &str) -> bool {
    const DIRECTIVES: [&str; 9] = [
        "deny",
        "allow",
        "auth_",
        "satisfy",
        "access_by_lua",
        "return 4",
        "limit_except",
        "modsecurity",
        "ssl_verify_client",
    ];
    DIRECTIVES
        .iter()
        .any(|directive| snippet.contains(directive))
}

fn report_guard(view: &View<'_>, annotation: Annotation<'_>, problems: &mut Problems) {
    problems.error(
        &view.subject,
        annotation.field(),
        "guard-unsupported",
        "this access control is not supported",
        "every path of the Ingress answers 503, as serving it unguarded would open it to all",
    );
}

fn report_own_guard(
    view: &View<'_>,
    name: &str,
    annotation: Annotation<'_>,
    problems: &mut Problems,
) {
    problems.error(
        &view.subject,
        annotation.field(),
        "guard-misnamed",
        format!("this access control is called {OWN_PREFIX}/{name}"),
        "every path of the Ingress answers 503, as serving it unguarded would open it to all",
    );
}

fn report_ignored(
    view: &View<'_>,
    name: &str,
    annotation: Annotation<'_>,
    effect: &str,
    problems: &mut Problems,
) {
    let known = is_known(name, annotation);
    let (code, message) = if known {
        (
            "annotation-unsupported",
            "this annotation is not supported".to_owned(),
        )
    } else {
        let hint = match catalogue::suggest(name) {
            Some(meant) if meant == name => format!("; did you mean {OWN_PREFIX}/{meant}?"),
            Some(meant) => format!("; did you mean {meant}?"),
            None => String::new(),
        };
        (
            "annotation-unknown",
            format!("there is no annotation {name}{hint}"),
        )
    };
    problems.warn(&view.subject, annotation.field(), code, message, effect);
}
