use splitter_tests::manifests::Manifests;

use super::*;

#[test]
fn needs_no_host() {
    let backend = Backend::named("main");
    let splitter = Splitter::start(
        &Manifests::new()
            .main("any", "", "/", "main")
            .service("main", &[backend.addr()]),
    );
    let mut client = splitter.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let answer = client.answer("GET");
    assert_eq!((answer.status, answer.text()), (200, "main".to_owned()));
    assert!(client.is_closed());
    assert_eq!(backend.last().line, "GET / HTTP/1.1");
    assert!(backend.last().field("host").is_some());
}

#[test]
fn without_a_host_belongs_to_no_host() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    client.answer("GET").assert_own(404);
    assert!(client.is_closed());
}

#[test]
fn with_a_transfer_coding_is_faulty() {
    refused(
        "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "bad-framing",
    );
}
