use splitter_tests::backend::Backend;

use super::before;

#[test]
fn pods_may_be_spoken_to_in_http_1_0() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("proxy-http-version", "1.0")]);
    let mut client = splitter.client();
    for _ in 0..2 {
        assert_eq!(client.get("a.test", "/").text(), "main");
        assert_eq!(backend.last().version(), "HTTP/1.0");
        assert_eq!(backend.last().field("connection"), Some("close"));
    }
    assert_eq!(backend.connections(), 2);
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.answer("POST").status, 200);
    assert_eq!(backend.last().body, b"hello");
}

/// HTTP/1.0 has no chunks, and bodies are not collected to be counted.
#[test]
fn a_body_without_a_length_cannot_go_there() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("proxy-http-version", "1.0")]);
    let mut client = splitter.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
    client.answer("POST").assert_own(411);
    assert_eq!(backend.seen().len(), 0);
}

#[test]
fn no_upgrade_either() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("proxy-http-version", "1.0")]);
    let fields = "Connection: upgrade\r\nUpgrade: websocket\r\n";
    assert_eq!(splitter.get_with("a.test", "/", fields).status, 200);
    assert_eq!(backend.last().field("upgrade"), None);
}

#[test]
fn another_version_is_reported_and_not_spoken() {
    for value in ["2", "1", "http/1.0"] {
        let backend = Backend::named("main");
        let splitter = before(&backend, &[("proxy-http-version", value)]);
        assert_eq!(splitter.get("a.test", "/").status, 200);
        assert_eq!(backend.last().version(), "HTTP/1.1");
        assert_eq!(splitter.problems(), ["web: http-version-invalid"]);
    }
}
