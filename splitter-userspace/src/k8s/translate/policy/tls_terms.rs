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
    // One that cannot be read counts as not set: what is said for all holds, and takes no host.
    let own = view.annotations.own(PROTOCOLS).filter(Annotation::is_own);
    let own_versions = own.and_then(|it| versions(view, it, problems));
    let versions = own_versions
        .or_else(|| versions(view, preset(view, PROTOCOLS)?, problems))
        .unwrap_or_default();
    let has_own = view.annotations.own(CIPHERS).is_some();
    let read = given(view, CIPHERS, problems).and_then(|it| suites(view, it, versions, problems));
    let own_suites = has_own && read.is_some();
    let suites = match read {
        None if has_own => {
            preset(view, CIPHERS).and_then(|it| suites(view, it, versions, problems))
        }
        read => read,
    };
    let order = view.annotations.own(ORDER);
    let said = [
        (CIPHERS, own_suites),
        (ORDER, order.is_some()),
        (PROTOCOLS, own_versions.is_some()),
    ];
    TlsWish {
        said: said
            .into_iter()
            .find_map(|(name, said)| said.then_some(name)),
        terms: TlsTerms {
            versions,
            suites: suites.unwrap_or_default(),
            server_order: flag::read(view, ORDER, false, problems),
        },
    }
}

/// What is said for all Ingresses.
fn preset<'a>(view: &View<'a>, key: &'static str) -> Option<Annotation<'a>> {
    let value = view.annotations.preset(key)?;
    Some(Annotation { key, value })
}

/// The versions that a list names, if there is one.
pub(super) fn versions(
    view: &View<'_>,
    annotation: Annotation<'_>,
    problems: &mut Problems,
) -> Option<TlsVersions> {
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
    found
}

/// The suites that a cipher string names, if one of them is of these versions.
pub(super) fn suites(
    view: &View<'_>,
    annotation: Annotation<'_>,
    versions: TlsVersions,
    problems: &mut Problems,
) -> Option<Vec<TlsSuite>> {
    let read = ciphers::read(annotation.value);
    let missing: Vec<&str> = read.missing.iter().map(String::as_str).collect();
    let found = read.suites.iter().any(|suite| match versions {
        TlsVersions::Both => true,
        TlsVersions::Tls12 => !suite.is_tls13(),
        TlsVersions::Tls13 => suite.is_tls13(),
    });
    report(view, annotation, "suites", &missing, found, problems);
    found.then_some(read.suites)
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
            "versions" => "it counts as not set: what is said for all, else TLS 1.2 and 1.3",
            _ => "it counts as not set: what is said for all, else every suite that there is",
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
