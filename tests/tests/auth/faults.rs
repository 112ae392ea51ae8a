//! Faults that other proxies had with who may call, each with the tests that would show it here, or why
//! there can be none. Those of TLS and certificates have a table of their own.

use splitter_tests::faults::Shown::{NotApplicable, Tests};
use splitter_tests::faults::{Row, check, version};

/// Passwords, other services, addresses.
const GUARDS: &[Row] = &[
    (
        "ingress-nginx: empty auth-url, auth-type, auth-secret without auth-type, auth-realm off, \
         auth-cache-duration, auth-request-redirect, auth-always-set-cookie, global-auth-url",
        "what could not be read opened the location",
        Tests(&[
            "what_would_be_open_in_ingress_nginx_is_closed",
            "half_a_service_closes",
            "everybody_is_asked_where_the_config_map_says_so",
            "annotations",
        ]),
    ),
    (
        "ingress-nginx CVE-2026-24513, #12876",
        "an error page turned the authenticator's 401 into a 200",
        Tests(&[
            "a_refusal_is_passed_on_and_what_else_is_said_is_an_error",
            "no_way_and_no_side_leads_past_a_policy",
        ]),
    ),
    (
        "ingress-nginx #8644",
        "the authenticator was asked for another path than was routed",
        Tests(&[
            "oauth2_proxy_lets_in_tells_who_it_is_and_signs_in",
            "what_a_client_says_of_its_way_does_not_reach_the_service",
        ]),
    ),
    (
        "ingress-nginx CVE-2025-1097, CVE-2025-24514, CVE-2025-15566",
        "auth-url and headers became text of the configuration",
        NotApplicable("there is no such text: values are parsed into data, and stay that"),
    ),
    (
        "ingress-nginx CVE-2025-24513",
        "data of an Ingress became part of the name of a file with passwords",
        NotApplicable("passwords are never written to files"),
    ),
    (
        "ingress-nginx #12881",
        "a URL with % or @ was refused without a word, or opened the location",
        Tests(&["a_service_is_found_by_its_url", "half_a_service_closes"]),
    ),
    (
        "ingress-nginx #8183",
        "cookies of the authenticator were joined into one",
        Tests(&["oauth2_proxy_lets_in_tells_who_it_is_and_signs_in"]),
    ),
    (
        "ingress-nginx #3150",
        "bcrypt was 500",
        Tests(&[
            "a_name_with_its_password_passes_and_nothing_else",
            "every_kind_knows_its_password_and_no_other",
        ]),
    ),
    (
        "Traefik #5767, Caddy #3462",
        "hashing one password held up everybody",
        Tests(&["what_takes_long_holds_up_nobody_else"]),
    ),
    (
        "Traefik GHSA-4mr2-fg2p-w63c",
        "without the Secret everybody was let in",
        Tests(&[
            "a_changed_secret_counts_at_once_and_a_missing_one_closes",
            "what_would_be_open_in_ingress_nginx_is_closed",
        ]),
    ),
    (
        "Traefik CVE-2026-35051, CVE-2026-39858, CVE-2026-54764; oauth2-proxy CVE-2026-40575, \
         CVE-2026-34457",
        "what a client said of its way, or of itself, reached the authenticator and was believed",
        Tests(&["what_a_client_says_of_its_way_does_not_reach_the_service"]),
    ),
    (
        "Traefik CVE-2026-48020, CVE-2026-67309",
        "a rewritten path led out of what was guarded",
        Tests(&["nothing_leads_out_of_the_target", "rewrites"]),
    ),
    (
        "Envoy CVE-2021-32777",
        "only the last line of a field reached the authenticator",
        Tests(&["what_a_client_says_of_its_way_does_not_reach_the_service"]),
    ),
    (
        "Envoy CVE-2023-27487, ingress-nginx's auth-response-headers",
        "clients could set fields that only a guard may set",
        Tests(&[
            "oauth2_proxy_lets_in_tells_who_it_is_and_signs_in",
            "authelia_is_asked_with_its_method_and_gets_the_place_to_come_back_to",
            "claims_authorise_and_are_told_to_pods_by_us_alone",
        ]),
    ),
    (
        "Istio CVE-2020-8595, CVE-2021-39156",
        "a query or a fragment led past a rule for an exact path",
        Tests(&[
            "a_query_takes_no_part",
            "exact_paths_are_not_reached_by_another_spelling_alone",
        ]),
    ),
    (
        "X-Forwarded-For of strangers",
        "a client named the address that lists and limits went by",
        Tests(&[
            "a_client_is_not_believed_whom_it_speaks_for",
            "a_trusted_proxy_names_the_client",
            "the_nearest_hop_that_is_not_ours_is_the_client",
            "forwarded",
        ]),
    ),
    (
        "a list of addresses that cannot be read",
        "it kept nobody out",
        Tests(&[
            "a_bad_list_closes_its_ingress_and_no_other",
            "a_list_that_cannot_be_read_closes_the_ingress",
        ]),
    ),
    (
        "ingress-nginx, in what order it asks",
        "redirects, preflights and satisfy: any come before a guard; kept, and told",
        Tests(&[
            "preflights_and_redirects_come_before_it",
            "a_good_password_beats_a_deny_list_as_in_ingress_nginx",
            "all_must_be_passed_unless_it_says_any",
            "of_several_refusals_401_is_told_and_an_error_ends_it",
        ]),
    ),
    (
        "an authenticator that is slow, down, or says nonsense",
        "it held up other locations, or was taken for a yes",
        Tests(&[
            "a_service_that_is_down_or_slow_closes_and_holds_up_nobody",
            "a_refusal_is_passed_on_and_what_else_is_said_is_an_error",
        ]),
    ),
];

/// Tokens and keys.
const TOKENS: &[Row] = &[
    (
        "RFC 8725 3.1: none, an algorithm that nobody listed, a public key as a shared secret",
        "whoever wrote a token said how it is checked",
        Tests(&[
            "what_the_head_says_is_believed_by_nobody",
            "a_public_key_is_no_shared_secret",
            "a_shared_secret_counts_only_where_it_is_asked_for",
            "key_sets",
        ]),
    ),
    (
        "RFC 8725 3.10: kid, jku, x5u, jwk; RFC 7515 4.1.11: crit",
        "the key that a token named or brought was used; what must be understood was not",
        Tests(&["what_the_head_says_is_believed_by_nobody"]),
    ),
    (
        "five parts, padding, b64",
        "what is no token, or can be read in two ways, was taken",
        Tests(&[
            "what_is_no_token_is_malformed",
            "what_can_be_read_in_two_ways_is_none",
            "tokens",
        ]),
    ),
    (
        "jsonwebtoken CVE-2026-25537; exp as a text, 1e400, or none",
        "a time of another type was no time at all",
        Tests(&[
            "times_are_numbers_and_one_is_needed",
            "the_library_is_new_enough",
        ]),
    ),
    (
        "Envoy #15194, #20279",
        "another issuer, or none, was as good as no token where none is needed",
        Tests(&[
            "it_must_be_the_issuers_and_for_us",
            "each_refusal_says_why_and_reaches_no_pod",
        ]),
    ),
    (
        "RFC 8725 3.8, 3.11, 3.12",
        "an ID token, or one for somebody else, let in",
        Tests(&[
            "a_type_that_is_asked_for_is_the_only_one",
            "it_must_be_the_issuers_and_for_us",
        ]),
    ),
    (
        "two Authorization fields, tokens without end",
        "two parsers took two of them; all of a large one was read",
        Tests(&[
            "the_first_place_that_has_one_counts_and_two_are_none",
            "what_the_head_says_is_believed_by_nobody",
        ]),
    ),
    (
        "10,000 unknown kids; keys that cannot be fetched",
        "each had the keys fetched; everybody, or nobody, was let in",
        Tests(&[
            "keys_are_fetched_kept_and_fetched_again_for_a_new_one_but_not_for_each",
            "without_keys_it_is_closed",
            "keys_that_turn_bad_keep_the_last_good_ones",
        ]),
    ),
    (
        "Envoy CVE-2024-45809, CVE-2025-64527; sets of 10 MB, redirects, http",
        "an answer in place of keys crashed it, or was followed",
        Tests(&[
            "answers_that_are_none_are_not_taken",
            "a_server_that_is_not_who_it_should_be_is_not_believed",
            "a_set_that_is_none_or_too_large_is_refused",
            "half_a_token_policy_closes",
            "key_sets",
        ]),
    ),
    (
        "oct among public keys, use: enc",
        "a key for something else, or one that everybody knows, was used",
        Tests(&[
            "a_key_for_something_else_is_left_out",
            "shared_secrets_count_where_they_can_be_secret_and_are_long_enough",
        ]),
    ),
    (
        "Istio: no rule, no token",
        "who has no token passed unless another policy said otherwise",
        Tests(&["each_refusal_says_why_and_reaches_no_pod"]),
    ),
];

/// The files that the tests are in.
const SOURCES: &[&str] = &[
    include_str!("basic.rs"),
    include_str!("external.rs"),
    include_str!("external_told.rs"),
    include_str!("faults.rs"),
    include_str!("jwks_url.rs"),
    include_str!("jwt.rs"),
    include_str!("matrix.rs"),
    include_str!("satisfy.rs"),
    include_str!("../fuzz.rs"),
    include_str!("../proxy_paths.rs"),
    include_str!("../policies/addresses.rs"),
    include_str!("../../../splitter-userspace/src/auth/guards.rs"),
    include_str!("../../../splitter-userspace/src/auth/hash.rs"),
    include_str!("../../../splitter-userspace/src/auth/json.rs"),
    include_str!("../../../splitter-userspace/src/auth/jwks.rs"),
    include_str!("../../../splitter-userspace/src/auth/place.rs"),
    include_str!("../../../splitter-userspace/src/auth/token_tests.rs"),
    include_str!("../../../splitter-userspace/src/k8s/translate/tests/addresses.rs"),
    include_str!("../../../splitter-userspace/src/k8s/translate/tests/auth.rs"),
    include_str!("../../../splitter-userspace/src/proxy/policy/auth/mod.rs"),
    include_str!("../../../splitter-userspace/src/proxy/real_ip.rs"),
    include_str!("../../../splitter-userspace/src/routing/rewrite.rs"),
];

#[test]
fn every_fault_is_shown_by_tests_that_are_there_or_cannot_happen() {
    check(GUARDS.iter().chain(TOKENS), SOURCES);
}

#[test]
fn the_library_is_new_enough() {
    // Before it, a time of another type was passed over.
    let version = version("jsonwebtoken");
    assert!(version >= vec![10, 3], "{version:?}");
}
