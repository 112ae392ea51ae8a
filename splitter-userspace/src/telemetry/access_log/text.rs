use std::fmt::Display;
use std::io::Write as _;

use http::header::{REFERER, USER_AGENT};

use super::stamp::Stamp;
use super::{escape, version};
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
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{} - - [", record.client);
    stamp.common(out);
    out.extend_from_slice(b"] \"");
    escape::text(out, record.method.as_str().as_bytes());
    out.push(b' ');
    escape::text(out, record.target.as_bytes());
    let _ = write!(
        out,
        " {}\" {} {} ",
        version(record.version),
        record.status,
        record.response_bytes
    );
    for name in [REFERER, USER_AGENT] {
        let value = record.headers.get(name);
        quoted(out, value.map_or(b"-", |value| value.as_bytes()));
        out.push(b' ');
    }
    let seconds = record.duration.as_secs_f64();
    let _ = write!(out, "{} {seconds:.3}", record.request_bytes);
}

/// `[main] [canary] addr length time status id`
fn upstream(out: &mut Vec<u8>, record: &Record<'_>) {
    let main = record.main().and_then(|side| side.backend);
    let canary = record.canary().and_then(|side| side.backend);
    bracketed(out, main, "-");
    bracketed(out, canary, "");
    if let Some(upstream) = &record.upstream {
        let seconds = upstream.response.as_secs_f64();
        let _ = write!(out, " {}", upstream.addr);
        or_dash(out, upstream.status.map(|_| record.response_bytes));
        let _ = write!(out, " {seconds:.3}");
        or_dash(out, upstream.status);
    } else {
        out.extend_from_slice(b" - - - -");
    }
    out.push(b' ');
    escape::text(out, record.request_id.as_bytes());
}

/// Who really answered and why.
fn own(out: &mut Vec<u8>, record: &Record<'_>) {
    out.extend_from_slice(b" host=");
    quoted(out, record.host.as_bytes());
    let _ = write!(out, " pool={} location=", record.pool);
    if let Some((_, location)) = record.location {
        out.push(b'"');
        escape::text(out, host_label(&location.key.host).as_bytes());
        escape::text(out, location.key.path.as_bytes());
        out.push(b'"');
        let _ = write!(
            out,
            " ingress={}/{}",
            location.ingress.namespace, location.ingress.name
        );
    } else {
        out.extend_from_slice(b"- ingress=-");
    }
    if let Some(side) = record.chosen() {
        let ingress = &side.variant.ingress;
        let _ = write!(
            out,
            " chosen_ingress={}/{} chosen_service={}:{} variant={}",
            ingress.namespace,
            ingress.name,
            side.service(),
            side.port(),
            side.variant.name
        );
    } else {
        out.extend_from_slice(b" chosen_ingress=- chosen_service=- variant=-");
    }
    let reason = record.reason().map_or("-", |reason| reason.as_str());
    let fault = record.fault.unwrap_or("-");
    let tries = record.upstream.map_or(0, |upstream| upstream.tries);
    let _ = write!(out, " reason={reason} tries={tries} fault={fault}");
}

fn quoted(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    escape::text(out, value);
    out.push(b'"');
}

fn bracketed(out: &mut Vec<u8>, key: Option<&BackendKey>, none: &str) {
    let _ = match key {
        Some(key) => write!(out, " [{key}]"),
        None => write!(out, " [{none}]"),
    };
}

fn or_dash(out: &mut Vec<u8>, value: Option<impl Display>) {
    let _ = match value {
        Some(value) => write!(out, " {value}"),
        None => write!(out, " -"),
    };
}
