//! Every annotation that is known, in one table: what `docs/annotations.md` is made of. Tests hold
//! each row against what `translate` does.

mod guards;
mod own;
mod own_guards;
mod own_main;
mod pods;
mod routing;
mod tokens;

use std::fmt::Write as _;

/// One annotation.
pub(super) struct Row {
    /// Without the prefix.
    pub(super) name: &'static str,
    scope: Scope,
    pub(super) status: Status,
    /// Accepted values.
    values: &'static str,
    default: &'static str,
    /// What an invalid value does; for one that is not supported, what happens.
    invalid: &'static str,
    /// An invalid value, for the test; empty where every value is valid, or none is read.
    #[cfg_attr(not(test), allow(dead_code, reason = "read by the tests"))]
    pub(super) bad: &'static str,
}

/// What an annotation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Each Location of the Ingress.
    Location,
    /// All Locations of the Ingress together.
    Ingress,
    /// The hosts of the Ingress.
    Host,
    /// How pods are chosen and spoken to.
    Pods,
    /// The canary.
    Canary,
}

/// How it fares here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// As in ingress-nginx.
    Works,
    /// Works, in a way that the text beside it tells.
    Differs,
    /// Has nothing to do here: it is about nginx's inside.
    Accepted,
    /// Not supported, and closes the Ingress.
    Refused,
    /// Not supported, and reported.
    Ignored,
}

/// Rows, a line each.
macro_rules! rows {
    ($($name:literal $scope:ident $status:ident $values:literal $default:literal $invalid:literal $bad:literal;)*) => {
        &[$($crate::k8s::translate::reference::Row {
            name: $name,
            scope: $crate::k8s::translate::reference::Scope::$scope,
            status: $crate::k8s::translate::reference::Status::$status,
            values: $values,
            default: $default,
            invalid: $invalid,
            bad: $bad,
        }),*]
    };
}
use rows;

/// Rows of what ingress-nginx knows, by subject.
const TABLES: [(&str, &[Row]); 3] = [
    ("Routing and canaries", routing::ROWS),
    ("Pods", pods::ROWS),
    ("Who may call, and how much", guards::ROWS),
];

/// All rows of annotations that ingress-nginx knows.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = &'static Row> {
    TABLES.iter().flat_map(|(_, rows)| rows.iter())
}

/// Rows of what only we know, under our own prefix.
#[cfg(test)]
pub(super) fn own() -> impl Iterator<Item = &'static Row> {
    own::ROWS.iter()
}

/// Rows of tokens, which only we know.
#[cfg(test)]
pub(super) fn tokens() -> impl Iterator<Item = &'static Row> {
    tokens::ROWS.iter()
}

/// Rows of access controls that only we know, under our own prefix.
#[cfg(test)]
pub(super) fn own_guards() -> impl Iterator<Item = &'static Row> {
    own_guards::ROWS.iter()
}

/// Rows of what else only we know, under our own prefix.
#[cfg(test)]
pub(super) fn own_main() -> impl Iterator<Item = &'static Row> {
    own_main::ROWS.iter()
}

const HEAD: &str = "<!-- Made from splitter-userspace/src/k8s/translate/reference/: UPDATE_DOCS=1 cargo test -p splitter-userspace --lib reference -->
# Annotations

Read under `nginx.ingress.kubernetes.io/` (`--annotations-prefix`) and `splitter.io/`, which wins.
`splitter check` says what each Ingress has of them and what comes of it; an annotation that is not
known at all is reported with the one that was probably meant.

- **works**: as in ingress-nginx.
- **differs**: works, in a way that is told.
- **accepted**: about nginx's inside; has nothing to do here.
- **refused**: an access control that is not supported: every path of the Ingress answers 503.
- **ignored**: not supported; reported, and the rest of the Ingress works.

On a canary Ingress only the canary annotations and those of its own pods count. `--defaults FILE`
takes the same names from ingress-nginx's ConfigMap for Ingresses that say nothing.
";

const OWN_TITLE: &str = "Canaries, under `splitter.io/` only";

const TOKENS_TITLE: &str = "Tokens (JWT) and services that are asked, under `splitter.io/`";

const OWN_MAIN_TITLE: &str = "TLS, under `splitter.io/` only";

const OWN_GUARDS_TITLE: &str = "Who may call, under `splitter.io/` only";

/// `docs/annotations.md`.
pub fn annotations_page() -> String {
    let mut page = HEAD.to_owned();
    let own = [
        (OWN_GUARDS_TITLE, own_guards::ROWS),
        (TOKENS_TITLE, tokens::ROWS),
        (OWN_MAIN_TITLE, own_main::ROWS),
        (OWN_TITLE, own::ROWS),
    ];
    for (title, rows) in TABLES.into_iter().chain(own) {
        // Writing to a String does not fail.
        let _ = write!(
            page,
            "\n## {title}\n\n| annotation | for | status | values | default | otherwise |\n\
             |---|---|---|---|---|---|\n"
        );
        for row in rows {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} | {} | {} |",
                row.name,
                format!("{:?}", row.scope).to_lowercase(),
                format!("{:?}", row.status).to_lowercase(),
                row.values,
                row.default,
                row.invalid
            );
        }
    }
    page
}
