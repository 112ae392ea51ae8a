//! `ssl-redirect`, `force-ssl-redirect`, `preserve-trailing-slash`.

use super::flag;
use crate::k8s::translate::View;
use crate::k8s::translate::report::Problems;
use crate::model::HttpsRedirect;

/// Locations below it are never sent to https: who asks there has no certificate yet.
const ACME: &str = "/.well-known/acme-challenge";

/// What an Ingress says about https, for all its Locations.
#[derive(Clone, Copy, Debug)]
pub(in crate::k8s::translate) struct HttpsTerms {
    /// Where the host has TLS.
    redirect: bool,
    /// Everywhere.
    forced: bool,
    keep_slash: bool,
}

impl HttpsTerms {
    /// Of what nobody wrote.
    pub(in crate::k8s::translate) const NONE: HttpsTerms = HttpsTerms {
        redirect: false,
        forced: false,
        keep_slash: false,
    };

    /// What they come to for one path of a host that has TLS, or has not.
    pub(in crate::k8s::translate) fn at(self, path: &str, has_tls: bool) -> Option<HttpsRedirect> {
        let wanted = self.forced || (self.redirect && has_tls);
        (wanted && !path.starts_with(ACME)).then_some(HttpsRedirect {
            forced: self.forced,
            keep_slash: self.keep_slash,
        })
    }
}

pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> HttpsTerms {
    HttpsTerms {
        redirect: flag::read(view, "ssl-redirect", true, problems),
        forced: flag::read(view, "force-ssl-redirect", false, problems),
        keep_slash: flag::read(view, "preserve-trailing-slash", false, problems),
    }
}
