use http::{HeaderValue, Request, Version, request};

use super::*;
use crate::proxy::headers::{self, Forwarded, Survey};

fn parts(uri: &str, fields: &[(&'static str, &'static str)]) -> request::Parts {
    let mut request = Request::builder().uri(uri);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

const CLIENT: HeaderValue = HeaderValue::from_static("192.0.2.7");
const PORT: HeaderValue = HeaderValue::from_static("8080");
const HOST: HeaderValue = HeaderValue::from_static("A.test:8080");
const ID: HeaderValue = HeaderValue::from_static("0123456789abcdef0123456789abcdef");

/// As the proxy writes a request that needs no more than the usual changes.
fn as_it_came(parts: &request::Parts, length: BodyLength) -> String {
    let lines = headers::forwarded_lines(&CLIENT, &PORT, "http");
    let outgoing = Outgoing {
        parts,
        added: Some(Added {
            host: &HOST,
            request_id: &ID,
            lines: &lines,
            trailers: Survey::of(&parts.headers).trailers,
        }),
        length,
    };
    let mut out = Vec::new();
    outgoing.write(&mut out);
    String::from_utf8(out).unwrap()
}

/// The same by way of the header map, as it is for a Location with a policy.
fn by_the_map(mut parts: request::Parts, length: BodyLength) -> String {
    let hop = headers::strip_hop_by_hop(&mut parts.headers);
    let forwarded = Forwarded {
        client: &CLIENT,
        address: &CLIENT,
        host: &HOST,
        port: &PORT,
        scheme: "http",
        request_id: &ID,
        trust: false,
    };
    headers::set_forwarded(&mut parts.headers, &forwarded);
    if hop.trailers {
        parts
            .headers
            .insert("te", HeaderValue::from_static("trailers"));
        parts
            .headers
            .insert("connection", HeaderValue::from_static("te"));
    }
    let outgoing = Outgoing {
        parts: &parts,
        added: None,
        length,
    };
    let mut out = Vec::new();
    outgoing.write(&mut out);
    String::from_utf8(out).unwrap()
}

fn sorted(head: &str) -> Vec<&str> {
    let mut lines: Vec<_> = head.split("\r\n").collect();
    lines.sort_unstable();
    lines
}

const FIELDS: [&[(&str, &str)]; 5] = [
    &[
        ("host", "evil.test"),
        ("accept", "*/*"),
        ("user-agent", "me"),
    ],
    &[
        ("x-forwarded-for", "9.9.9.9"),
        ("x-forwarded-for", "8.8.8.8"),
        ("x-original-forwarded-for", "7.7.7.7"),
        ("x-real-ip", "1"),
        ("x-forwarded-host", "1"),
        ("x-forwarded-port", "1"),
        ("x-forwarded-proto", "1"),
        ("x-forwarded-scheme", "1"),
        ("x-scheme", "1"),
        ("x-request-id", "1"),
        ("proxy", "1"),
        ("expect", "100-continue"),
        ("x-forwarded-server", "stays"),
    ],
    &[
        ("connection", "keep-alive"),
        ("keep-alive", "5"),
        ("proxy-connection", "x"),
        ("te", "gzip, trailers"),
        ("upgrade", "h2c"),
        ("cookie", "a=b"),
        ("x-a", "1"),
        ("x-a", "2"),
    ],
    &[("content-length", "7"), ("content-type", "text/plain")],
    &[("transfer-encoding", "chunked"), ("trailer", "x")],
];

/// Both ways to write a request say the same.
#[test]
fn both_ways_agree() {
    for fields in FIELDS {
        for length in [BodyLength::None, BodyLength::Known(7), BodyLength::Chunked] {
            let parts = parts("/a?b=c", fields);
            let direct = as_it_came(&parts, length);
            let map = by_the_map(parts, length);
            assert_eq!(sorted(&direct), sorted(&map), "{fields:?}");
            for head in [direct, map] {
                assert!(head.starts_with("GET /a?b=c HTTP/1.1\r\nhost: A.test:8080\r\n"));
                assert!(head.ends_with("\r\n\r\n"));
            }
        }
    }
}

#[test]
fn the_length_is_told_once_and_by_the_proxy() {
    for (length, line) in [
        (BodyLength::None, None),
        (BodyLength::Known(0), Some("content-length: 0")),
        (
            BodyLength::Known(1_234_567),
            Some("content-length: 1234567"),
        ),
        (
            BodyLength::Known(u64::MAX),
            Some("content-length: 18446744073709551615"),
        ),
        (BodyLength::Chunked, Some("transfer-encoding: chunked")),
    ] {
        let claims = &[("content-length", "1"), ("transfer-encoding", "gzip")];
        let head = as_it_came(&parts("/", claims), length);
        let told: Vec<_> = head
            .split("\r\n")
            .filter(|line| line.starts_with("content-length") || line.starts_with("transfer"))
            .collect();
        assert_eq!(told, line.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn the_target_is_in_origin_form() {
    for (uri, target) in [
        ("/", "/"),
        ("/a%2Fb?c=/d", "/a%2Fb?c=/d"),
        ("http://a.test/x?y", "/x?y"),
        ("http://a.test", "/"),
        ("http://a.test?y", "/?y"),
    ] {
        let head = as_it_came(&parts(uri, &[]), BodyLength::None);
        let line = format!("GET {target} HTTP/1.1");
        assert_eq!(head.split("\r\n").next(), Some(line.as_str()));
    }
}

#[test]
fn a_backend_may_be_spoken_to_in_http10() {
    let mut parts = parts("/", &[("host", "a.test")]);
    parts.version = Version::HTTP_10;
    let outgoing = Outgoing {
        parts: &parts,
        added: None,
        length: BodyLength::None,
    };
    let mut out = Vec::new();
    outgoing.write(&mut out);
    assert_eq!(out, b"GET / HTTP/1.0\r\nhost: a.test\r\n\r\n");
}
