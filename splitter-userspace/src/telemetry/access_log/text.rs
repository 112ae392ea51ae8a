use http::header::{REFERER, USER_AGENT};

use super::stamp::Stamp;
use super::{digits, escape, version};
use crate::model::BackendKey;
use crate::telemetry::Record;
use crate::telemetry::side::host_label;

/// One line in ingress-nginx's default format, with our own fields after it.
pub(super) fn write(out: &mut Vec<u8>, record: &Record<'_>, stamp: &Stamp) {
    client(out, record, stamp);
    upstream(out, record);
    own(out, record);
    out.push(b'\n');
}

/// `addr - user [time] "request" status bytes "referer" "agent" length time`
fn client(out: &mut Vec<u8>, record: &Record<'_>, stamp: &Stamp) {
    digits::address(out, record.client);
    words(out, [" - - ["]);
    stamp.common(out);
    words(out, ["] \""]);
    escape::text(out, record.method.as_str().as_bytes());
    out.push(b' ');
    escape::text(out, record.target.as_bytes());
    words(out, [" ", version(record.version), "\" "]);
    digits::decimal(out, record.status.into(), 1);
    out.push(b' ');
    digits::decimal(out, record.response_bytes, 1);
    out.push(b' ');
    for name in [REFERER, USER_AGENT] {
        let value = record.headers.get(name);
        quoted(out, value.map_or(b"-", |value| value.as_bytes()));
        out.push(b' ');
    }
    digits::decimal(out, record.request_bytes, 1);
    out.push(b' ');
    digits::millis(out, record.duration);
}

/// `[main] [canary] addr length time status id`
fn upstream(out: &mut Vec<u8>, record: &Record<'_>) {
    let main = record.main().and_then(|side| side.backend);
    let canary = record.canary().and_then(|side| side.backend);
    bracketed(out, main, "-");
    bracketed(out, canary, "");
    if let Some(upstream) = &record.upstream {
        out.push(b' ');
        digits::socket(out, upstream.addr);
        or_dash(out, upstream.status.map(|_| record.response_bytes));
        out.push(b' ');
        digits::millis(out, upstream.response);
        or_dash(out, upstream.status.map(u64::from));
    } else {
        words(out, [" - - - -"]);
    }
    out.push(b' ');
    escape::text(out, record.request_id.as_bytes());
}

/// Who really answered and why.
fn own(out: &mut Vec<u8>, record: &Record<'_>) {
    words(out, [" host="]);
    quoted(out, record.host.as_bytes());
    words(out, [" pool=", record.pool, " location="]);
    if let Some((_, location)) = record.location {
        out.push(b'"');
        escape::text(out, host_label(&location.key.host).as_bytes());
        escape::text(out, location.key.path.as_bytes());
        let ingress = &location.ingress;
        words(
            out,
            ["\" ingress=", &*ingress.namespace, "/", &*ingress.name],
        );
    } else {
        words(out, ["- ingress=-"]);
    }
    if let Some(side) = record.chosen() {
        let ingress = &side.variant.ingress;
        words(
            out,
            [
                " chosen_ingress=",
                &*ingress.namespace,
                "/",
                &*ingress.name,
                " chosen_service=",
                side.service(),
                ":",
                side.port(),
                " variant=",
                &*side.variant.name,
            ],
        );
    } else {
        words(out, [" chosen_ingress=- chosen_service=- variant=-"]);
    }
    let reason = record.reason().map_or("-", |reason| reason.as_str());
    words(out, [" reason=", reason, " tries="]);
    let tries = record.upstream.map_or(0, |upstream| upstream.tries);
    digits::decimal(out, tries.into(), 1);
    words(out, [" fault=", record.fault.unwrap_or("-")]);
}

/// Words of ours and names of objects, which have nothing to escape.
#[inline]
fn words<const N: usize>(out: &mut Vec<u8>, words: [&str; N]) {
    for word in words {
        out.extend_from_slice(word.as_bytes());
    }
}

fn quoted(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    escape::text(out, value);
    out.push(b'"');
}

/// A backend as it is displayed.
fn bracketed(out: &mut Vec<u8>, key: Option<&BackendKey>, none: &str) {
    match key {
        Some(key) => words(
            out,
            [
                " [",
                &*key.namespace,
                "-",
                &*key.service,
                "-",
                &*key.port,
                "]",
            ],
        ),
        None => words(out, [" [", none, "]"]),
    }
}

fn or_dash(out: &mut Vec<u8>, value: Option<u64>) {
    out.push(b' ');
    match value {
        Some(value) => digits::decimal(out, value, 1),
        None => out.push(b'-'),
    }
}
