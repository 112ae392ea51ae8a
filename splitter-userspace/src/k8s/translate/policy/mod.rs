//! The annotations of a main Ingress to the [`Policy`] of its Locations: one file for each kind.
//! What is supported is listed in [`SUPPORTED`]; the rest goes to `unsupported`.

mod access_log;
mod addresses;
pub(super) mod affinity;
mod body;
mod cors;
mod exchange;
mod limits;
mod protocol;
mod redirect;
mod retry;
mod unsupported;
mod upstream_host;

use super::View;
use super::report::Problems;
use crate::model::{BackendFault, Policy};

pub(super) use unsupported::canary_policy;
#[cfg(test)]
pub(super) use unsupported::is_canarys;

/// The annotations that are read here, sorted.
const SUPPORTED: &[&str] = &[
    "affinity",
    "affinity-mode",
    "allowlist-source-range",
    "backend-protocol",
    "client-body-buffer-size",
    "cors-allow-credentials",
    "cors-allow-headers",
    "cors-allow-methods",
    "cors-allow-origin",
    "cors-expose-headers",
    "cors-max-age",
    "denylist-source-range",
    "enable-access-log",
    "enable-cors",
    "limit-allowlist",
    "limit-burst-multiplier",
    "limit-connections",
    "limit-rpm",
    "limit-rps",
    "limit-whitelist",
    "permanent-redirect",
    "permanent-redirect-code",
    "proxy-body-size",
    "proxy-buffer-size",
    "proxy-buffering",
    "proxy-buffers-number",
    "proxy-busy-buffers-size",
    "proxy-connect-timeout",
    "proxy-http-version",
    "proxy-max-temp-file-size",
    "proxy-next-upstream",
    "proxy-next-upstream-timeout",
    "proxy-next-upstream-tries",
    "proxy-read-timeout",
    "proxy-request-buffering",
    "proxy-send-timeout",
    "session-cookie-change-on-failure",
    "session-cookie-conditional-samesite-none",
    "session-cookie-domain",
    "session-cookie-expires",
    "session-cookie-max-age",
    "session-cookie-name",
    "session-cookie-path",
    "session-cookie-samesite",
    "session-cookie-secure",
    "temporal-redirect",
    "temporal-redirect-code",
    "upstream-vhost",
    "whitelist-source-range",
];

/// What an Ingress asks for, for all its Locations.
#[derive(Default)]
pub(super) struct MainPolicy {
    /// The fault that all its Locations answer with, if serving them regardless would be wrong.
    pub closed: Option<BackendFault>,
    /// What holds for each of them.
    pub policy: Policy,
    /// What it says of their Splits.
    pub split: SplitWish,
}

/// What a main Ingress says of the Splits of its Locations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SplitWish {
    /// Session affinity.
    pub affinity: Option<affinity::Wish>,
}

/// Reads the policies of a main Ingress and reports what has no effect here.
pub(super) fn main_policy(view: &View<'_>, problems: &mut Problems) -> MainPolicy {
    let mut closed = Closed(unsupported::close(view, problems));
    let addresses = closed.unless(addresses::read(view, problems));
    let mut exchange = exchange::read(view, problems);
    if let Some(protocol) = closed.unless(protocol::read(view, problems)) {
        exchange.protocol = protocol;
    }
    MainPolicy {
        closed: closed.0,
        policy: Policy {
            addresses,
            cors: cors::read(view, problems),
            limits: limits::read(view, problems),
            redirect: redirect::read(view, problems),
            upstream_host: upstream_host::read(view, problems),
            exchange,
            body_max: body::read(view, problems),
            unlogged: access_log::is_off(view, problems),
        },
        split: SplitWish {
            affinity: affinity::read(view, problems),
        },
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

/// Whether an annotation is read by one of the files here.
pub(super) fn is_supported(name: &str) -> bool {
    SUPPORTED.binary_search(&name).is_ok()
}
