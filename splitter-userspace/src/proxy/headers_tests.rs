use super::*;

fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

fn forwarded<'a>(client: &'a HeaderValue, host: &'a HeaderValue, trust: bool) -> Forwarded<'a> {
    Forwarded {
        client,
        address: client,
        host,
        port: client,
        scheme: "http",
        request_id: client,
        trust,
    }
}

#[test]
fn hop_by_hop_fields_and_those_named_by_connection_go() {
    let mut headers = map(&[
        ("connection", "keep-alive, X-Drop"),
        ("connection", "x-drop-too"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("te", "trailers, deflate"),
        ("upgrade", "websocket"),
        ("x-drop", "1"),
        ("x-drop-too", "1"),
        ("x-keep", "1"),
        ("trailer", "x-sum"),
    ]);
    let found = strip_hop_by_hop(&mut headers);
    assert_eq!(headers, map(&[("x-keep", "1"), ("trailer", "x-sum")]));
    assert_eq!(
        found.upgrade, None,
        "an Upgrade that Connection does not name is none"
    );
    assert!(found.trailers);
}

#[test]
fn connection_cannot_name_away_what_frames_the_message() {
    let mut headers = map(&[
        ("connection", "close, host, content-length"),
        ("host", "a"),
        ("content-length", "3"),
    ]);
    strip_hop_by_hop(&mut headers);
    assert_eq!(headers, map(&[("host", "a"), ("content-length", "3")]));
}

#[test]
fn an_upgrade_is_found_and_cleartext_http2_is_not_one() {
    let mut headers = map(&[("connection", "Upgrade"), ("upgrade", "websocket")]);
    let upgrade = strip_hop_by_hop(&mut headers).upgrade;
    assert_eq!(upgrade, Some(HeaderValue::from_static("websocket")));
    assert!(may_upgrade(&HeaderValue::from_static("websocket")));
    assert!(!may_upgrade(&HeaderValue::from_static("h2c")));
    assert!(!may_upgrade(&HeaderValue::from_static("foo, H2C")));
}

#[test]
fn what_the_client_says_of_itself_is_not_believed() {
    let (client, host) = (
        HeaderValue::from_static("192.0.2.1"),
        HeaderValue::from_static("a:80"),
    );
    let mut headers = map(&[
        ("x-forwarded-for", "10.0.0.1"),
        ("x-real-ip", "10.0.0.1"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "evil"),
        ("x-request-id", "mine"),
        ("proxy", "evil"),
        ("expect", "100-continue"),
    ]);
    set_forwarded(&mut headers, &forwarded(&client, &host, false));
    for (name, value) in [
        ("x-forwarded-for", "192.0.2.1"),
        ("x-original-forwarded-for", "10.0.0.1"),
        ("x-real-ip", "192.0.2.1"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-scheme", "http"),
        ("x-scheme", "http"),
        ("x-forwarded-host", "a:80"),
        ("host", "a:80"),
        ("x-request-id", "192.0.2.1"),
    ] {
        assert_eq!(
            headers.get(name).map(HeaderValue::as_bytes),
            Some(value.as_bytes()),
            "{name}"
        );
    }
    assert!(!headers.contains_key("proxy") && !headers.contains_key("expect"));
}

#[test]
fn a_claim_of_an_original_address_without_one_goes() {
    let client = HeaderValue::from_static("192.0.2.1");
    let mut headers = map(&[("x-original-forwarded-for", "10.0.0.1")]);
    set_forwarded(&mut headers, &forwarded(&client, &client, false));
    assert!(!headers.contains_key("x-original-forwarded-for"));
}

#[test]
fn a_trusted_balancer_is_believed_and_the_peer_is_added() {
    let (client, host) = (
        HeaderValue::from_static("192.0.2.1"),
        HeaderValue::from_static("a"),
    );
    let mut headers = map(&[
        ("x-forwarded-for", "203.0.113.9, 198.51.100.1"),
        ("x-forwarded-for", "198.51.100.2"),
        ("x-forwarded-proto", "https"),
    ]);
    set_forwarded(&mut headers, &forwarded(&client, &host, true));
    for (name, value) in [
        (
            "x-forwarded-for",
            "203.0.113.9, 198.51.100.1, 198.51.100.2, 192.0.2.1",
        ),
        ("x-real-ip", "192.0.2.1"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "a"),
    ] {
        assert_eq!(
            headers.get(name).map(HeaderValue::as_bytes),
            Some(value.as_bytes()),
            "{name}"
        );
    }
}
