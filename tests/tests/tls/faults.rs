//! Faults that other proxies had with TLS and certificates, each with the tests that would show it here,
//! or why there can be none. Faults of passwords, tokens and authenticators have a table of their own.

use splitter_tests::faults::Shown::{NotApplicable, Tests};
use splitter_tests::faults::{Row, check, version};

const ROWS: &[Row] = &[
    (
        "ingress-nginx CVE-2025-1097, CVE-2026-24514, CVE-2025-15566",
        "values of annotations became text of the configuration",
        NotApplicable("there is no such text: values are parsed into data, and stay that"),
    ),
    (
        "ingress-nginx CVE-2025-24513",
        "data of an Ingress became part of a file's name",
        NotApplicable("certificates, authorities and keys are never written to files"),
    ),
    (
        "ingress-nginx CVE-2025-23419, CVE-2025-68121, Envoy CVE-2022-21654, #21235",
        "a resumed session skipped the client's certificate, or a change of its authorities",
        Tests(&[
            "no_session_goes_on_past_a_change_of_authorities_or_of_what_they_revoked",
            "another_hosts_connection_does_not_lead_past_it",
            "nobody_else_opens_and_no_other_kind_does",
        ]),
    ),
    (
        "Traefik CVE-2022-46153",
        "authorities that cannot be read were as good as none: everybody was let in",
        Tests(&["what_cannot_be_told_is_closed"]),
    ),
    (
        "Traefik CVE-2026-32305",
        "a hello in two segments had no name, and got the options of no host",
        Tests(&[
            "a_hello_may_come_byte_by_byte",
            "a_hello_in_pieces_is_one_hello_and_its_name_counts",
            "it_may_come_in_pieces_and_in_records",
            "pieces_make_no_difference",
        ]),
    ),
    (
        "Traefik GHSA-5r4w-85f3-pw66, GHSA-9cr8-q42q-g8m7",
        "the comparison of Host and SNI missed wildcards and case",
        Tests(&[
            "another_hosts_connection_does_not_lead_past_it",
            "hosts_under_one_wildcard_are_hosts_of_their_own",
            "the_most_specific_host_says_whether_it_asks",
        ]),
    ),
    (
        "Traefik CVE-2026-85597",
        "two Ingresses of one host: client certificates were off for both",
        Tests(&["whoever_shares_the_host_without_asking_is_told"]),
    ),
    (
        "Traefik CVE-2025-66491",
        "proxy-ssl-verify was taken the other way round",
        Tests(&[
            "a_pod_that_does_not_prove_who_it_is_gets_no_request",
            "a_node_can_have_every_pod_prove_who_it_is",
        ]),
    ),
    (
        "Envoy CVE-2023-27487, ingress-nginx's ssl-client-* on hosts without authorities",
        "clients could set fields that only the proxy may set",
        Tests(&["pods_are_told_who_it_is_and_nobody_else_can_say_so"]),
    ),
    (
        "Envoy CVE-2022-21657",
        "certificates that are not for clients were taken",
        Tests(&["a_certificate_that_is_not_for_clients_is_none"]),
    ),
    (
        "ingress-nginx auth-tls-match-cn",
        "the pattern was looked for anywhere in the subject, and in certificates of nobody",
        Tests(&[
            "the_whole_common_name_must_match_and_only_of_a_good_certificate",
            "one_of_the_alternative_names_must_be_allowed_and_only_of_a_good_certificate",
        ]),
    ),
    (
        "ingress-nginx #2010",
        "the plain port served what needs a certificate",
        Tests(&["a_location_that_needs_a_certificate_is_not_served_in_clear"]),
    ),
    (
        "ingress-nginx #11424, #11491",
        "a large hello, or one in pieces, was not passed through",
        Tests(&[
            "a_hello_may_be_huge_but_not_endless",
            "a_hello_in_pieces_is_one_hello_and_its_name_counts",
        ]),
    ),
    (
        "rustls RUSTSEC-2024-0399, GHSA-2mjx-qc3c-rqvc",
        "the acceptor panicked; levels of encryption were mixed",
        Tests(&[
            "the_libraries_are_new_enough",
            "truncated_handshakes_are_ended",
            "shuffled_and_repeated_handshakes_are_ended",
            "random_changes_of_a_handshake_crash_nothing",
        ]),
    ),
    (
        "webpki RUSTSEC-2026-0049, -0098, -0099, GHSA-82j2-j2ch-gfr8",
        "lists of revoked certificates were ignored, or crashed it",
        Tests(&[
            "the_libraries_are_new_enough",
            "whoever_is_revoked_or_too_far_away_is_refused",
        ]),
    ),
    (
        "certificates that are compressed (RFC 8879)",
        "a small message became a large one",
        NotApplicable("the library is built without it, so that nobody is offered it"),
    ),
];

/// The files that the tests are in.
const SOURCES: &[&str] = &[
    include_str!("bad_input.rs"),
    include_str!("client_certs.rs"),
    include_str!("handshakes.rs"),
    include_str!("passthrough.rs"),
    include_str!("pod_terms.rs"),
    include_str!("pods.rs"),
    include_str!("faults.rs"),
    include_str!("../../../splitter-userspace/src/tls/asking.rs"),
    include_str!("../../../splitter-userspace/src/tls/hello_tests.rs"),
    include_str!("../../../splitter-userspace/src/tls/tickets_tests.rs"),
];

#[test]
fn every_fault_is_shown_by_tests_that_are_there_or_cannot_happen() {
    check(ROWS, SOURCES);
}

#[test]
fn the_libraries_are_new_enough() {
    for (name, least) in [("rustls", [0, 23, 45]), ("rustls-webpki", [0, 103, 13])] {
        let version = version(name);
        assert!(version >= least.to_vec(), "{name} {version:?}");
    }
}
