#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use super::*;
use crate::model::{EndpointState, PathKind, Rows};
use crate::routing::fixtures::{backend, snapshot, split};

/// Resolves over stable and one canary that have an Endpoint or not.
fn run(stable: bool, canary: bool, variant: usize) -> Result<Chosen, NoEndpoint> {
    let mut state = snapshot(&[("a.com", "/", PathKind::Prefix)]);
    let endpoints = |has: bool| {
        if has {
            &[(1, EndpointState::Draining)][..]
        } else {
            &[]
        }
    };
    state.backends = Rows::from_iter([
        Arc::new(backend("app", endpoints(stable))),
        Arc::new(backend("app-canary", endpoints(canary))),
    ]);
    let mut location = state.locations[0].as_ref().clone();
    location.split = split(&[50, 50], vec![]);
    resolve(
        &state,
        &location,
        Decision {
            variant,
            reason: Reason::Header,
        },
    )
}

fn chosen(variant: usize, reason: Reason) -> Result<Chosen, NoEndpoint> {
    let decision = Decision { variant, reason };
    Ok(Chosen {
        decision,
        backend: BackendId(variant as u32),
    })
}

fn none(variant: usize) -> Result<Chosen, NoEndpoint> {
    let decision = Decision {
        variant,
        reason: Reason::Header,
    };
    Err(NoEndpoint {
        decision,
        backend: Some(BackendId(variant as u32)),
    })
}

#[test]
fn who_answers() {
    for (stable, canary, variant, expected) in [
        (true, true, 0, chosen(0, Reason::Header)),
        (true, true, 1, chosen(1, Reason::Header)),
        (true, false, 0, chosen(0, Reason::Header)),
        (true, false, 1, chosen(0, Reason::CanaryUnavailable)),
        (false, true, 0, none(0)),
        (false, true, 1, chosen(1, Reason::Header)),
        (false, false, 0, none(0)),
        (false, false, 1, none(1)),
    ] {
        assert_eq!(
            run(stable, canary, variant),
            expected,
            "{stable} {canary} {variant}"
        );
    }
}

#[test]
fn a_variant_that_does_not_exist_falls_back_to_stable() {
    assert_eq!(run(true, true, 5), chosen(0, Reason::CanaryUnavailable));
    assert_eq!(run(false, true, 5).unwrap_err().backend, None);
}
