use super::{Row, rows};

pub(super) const ROWS: &[Row] = rows! {
    "auth-url-ca-secret" Location Works "a Secret with `ca.crt`, to trust the service of `auth-url` by" "the system's authorities" "503; reported" "nobody";
    "auth-url-timeout" Location Works "seconds from 1 to 60 for a whole answer of the service; without one nobody is let in (500)" "10" "503; reported" "0";
    "auth-url-verify" Location Works "true, false: whether the certificate of the service is looked at" "true" "503; reported" "perhaps";
    "jwt-algorithms" Location Works "of HS256, HS384, HS512 (with `jwt-jwks-secret` only), RS256 to RS512, PS256 to PS512, ES256, ES384, EdDSA, separated by commas" "all but HS*" "503; reported" "none";
    "jwt-audiences" Location Works "texts separated by commas: one must be in `aud`" "needed" "503; reported" "";
    "jwt-claim-headers" Location Works "CLAIM=HEADER, separated by commas: what pods are told. The client's own such headers are removed; lists are joined by commas; a claim that could be taken for another is left out" "none" "503; reported" "sub=Host";
    "jwt-claims" Location Works "CLAIM=VALUE,VALUE separated by `;`: each claim is one of its values, or a list with one of them in it. Nested claims with dots between; `\\.` is a dot in a name. 403 otherwise" "none" "503; reported" "admin";
    "jwt-cookie" Location Works "a cookie's name, to look for the token in" "Authorization" "503; reported" "a b";
    "jwt-forward" Location Works "true, false: whether pods get the token" "false" "503; reported" "perhaps";
    "jwt-header" Location Works "a header's name, to look for the token in, with `Bearer` or, but for Authorization, without" "Authorization" "503; reported" "Host";
    "jwt-issuer" Location Works "what `iss` is, byte for byte" "needed" "503; reported" "";
    "jwt-jwks-ca-secret" Location Works "a Secret with `ca.crt`, to trust `jwt-jwks-url` by" "the system's authorities" "503; reported" "nobody";
    "jwt-jwks-configmap" Location Works "a ConfigMap of the Ingress's namespace with keys in the entry `jwks`" "one of three is needed" "503; reported. Keys that turn bad: the last good ones stay" "nobody";
    "jwt-jwks-secret" Location Works "a Secret of the Ingress's namespace with keys in the entry `jwks`" "one of three is needed" "503; reported. Keys that turn bad: the last good ones stay" "nobody";
    "jwt-jwks-url" Location Works "a URL of https. At most 256 KiB, within 5 s, no redirects; fetched again before its max-age (1 min to 1 h) is over, and for a new key at most every 10 s" "one of three is needed" "503; reported. Keys that turn bad: the last good ones stay" "http://id.test/";
    "jwt-leeway" Location Works "seconds from 0 to 300 that clocks may be apart" "60" "503; reported" "301";
    "jwt-query" Location Works "a parameter's name, to look for the token in" "Authorization" "503; reported" "a b";
    "jwt-realm" Location Works "text" "empty" "503; reported" "a\nb";
    "jwt-type" Location Works "what `typ` must be, such as `at+jwt`" "none, JWT or at+jwt" "503; reported" "";
};
