//! What is tried again: `proxy-next-upstream`, `-tries`, `-timeout`.

use std::time::Duration;

use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::atoi;
use crate::k8s::translate::report::Problems;
use crate::model::{Failures, Retry};

/// The most Endpoints that one request is given to.
const TRIES_MAX: u32 = 16;

/// The longest time in which a further try may begin, in seconds.
const TIME_MAX: u64 = 2_147_483;

/// None when no annotation says anything, so that the process's way holds.
pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<Retry> {
    let on = failures(view, problems);
    let tries = tries(view, problems);
    let timeout = timeout(view, problems);
    if on.is_none() && tries.is_none() && timeout.is_none() {
        return None;
    }
    Some(Retry {
        on: on.unwrap_or(Retry::DEFAULT.on),
        tries: tries.unwrap_or(Retry::DEFAULT.tries),
        timeout: timeout.unwrap_or(Retry::DEFAULT.timeout),
    })
}

fn failures(view: &View<'_>, problems: &mut Problems) -> Option<Failures> {
    let annotation = given(view, "proxy-next-upstream", problems)?;
    let mut failures = Failures::NONE;
    let mut off = false;
    for word in annotation.value.split_whitespace() {
        let known = Failures::WORDS.iter().find(|(name, _)| *name == word);
        match known {
            Some((_, failure)) => failures = failures.and(*failure),
            None if word == "off" => off = true,
            None => {
                let known: Vec<_> = Failures::WORDS.iter().map(|(name, _)| *name).collect();
                problems.error(
                    &view.subject,
                    annotation.field(),
                    "next-upstream-invalid",
                    format!("{word:?} is none of off, {}", known.join(", ")),
                    "it counts as not set",
                );
                return None;
            }
        }
    }
    // As for nginx, whatever else is named.
    Some(if off { Failures::NONE } else { failures })
}

/// 0 is no limit for ingress-nginx; here there is one for everybody.
fn tries(view: &View<'_>, problems: &mut Problems) -> Option<u32> {
    let annotation = given(view, "proxy-next-upstream-tries", problems)?;
    let Some(tries) = atoi(annotation.value).and_then(|it| u32::try_from(it).ok()) else {
        problems.error(
            &view.subject,
            annotation.field(),
            "next-upstream-invalid",
            format!("{:?} is no number of tries", annotation.value),
            "it counts as not set",
        );
        return None;
    };
    if tries > TRIES_MAX {
        problems.warn(
            &view.subject,
            annotation.field(),
            "next-upstream-too-many",
            format!("{tries} is more than {TRIES_MAX} tries, the most that are made"),
            format!("it counts as {TRIES_MAX}"),
        );
    }
    Some(match tries {
        0 => TRIES_MAX,
        tries => tries.min(TRIES_MAX),
    })
}

/// 0 is no limit.
fn timeout(view: &View<'_>, problems: &mut Problems) -> Option<Option<Duration>> {
    let annotation = given(view, "proxy-next-upstream-timeout", problems)?;
    let seconds = atoi(annotation.value).and_then(|it| u64::try_from(it).ok());
    let seconds = seconds.filter(|seconds| *seconds <= TIME_MAX);
    let Some(seconds) = seconds else {
        problems.error(
            &view.subject,
            annotation.field(),
            "next-upstream-invalid",
            format!(
                "{:?} is no number of seconds from 0 to {TIME_MAX} (without a unit)",
                annotation.value
            ),
            "it counts as not set",
        );
        return None;
    };
    Some((seconds > 0).then(|| Duration::from_secs(seconds)))
}
