//! `ssl-protocols`, `ssl-ciphers`, `ssl-prefer-server-ciphers`: how TLS is spoken with clients. What
//! is not to be had is a Problem, and what is left is never weaker than what is there without them.

use super::flag;
use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::ciphers;
use crate::k8s::translate::report::Problems;
use crate::model::{TlsSuite, TlsTerms, TlsVersions};

/// Known to us only: ingress-nginx has it for all hosts alone, in its ConfigMap.
const PROTOCOLS: &str = "ssl-protocols";
const CIPHERS: &str = "ssl-ciphers";
const ORDER: &str = "ssl-prefer-server-ciphers";

/// What an Ingress says of TLS with the clients of its hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::k8s::translate) struct TlsWish {
    /// With what is said for all Ingresses.
    pub terms: TlsTerms,
    /// Whether it says anything itself; the name of the first annotation then.
    pub said: Option<&'static str>,
}

pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> TlsWish {
    let protocols = protocols(view);
    let said = [CIPHERS, ORDER]
        .into_iter()
        .find(|name| view.annotations.own(name).is_some());
    let own = protocols.filter(Annotation::is_own);
    let versions = protocols.map_or(TlsVersions::Both, |it| versions(view, it, problems));
    let ciphers = given(view, CIPHERS, problems);
    TlsWish {
        said: said.or_else(|| own.map(|_| PROTOCOLS)),
        terms: TlsTerms {
            versions,
            suites: match ciphers {
                Some(annotation) => suites(view, annotation, versions, problems),
                None => Vec::new(),
            },
            server_order: flag::read(view, ORDER, false, problems),
        },
    }
}

/// Under our own prefix, or what is said for all.
fn protocols<'a>(view: &View<'a>) -> Option<Annotation<'a>> {
    let own = view.annotations.own(PROTOCOLS).filter(Annotation::is_own);
    let preset = view.annotations.preset(PROTOCOLS);
    own.or_else(|| {
        preset.map(|value| Annotation {
            key: PROTOCOLS,
            value,
        })
    })
}

/// The versions that a list names.
pub(super) fn versions(
    view: &View<'_>,
    annotation: Annotation<'_>,
    problems: &mut Problems,
) -> TlsVersions {
    let words = annotation
        .value
        .split(|c: char| c == ',' || c.is_whitespace());
    let (mut tls12, mut tls13, mut missing) = (false, false, Vec::new());
    for word in words.filter(|word| !word.is_empty()) {
        match word {
            "TLSv1.2" => tls12 = true,
            "TLSv1.3" => tls13 = true,
            other => missing.push(other),
        }
    }
    let found = match (tls12, tls13) {
        (true, false) => Some(TlsVersions::Tls12),
        (false, true) => Some(TlsVersions::Tls13),
        (true, true) => Some(TlsVersions::Both),
        (false, false) => None,
    };
    report(
        view,
        annotation,
        "versions",
        &missing,
        found.is_some(),
        problems,
    );
    found.unwrap_or_default()
}

/// The suites that a cipher string names, if one of them is of these versions.
pub(super) fn suites(
    view: &View<'_>,
    annotation: Annotation<'_>,
    versions: TlsVersions,
    problems: &mut Problems,
) -> Vec<TlsSuite> {
    let read = ciphers::read(annotation.value);
    let missing: Vec<&str> = read.missing.iter().map(String::as_str).collect();
    let found = read.suites.iter().any(|suite| match versions {
        TlsVersions::Both => true,
        TlsVersions::Tls12 => !suite.is_tls13(),
        TlsVersions::Tls13 => suite.is_tls13(),
    });
    report(view, annotation, "suites", &missing, found, problems);
    match found {
        true => read.suites,
        false => Vec::new(),
    }
}

fn report(
    view: &View<'_>,
    annotation: Annotation<'_>,
    what: &str,
    missing: &[&str],
    found: bool,
    problems: &mut Problems,
) {
    if !found {
        let message = format!(
            "{:?} names none of the {what} that there are",
            annotation.value
        );
        let effect = match what {
            "versions" => "it counts as not set: TLS 1.2 and 1.3 are spoken",
            _ => "it counts as not set: all suites that there are can be agreed on",
        };
        let code = "tls-terms-invalid";
        problems.error(&view.subject, annotation.field(), code, message, effect);
    } else if !missing.is_empty() {
        let named = missing.join(", ");
        let message = format!("{named}: no such {what} are to be had");
        let effect = "they are left out: who can do nothing else cannot connect";
        let code = "tls-terms-missing";
        problems.warn(&view.subject, annotation.field(), code, message, effect);
    }
}
