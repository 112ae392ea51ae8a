//! Against a real API server: what `deploy/splitter.yaml` installs, what `kubectl apply` says, what
//! is written back.
//!
//! One control plane serves nearly all tests, one after the other, so they do without the usual harness:
//! arguments are parts of names to run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]
#![allow(clippy::print_stdout, reason = "it is a harness too")]

mod argo;
mod conformance;
mod defaults;
mod failures;
mod flagger;
mod leaders;
mod pods;
mod prometheus;
mod rights;
mod routing;
mod scale;
mod statuses;
mod updates;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use splitter_tests::cluster::enter_namespace;
use world::World;

type Test = fn(&mut World);

/// In this order: the last one looks at what all others have done.
const TESTS: &[(&str, Test)] = &[
    (
        "objects_are_served_and_followed",
        routing::objects_are_served_and_followed,
    ),
    (
        "classes_say_what_is_ours",
        routing::classes_say_what_is_ours,
    ),
    (
        "config_maps_say_whose_tokens_count",
        routing::config_maps_say_whose_tokens_count,
    ),
    (
        "only_the_asked_for_is_read",
        routing::only_the_asked_for_is_read,
    ),
    (
        "certificates_come_from_named_secrets",
        routing::certificates_come_from_named_secrets,
    ),
    (
        "certificates_change_under_load",
        failures::certificates_change_under_load,
    ),
    (
        "a_config_map_says_what_holds_for_all",
        defaults::a_config_map_says_what_holds_for_all,
    ),
    (
        "fields_of_answers_come_from_a_named_config_map",
        defaults::fields_of_answers_come_from_a_named_config_map,
    ),
    (
        "a_storm_of_changes_ends_in_the_last_one",
        routing::a_storm_of_changes_ends_in_the_last_one,
    ),
    (
        "rolling_endpoints_lose_no_request",
        failures::rolling_endpoints_lose_no_request,
    ),
    (
        "an_absent_api_server_changes_nothing",
        failures::an_absent_api_server_changes_nothing,
    ),
    (
        "nodes_say_where_ingresses_are",
        statuses::nodes_say_where_ingresses_are,
    ),
    (
        "a_service_says_where_ingresses_are",
        statuses::a_service_says_where_ingresses_are,
    ),
    (
        "foreign_ingresses_keep_their_status",
        statuses::foreign_ingresses_keep_their_status,
    ),
    ("problems_become_events", statuses::problems_become_events),
    (
        "one_of_two_writes_and_the_other_takes_over",
        leaders::one_of_two_writes_and_the_other_takes_over,
    ),
    (
        "the_last_one_clears_the_status_on_request",
        leaders::the_last_one_clears_the_status_on_request,
    ),
    (
        "conformance_default_backend",
        conformance::conformance_default_backend,
    ),
    (
        "conformance_host_rules",
        conformance::conformance_host_rules,
    ),
    (
        "conformance_ingress_class",
        conformance::conformance_ingress_class,
    ),
    (
        "conformance_load_balancing",
        conformance::conformance_load_balancing,
    ),
    (
        "conformance_path_rules",
        conformance::conformance_path_rules,
    ),
    ("a_rollout_is_promoted", argo::a_rollout_is_promoted),
    ("a_rollout_is_aborted", argo::a_rollout_is_aborted),
    (
        "two_rollouts_share_an_ingress",
        argo::two_rollouts_share_an_ingress,
    ),
    (
        "a_canary_is_promoted_and_tested_by_header",
        flagger::a_canary_is_promoted_and_tested_by_header,
    ),
    (
        "its_questions_are_answered_by_prometheus",
        flagger::its_questions_are_answered_by_prometheus,
    ),
    (
        "rolling_pods_lose_no_request",
        pods::rolling_pods_lose_no_request,
    ),
    (
        "what_is_not_granted_is_refused",
        rights::what_is_not_granted_is_refused,
    ),
    ("every_right_is_used", rights::every_right_is_used),
];

/// Those that have a control plane of their own, as it has to be another one.
const APART: &[(&str, fn())] = &[(
    "updates_of_the_daemon_set_lose_nothing",
    updates::updates_of_the_daemon_set_lose_nothing,
)];

/// Only by name.
const LONG: &[(&str, Test)] = &[("thousands_of_ingresses", scale::thousands_of_ingresses)];

fn main() -> ExitCode {
    enter_namespace();
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| !it.starts_with('-'))
        .collect();
    let named = |name: &str| filters.iter().any(|it| name.contains(it));
    let is_meant = |name: &str| filters.is_empty() || named(name);
    let usual = TESTS.iter().filter(|(name, _)| is_meant(name));
    let long = LONG.iter().filter(|(name, _)| named(name));
    let together: Vec<_> = usual.chain(long).collect();
    let began = Instant::now();
    let mut failed = Vec::new();
    let mut run = |name: &'static str, test: &mut dyn FnMut()| {
        let began = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(test));
        let shown = if result.is_ok() { "ok" } else { "FAILED" };
        println!("test {name} ... {shown} ({:.1?})", began.elapsed());
        if result.is_err() {
            failed.push(name);
        }
    };
    if !together.is_empty() {
        let mut world = World::new();
        println!("control plane ready in {:.1?}", began.elapsed());
        for (name, test) in together {
            run(name, &mut || test(&mut world));
        }
    }
    for (name, test) in APART.iter().filter(|(name, _)| is_meant(name)) {
        run(name, &mut || test());
    }
    println!(
        "{} failed: {failed:?}, in {:.1?}",
        failed.len(),
        began.elapsed()
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
