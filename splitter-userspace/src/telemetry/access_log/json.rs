use std::time::Duration;

use http::HeaderName;
use http::header::{REFERER, USER_AGENT};

use super::stamp::Stamp;
use super::{digits, escape, version};
use crate::model::BackendKey;
use crate::telemetry::Record;
use crate::telemetry::side::{host_label, path_type};

/// One JSON object on one line. Fields without a value are left out.
pub(super) fn write(out: &mut Vec<u8>, record: &Record<'_>, stamp: &Stamp) {
    let mut object = Object::begin(out);
    object.key("time");
    object.out.push(b'"');
    stamp.iso(object.out);
    object.out.push(b'"');
    request(&mut object, record);
    main(&mut object, record);
    chosen(&mut object, record);
    upstream(&mut object, record);
    object.out.extend_from_slice(b"}\n");
}

fn request(object: &mut Object<'_>, record: &Record<'_>) {
    object.quoted("remote_addr", |out| digits::address(out, record.client));
    object.text("method", record.method.as_str());
    object.text("host", record.host);
    object.text("target", record.target);
    object.text("protocol", version(record.version));
    object.number("status", record.status);
    object.number("request_length", record.request_bytes);
    object.number("body_bytes_sent", record.response_bytes);
    object.seconds("request_time", Some(record.duration));
    object.header("referer", record, &REFERER);
    object.header("user_agent", record, &USER_AGENT);
    object.text("request_id", record.request_id);
    object.text("pool", record.pool);
    object.text("class", record.class);
    if let Some(fault) = record.fault {
        object.text("fault", fault);
    }
}

/// What dashboards know the request by, whoever answered.
fn main(object: &mut Object<'_>, record: &Record<'_>) {
    let Some((_, location)) = record.location else {
        return;
    };
    object.text("namespace", &location.ingress.namespace);
    object.text("ingress", &location.ingress.name);
    object.text("location_host", &host_label(&location.key.host));
    object.text("location_path", &location.key.path);
    object.text("location_path_type", path_type(location.key.kind));
    if let Some(key) = record.main().and_then(|side| side.backend) {
        object.text("service", &key.service);
        object.text("service_port", &key.port);
        object.backend("proxy_upstream_name", key);
    }
    if let Some(key) = record.canary().and_then(|side| side.backend) {
        object.backend("proxy_alternative_upstream_name", key);
    }
}

/// Who really was to answer, and why.
fn chosen(object: &mut Object<'_>, record: &Record<'_>) {
    if let Some(side) = record.chosen() {
        object.text("variant", &side.variant.name);
        object.text("chosen_ingress", &side.variant.ingress.name);
        object.text("chosen_service", side.service());
        object.text("chosen_port", side.port());
    }
    if let Some(reason) = record.reason() {
        object.text("reason", reason.as_str());
    }
}

fn upstream(object: &mut Object<'_>, record: &Record<'_>) {
    let Some(upstream) = &record.upstream else {
        return;
    };
    object.quoted("upstream_addr", |out| digits::socket(out, upstream.addr));
    object.number("upstream_tries", upstream.tries);
    object.seconds("upstream_connect_time", upstream.connect);
    object.seconds("upstream_header_time", upstream.header);
    object.seconds("upstream_response_time", Some(upstream.response));
    if let Some(status) = upstream.status {
        object.number("upstream_status", status);
    }
}

/// An object that is being written.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Object<'a> {
    fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Object { out, first: true }
    }

    /// The names are ours and need no escaping.
    fn key(&mut self, name: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn bytes(&mut self, name: &str, value: &[u8]) {
        self.key(name);
        self.out.push(b'"');
        escape::json(self.out, value);
        self.out.push(b'"');
    }

    fn text(&mut self, name: &str, value: &str) {
        self.bytes(name, value.as_bytes());
    }

    /// For values whose text has nothing to escape: addresses and names of objects.
    fn quoted(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(name);
        self.out.push(b'"');
        write(self.out);
        self.out.push(b'"');
    }

    /// As the key is displayed.
    fn backend(&mut self, name: &str, key: &BackendKey) {
        self.quoted(name, |out| {
            for part in [&*key.namespace, "-", &*key.service, "-", &*key.port] {
                out.extend_from_slice(part.as_bytes());
            }
        });
    }

    fn number(&mut self, name: &str, value: impl Into<u64>) {
        self.key(name);
        digits::decimal(self.out, value.into(), 1);
    }

    fn seconds(&mut self, name: &str, value: Option<Duration>) {
        if let Some(value) = value {
            self.key(name);
            digits::seconds(self.out, value);
        }
    }

    fn header(&mut self, name: &str, record: &Record<'_>, header: &HeaderName) {
        if let Some(value) = record.headers.get(header) {
            self.bytes(name, value.as_bytes());
        }
    }
}
