//! How pods are spoken to: times, HTTP version, buffering.

use std::time::Duration;

use super::retry;
use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::atoi;
use crate::k8s::translate::report::Problems;
use crate::model::{Exchange, Protocol};

/// The longest time to connect: what nginx documents as the most that systems allow.
const CONNECT_MAX: i64 = 75;

/// The longest other time: what fits into 31 bits of milliseconds.
const TIME_MAX: i64 = 2_147_483;

pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Exchange {
    report_buffering(view, problems);
    Exchange {
        protocol: http_version(view, problems),
        connect_timeout: time(view, "proxy-connect-timeout", CONNECT_MAX, problems),
        read_timeout: time(view, "proxy-read-timeout", TIME_MAX, problems),
        send_timeout: time(view, "proxy-send-timeout", TIME_MAX, problems),
        retry: retry::read(view, problems),
    }
}

/// A number of seconds, at least 1. More than `most` counts as `most`.
fn time(view: &View<'_>, name: &str, most: i64, problems: &mut Problems) -> Option<Duration> {
    let annotation = given(view, name, problems)?;
    match atoi(annotation.value) {
        Some(seconds) if seconds > most => {
            problems.warn(
                &view.subject,
                annotation.field(),
                "timeout-too-long",
                format!("{seconds} s is more than {most} s, the longest that is allowed"),
                format!("it counts as {most} s"),
            );
            Some(Duration::from_secs(most.unsigned_abs()))
        }
        Some(seconds) if seconds > 0 => Some(Duration::from_secs(seconds.unsigned_abs())),
        _ => {
            problems.error(
                &view.subject,
                annotation.field(),
                "timeout-invalid",
                format!(
                    "{:?} is no whole number of seconds above 0 (without a unit)",
                    annotation.value
                ),
                "it counts as not set",
            );
            None
        }
    }
}

fn http_version(view: &View<'_>, problems: &mut Problems) -> Protocol {
    let Some(annotation) = given(view, "proxy-http-version", problems) else {
        return Protocol::default();
    };
    match annotation.value.trim() {
        "1.1" => Protocol::Http11,
        "1.0" => Protocol::Http10,
        other => {
            problems.error(
                &view.subject,
                annotation.field(),
                "http-version-invalid",
                format!("{other:?} is neither 1.0 nor 1.1"),
                "1.1 is spoken",
            );
            Protocol::default()
        }
    }
}

/// The annotations about nginx's buffers, each with the value that says what happens here anyway.
const BUFFERING: [(&str, Option<&str>); 7] = [
    ("client-body-buffer-size", None),
    ("proxy-buffer-size", None),
    ("proxy-buffering", Some("off")),
    ("proxy-buffers-number", None),
    ("proxy-busy-buffers-size", None),
    ("proxy-max-temp-file-size", Some("0")),
    ("proxy-request-buffering", Some("off")),
];

/// Says once that there are no buffers to set.
fn report_buffering(view: &View<'_>, problems: &mut Problems) {
    let set = BUFFERING.iter().filter_map(|(name, same)| {
        let annotation = view.annotations.get(name)?;
        (Some(annotation.value.trim()) != *same).then_some((*name, annotation))
    });
    let set: Vec<_> = set.collect();
    let Some((_, first)) = set.first() else {
        return;
    };
    let names: Vec<_> = set.iter().map(|(name, _)| *name).collect();
    problems.warn(
        &view.subject,
        first.field(),
        "buffering-unused",
        format!("no buffer can be set ({})", names.join(", ")),
        "bodies are passed on as they come, in both directions, whatever it says",
    );
}
