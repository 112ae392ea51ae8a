use std::time::Duration;

use http::HeaderName;
use http::header::{REFERER, USER_AGENT};

use super::stamp::Stamp;
use super::{digits, escape, version};
use crate::model::BackendKey;
use crate::telemetry::Record;
use crate::telemetry::side::{host_label, path_type};

/// A key with what stands around it, in one piece. The names are ours and need no escaping.
macro_rules! key {
    ($name:literal) => {
        Key(concat!(",\"", $name, "\":"))
    };
}

/// One JSON object on one line. Fields without a value are left out.
pub(super) fn write(out: &mut Vec<u8>, record: &Record<'_>, stamp: &Stamp) {
    out.extend_from_slice(b"{\"time\":\"");
    stamp.iso(out);
    out.push(b'"');
    let mut object = Object { out };
    request(&mut object, record);
    main(&mut object, record);
    chosen(&mut object, record);
    upstream(&mut object, record);
    out.extend_from_slice(b"}\n");
}

fn request(object: &mut Object<'_>, record: &Record<'_>) {
    object.quoted(key!("remote_addr"), |out| {
        digits::address(out, record.client)
    });
    object.plain(key!("method"), record.method.as_str());
    object.text(key!("host"), record.host);
    object.text(key!("target"), record.target);
    object.plain(key!("protocol"), version(record.version));
    object.number(key!("status"), record.status);
    object.number(key!("request_length"), record.request_bytes);
    object.number(key!("body_bytes_sent"), record.response_bytes);
    object.seconds(key!("request_time"), Some(record.duration));
    object.header(key!("referer"), record, &REFERER);
    object.header(key!("user_agent"), record, &USER_AGENT);
    object.text(key!("request_id"), record.request_id);
    object.plain(key!("pool"), record.pool);
    object.plain(key!("class"), record.class);
    if let Some(fault) = record.fault {
        object.plain(key!("fault"), fault);
    }
}

/// What dashboards know the request by, whoever answered.
fn main(object: &mut Object<'_>, record: &Record<'_>) {
    let Some((_, location)) = record.location else {
        return;
    };
    object.text(key!("namespace"), &location.ingress.namespace);
    object.text(key!("ingress"), &location.ingress.name);
    object.text(key!("location_host"), &host_label(&location.key.host));
    object.text(key!("location_path"), &location.key.path);
    object.plain(key!("location_path_type"), path_type(location.key.kind));
    if let Some(key) = record.main().and_then(|side| side.backend) {
        object.text(key!("service"), &key.service);
        object.text(key!("service_port"), &key.port);
        object.backend(key!("proxy_upstream_name"), key);
    }
    if let Some(key) = record.canary().and_then(|side| side.backend) {
        object.backend(key!("proxy_alternative_upstream_name"), key);
    }
}

/// Who really was to answer, and why.
fn chosen(object: &mut Object<'_>, record: &Record<'_>) {
    if let Some(side) = record.chosen() {
        object.text(key!("variant"), &side.variant.name);
        object.text(key!("chosen_ingress"), &side.variant.ingress.name);
        object.text(key!("chosen_service"), side.service());
        object.text(key!("chosen_port"), side.port());
    }
    if let Some(reason) = record.reason() {
        object.plain(key!("reason"), reason.as_str());
    }
}

fn upstream(object: &mut Object<'_>, record: &Record<'_>) {
    let Some(upstream) = &record.upstream else {
        return;
    };
    object.quoted(key!("upstream_addr"), |out| {
        digits::socket(out, upstream.addr)
    });
    object.number(key!("upstream_tries"), upstream.tries);
    object.seconds(key!("upstream_connect_time"), upstream.connect);
    object.seconds(key!("upstream_header_time"), upstream.header);
    object.seconds(key!("upstream_response_time"), Some(upstream.response));
    if let Some(status) = upstream.status {
        object.number(key!("upstream_status"), status);
    }
}

/// See [`key`].
#[derive(Clone, Copy)]
struct Key(&'static str);

/// An object that is being written, behind its first field.
struct Object<'a> {
    out: &'a mut Vec<u8>,
}

impl Object<'_> {
    #[inline]
    fn key(&mut self, Key(key): Key) {
        self.out.extend_from_slice(key.as_bytes());
    }

    fn bytes(&mut self, key: Key, value: &[u8]) {
        self.quoted(key, |out| escape::json(out, value));
    }

    fn text(&mut self, key: Key, value: &str) {
        self.bytes(key, value.as_bytes());
    }

    /// Words of ours, which have nothing to escape. Names of objects may have, in files.
    fn plain(&mut self, key: Key, value: &str) {
        self.quoted(key, |out| out.extend_from_slice(value.as_bytes()));
    }

    /// For values whose text has nothing to escape.
    #[inline]
    fn quoted(&mut self, key: Key, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(key);
        self.out.push(b'"');
        write(self.out);
        self.out.push(b'"');
    }

    /// As the key is displayed.
    fn backend(&mut self, key: Key, backend: &BackendKey) {
        self.quoted(key, |out| {
            for part in [
                &*backend.namespace,
                "-",
                &*backend.service,
                "-",
                &*backend.port,
            ] {
                escape::json(out, part.as_bytes());
            }
        });
    }

    fn number(&mut self, key: Key, value: impl Into<u64>) {
        self.key(key);
        digits::decimal(self.out, value.into(), 1);
    }

    fn seconds(&mut self, key: Key, value: Option<Duration>) {
        if let Some(value) = value {
            self.key(key);
            digits::seconds(self.out, value);
        }
    }

    fn header(&mut self, key: Key, record: &Record<'_>, header: &HeaderName) {
        if let Some(value) = record.headers.get(header) {
            self.bytes(key, value.as_bytes());
        }
    }
}
