//! The annotations of a main Ingress to the [`Policy`] of its Locations: one file for each kind.
//! What is supported is listed in [`SUPPORTED`]; the rest goes to `unsupported`.

mod flag;
mod https;
mod redirect;
mod site;
mod unsupported;
mod upstream_host;

use super::View;
use super::report::Problems;
use crate::model::{BackendFault, Policy};

pub(super) use https::HttpsTerms;
pub(super) use site::SiteTerms;
pub(super) use unsupported::canary_policy;

/// The annotations that are read here, sorted.
const SUPPORTED: &[&str] = &[
    "app-root",
    "force-ssl-redirect",
    "from-to-www-redirect",
    "permanent-redirect",
    "permanent-redirect-code",
    "preserve-trailing-slash",
    "server-alias",
    "ssl-redirect",
    "temporal-redirect",
    "temporal-redirect-code",
    "upstream-vhost",
];

/// What an Ingress asks for, for all its Locations.
pub(super) struct MainPolicy {
    /// The fault that all its Locations answer with, if serving them regardless would be wrong.
    pub closed: Option<BackendFault>,
    /// What holds for each of them.
    pub policy: Policy,
    /// What it says about https.
    pub https: HttpsTerms,
    /// What it says for its hosts.
    pub site: SiteTerms,
}

/// Reads the policies of a main Ingress and reports what has no effect here.
pub(super) fn main_policy(view: &View<'_>, problems: &mut Problems) -> MainPolicy {
    MainPolicy {
        closed: unsupported::close(view, problems),
        policy: Policy {
            redirect: redirect::read(view, problems),
            upstream_host: upstream_host::read(view, problems),
            ..Policy::default()
        },
        https: https::read(view, problems),
        site: site::read(view, problems),
    }
}

/// Whether an annotation is read by one of the files here.
fn is_supported(name: &str) -> bool {
    SUPPORTED.binary_search(&name).is_ok()
}
