//! The annotations of a main Ingress to the [`Policy`] of its Locations: one file for each kind.
//! What is supported is listed in [`SUPPORTED`]; the rest goes to `unsupported`.

mod access_log;
mod addresses;
pub(super) mod affinity;
mod answer;
mod auth;
pub(super) mod balance;
mod body;
mod client_cert;
mod cors;
mod custom_headers;
mod error_pages;
mod exchange;
mod flag;
mod https;
mod limits;
mod pace;
mod protocol;
mod redirect;
mod retry;
mod rewrite;
mod service_upstream;
mod site;
mod tls_terms;
mod traffic_class;
mod unsupported;
mod upstream_host;
mod upstream_tls;

use http::HeaderName;

use super::View;
use super::canary_own;
use super::report::Problems;
use crate::model::{BackendFault, Balance, Policy, TlsTerms};

pub(super) use auth::{ExternalWish, GLOBAL, OPEN_KEY, is_open, open_prefixes};
pub(super) use client_cert::asks_for_certificate;
pub(super) use custom_headers::ALLOWED as ALLOWED_HEADERS;
pub(super) use https::HttpsTerms;
pub(super) use rewrite::PathTerms;
pub(super) use service_upstream::service_upstream;
pub(super) use site::{PASSTHROUGH, SiteTerms, read as site_terms};
pub(super) use unsupported::canary_policy;
#[cfg(test)]
pub(super) use unsupported::is_canarys;

/// The annotations that are read here, sorted.
const SUPPORTED: &[&str] = &[
    "affinity",
    "affinity-mode",
    "allowlist-source-range",
    "app-root",
    "auth-always-set-cookie",
    "auth-cache-duration",
    "auth-cache-key",
    "auth-keepalive",
    "auth-keepalive-requests",
    "auth-keepalive-share-vars",
    "auth-keepalive-timeout",
    "auth-method",
    "auth-proxy-set-headers",
    "auth-realm",
    "auth-request-redirect",
    "auth-response-headers",
    "auth-secret",
    "auth-secret-type",
    "auth-signin",
    "auth-signin-redirect-param",
    "auth-tls-error-page",
    "auth-tls-match-cn",
    "auth-tls-pass-certificate-to-upstream",
    "auth-tls-secret",
    "auth-tls-verify-client",
    "auth-tls-verify-depth",
    "auth-type",
    "auth-url",
    "auth-url-ca-secret",
    "auth-url-timeout",
    "auth-url-verify",
    "backend-protocol",
    "client-body-buffer-size",
    "cors-allow-credentials",
    "cors-allow-headers",
    "cors-allow-methods",
    "cors-allow-origin",
    "cors-expose-headers",
    "cors-max-age",
    "custom-headers",
    "custom-http-errors",
    "default-backend",
    "denylist-source-range",
    "disable-proxy-intercept-errors",
    "enable-access-log",
    "enable-cors",
    "enable-global-auth",
    "force-ssl-redirect",
    "from-to-www-redirect",
    "jwt-algorithms",
    "jwt-audiences",
    "jwt-claim-headers",
    "jwt-claims",
    "jwt-cookie",
    "jwt-forward",
    "jwt-header",
    "jwt-issuer",
    "jwt-jwks-ca-secret",
    "jwt-jwks-configmap",
    "jwt-jwks-secret",
    "jwt-jwks-url",
    "jwt-leeway",
    "jwt-query",
    "jwt-realm",
    "jwt-type",
    "limit-allowlist",
    "limit-burst-multiplier",
    "limit-connections",
    "limit-rate",
    "limit-rate-after",
    "limit-rpm",
    "limit-rps",
    "limit-whitelist",
    "load-balance",
    "permanent-redirect",
    "permanent-redirect-code",
    "preserve-trailing-slash",
    "proxy-body-size",
    "proxy-buffer-size",
    "proxy-buffering",
    "proxy-buffers-number",
    "proxy-busy-buffers-size",
    "proxy-connect-timeout",
    "proxy-cookie-domain",
    "proxy-cookie-path",
    "proxy-http-version",
    "proxy-max-temp-file-size",
    "proxy-next-upstream",
    "proxy-next-upstream-timeout",
    "proxy-next-upstream-tries",
    "proxy-read-timeout",
    "proxy-redirect-from",
    "proxy-redirect-to",
    "proxy-request-buffering",
    "proxy-send-timeout",
    "proxy-ssl-ciphers",
    "proxy-ssl-name",
    "proxy-ssl-protocols",
    "proxy-ssl-secret",
    "proxy-ssl-server-name",
    "proxy-ssl-verify",
    "proxy-ssl-verify-depth",
    "rewrite-target",
    "satisfy",
    "server-alias",
    "service-upstream",
    "session-cookie-change-on-failure",
    "session-cookie-conditional-samesite-none",
    "session-cookie-domain",
    "session-cookie-expires",
    "session-cookie-max-age",
    "session-cookie-name",
    "session-cookie-path",
    "session-cookie-samesite",
    "session-cookie-secure",
    "ssl-ciphers",
    "ssl-passthrough",
    "ssl-prefer-server-ciphers",
    "ssl-redirect",
    "temporal-redirect",
    "temporal-redirect-code",
    "upstream-hash-by",
    "upstream-hash-by-subset",
    "upstream-hash-by-subset-size",
    "upstream-vhost",
    "use-regex",
    "whitelist-source-range",
    "x-forwarded-prefix",
];

/// What an Ingress asks for, for all its Locations.
pub(super) struct MainPolicy {
    /// The fault that all its Locations answer with, if serving them regardless would be wrong.
    pub closed: Option<BackendFault>,
    /// What holds for each of them.
    pub policy: Policy,
    /// The service that is asked who may call.
    pub external: Option<ExternalWish>,
    /// What it says of their Splits.
    pub split: SplitWish,
    /// What it says about its paths; `policy` is for those that are rewritten.
    pub paths: PathTerms,
    /// What it says about https.
    pub https: HttpsTerms,
    /// What it says for its hosts.
    pub site: SiteTerms,
}

/// What a main Ingress says of the Splits of its Locations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SplitWish {
    /// Session affinity.
    pub affinity: Option<affinity::Wish>,
    /// How Endpoints are chosen.
    pub balance: Option<Balance>,
    /// The header that names who answered.
    pub response_header: Option<HeaderName>,
}

/// Reads the policies of a main Ingress and reports what has no effect here.
pub(super) fn main_policy(view: &View<'_>, problems: &mut Problems) -> MainPolicy {
    let (paths, rewrite) = rewrite::read(view, problems);
    let mut closed = Closed(unsupported::close(view, problems));
    let traffic_class = closed.unless(traffic_class::read(view, problems));
    let addresses = closed.unless(addresses::read(view, problems));
    let guards = closed.unless(auth::read(view, problems));
    let external = closed.unless(auth::read_external(view, problems));
    let client_cert = closed.unless(client_cert::read(view, problems));
    let mut exchange = exchange::read(view, problems);
    if let Some(protocol) = closed.unless(protocol::read(view, problems)) {
        exchange.protocol = protocol;
    }
    let upstream_tls = closed.unless(upstream_tls::read(view, problems));
    let headers = closed.unless(custom_headers::read(view, problems));
    let broken = paths.broken.then_some(BackendFault::RewriteInvalid);
    MainPolicy {
        closed: closed.0.or(broken),
        external,
        policy: Policy {
            traffic_class,
            addresses,
            client_cert,
            guards,
            cors: cors::read(view, problems),
            limits: limits::read(view, problems),
            redirect: redirect::read(view, problems),
            upstream_host: upstream_host::read(view, problems),
            // It depends on the host, see `site`.
            https: None,
            rewrite,
            // It needs the Services, see `fallback`.
            fallback: None,
            error_pages: error_pages::read(view, problems),
            exchange,
            upstream_tls,
            body_max: body::read(view, problems),
            answer: answer::read(view, problems),
            headers,
            pace: pace::read(view, problems),
            unlogged: access_log::is_off(view, problems),
        },
        split: SplitWish {
            affinity: affinity::read(view, problems),
            balance: balance::read(view, problems),
            response_header: canary_own::response_header(view, problems),
        },
        paths,
        https: https::read(view, problems),
        site: site::read(view, problems),
    }
}

/// Why the Locations must not be served, if so. The guard is the one to name when there is more.
struct Closed(Option<BackendFault>);

impl Closed {
    /// What was read, or nothing, and the fault noted.
    fn unless<T: Default>(&mut self, read: Result<T, BackendFault>) -> T {
        read.unwrap_or_else(|fault| {
            self.0 = self.0.into_iter().chain([fault]).min();
            T::default()
        })
    }
}

/// How TLS is spoken with clients.
pub(super) fn tls_terms(view: &View<'_>, problems: &mut Problems) -> TlsTerms {
    tls_terms::read(view, problems).terms
}

/// Whether an annotation is read by one of the files here.
pub(super) fn is_supported(name: &str) -> bool {
    SUPPORTED.binary_search(&name).is_ok()
}
