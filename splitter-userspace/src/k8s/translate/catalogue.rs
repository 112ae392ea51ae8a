//! The annotations that ingress-nginx knows.

/// Those that say how a Location is split, all of them supported.
pub(super) const CANARY: [&str; 7] = [
    "canary",
    "canary-by-cookie",
    "canary-by-header",
    "canary-by-header-pattern",
    "canary-by-header-value",
    "canary-weight",
    "canary-weight-total",
];

/// Those that only we know, under our own prefix. They are read from canary Ingresses, the last one
/// from main ones too.
pub(super) const OWN: [&str; 8] = [
    "canary-by-cookie-pattern",
    "canary-by-cookie-value",
    "canary-by-query",
    "canary-by-query-value",
    "canary-by-source-range",
    "canary-hash-by",
    "mirror",
    RESPONSE_HEADER,
];

/// Those of tokens and services that are asked, which only we know: read from main Ingresses, sorted.
pub(super) const TOKENS: [&str; 19] = [
    "auth-url-ca-secret",
    "auth-url-timeout",
    "auth-url-verify",
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
];

/// Read from both kinds of Ingresses.
pub(super) const RESPONSE_HEADER: &str = "canary-response-header";

/// Access controls that only we know, read from main Ingresses under our own prefix, sorted. Under
/// another one they close the Ingress.
pub(super) const OWN_GUARDS: [&str; 2] = ["auth-tls-allowed-identities", "traffic-class"];

/// What only we know beside those, read from main Ingresses under our own prefix.
pub(super) const OWN_MAIN: [&str; 1] = ["ssl-protocols"];

/// The others, sorted.
const OTHER: [&str; 131] = [
    "affinity",
    "affinity-canary-behavior",
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
    "auth-snippet",
    "auth-tls-error-page",
    "auth-tls-match-cn",
    "auth-tls-pass-certificate-to-upstream",
    "auth-tls-secret",
    "auth-tls-verify-client",
    "auth-tls-verify-depth",
    "auth-type",
    "auth-url",
    "backend-protocol",
    "client-body-buffer-size",
    "configuration-snippet",
    "connection-proxy-header",
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
    "enable-modsecurity",
    "enable-opentelemetry",
    "enable-owasp-core-rules",
    "enable-rewrite-log",
    "fastcgi-index",
    "fastcgi-params-configmap",
    "force-ssl-redirect",
    "from-to-www-redirect",
    "http2-push-preload",
    "limit-allowlist",
    "limit-burst-multiplier",
    "limit-connections",
    "limit-rate",
    "limit-rate-after",
    "limit-rpm",
    "limit-rps",
    "limit-whitelist",
    "load-balance",
    "mirror-host",
    "mirror-request-body",
    "mirror-target",
    "modsecurity-snippet",
    "modsecurity-transaction-id",
    "opentelemetry-operation-name",
    "opentelemetry-trust-incoming-span",
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
    "relative-redirects",
    "rewrite-target",
    "satisfy",
    "server-alias",
    "server-snippet",
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
    "stream-snippet",
    "temporal-redirect",
    "temporal-redirect-code",
    "upstream-hash-by",
    "upstream-hash-by-subset",
    "upstream-hash-by-subset-size",
    "upstream-vhost",
    "use-port-in-redirects",
    "use-regex",
    "whitelist-source-range",
    "x-forwarded-prefix",
];

/// Annotations of older ingress-nginx versions, which the last one does not know any more.
const REMOVED: [&str; 8] = [
    "enable-influxdb",
    "enable-opentracing",
    "global-rate-limit",
    "global-rate-limit-window",
    "influxdb-host",
    "influxdb-measurement",
    "opentracing-trust-incoming-span",
    "secure-verify-ca-secret",
];

/// Whether ingress-nginx knows, or once knew, the annotation, or it is one for tokens.
pub(super) fn is_known(name: &str) -> bool {
    CANARY.contains(&name)
        || OTHER.binary_search(&name).is_ok()
        || TOKENS.contains(&name)
        || REMOVED.contains(&name)
}

/// All that the last ingress-nginx knows.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    CANARY.iter().chain(OTHER.iter()).copied()
}

/// A longer name is compared with none; the longest known one has 40 characters.
const LONGEST_MISTAKE: usize = 63;

/// The known name that was most likely meant, if one is near.
pub(super) fn suggest(name: &str) -> Option<&'static str> {
    if name.len() > LONGEST_MISTAKE {
        return None;
    }
    let canary = name.starts_with("canary-");
    let own = OWN.iter().chain(&OWN_GUARDS).chain(&OWN_MAIN);
    let all = CANARY.iter().chain(own).chain(&TOKENS);
    let all = all.chain(OTHER.iter()).copied();
    let near = all
        .filter(|known| known.starts_with("canary-") == canary)
        .map(|known| (distance(name, known), known))
        .min()?;
    // Half of the text may be missing, as in `canary-header` for `canary-by-header`.
    (near.0 <= 3.max(name.len() / 4)).then_some(near.1)
}

/// The number of characters to insert, remove or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, y) in b.bytes().enumerate() {
            let substitute = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_for_the_search() {
        assert!(OTHER.is_sorted());
    }

    #[test]
    fn suggests_what_was_meant() {
        assert_eq!(suggest("canary-header"), Some("canary-by-header"));
        assert_eq!(suggest("canary-wieght"), Some("canary-weight"));
        assert_eq!(
            suggest("canary-header-value"),
            Some("canary-by-header-value")
        );
        assert_eq!(suggest("rewrite-targets"), Some("rewrite-target"));
        assert_eq!(suggest("auth_url"), Some("auth-url"));
        assert_eq!(suggest("my-own-thing-entirely"), None);
        assert_eq!(suggest(&"canary-weight".repeat(10)), None);
    }
}
