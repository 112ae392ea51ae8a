use super::*;

#[test]
fn an_unknown_location_is_404() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let mut request = get("/");
        *request.uri_mut() = "http://nobody.test/".parse().expect("a URI");
        assert_own(connection.send(request).await.expect("an answer"), 404).await;
        // The connection goes on.
        assert_eq!(text(connection.get("/").await).await, "main");
    });
}

#[test]
fn authority_and_host_must_not_disagree() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let mut request = get("/");
        let host = HeaderValue::from_static("b.test");
        request.headers_mut().insert(HOST, host);
        assert_own(connection.send(request).await.expect("an answer"), 400).await;
        let mut request = get("/");
        let host = HeaderValue::from_static("a.test");
        request.headers_mut().insert(HOST, host);
        let response = connection.send(request).await.expect("an answer");
        assert_eq!(text(response).await, "main");
    });
    assert_eq!(backend.seen().len(), 1);
    assert_eq!(backend.last().field("host"), Some("a.test"));
}

#[test]
fn odd_paths_are_judged_alike() {
    let (main, admin) = (Backend::named("main"), Backend::named("admin"));
    let splitter = Splitter::start(
        &splitter_tests::manifests::Manifests::new()
            .main("main", "a.test", "/", "main")
            .main("admin", "a.test", "/admin", "admin")
            .service("main", &[main.addr()])
            .service("admin", &[admin.addr()]),
    );
    run(async {
        let mut connection = Connection::open(&splitter).await;
        for path in ["/x/../admin", "//admin", "/x/%2e%2e/admin"] {
            assert_own(connection.get(path).await, 400).await;
        }
    });
    assert_eq!(main.seen(), []);
}

#[test]
fn connect_is_not_served() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let mut request = get("/");
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = "a.test:80".parse().expect("a URI");
        let response = connection.send(request).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    });
    assert_eq!(backend.connections(), 0);
}

#[test]
fn a_head_beyond_the_limit_is_refused() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let mut request = get("/");
        for i in 0..20 {
            let name = hyper::header::HeaderName::try_from(format!("x-{i}"));
            let value = HeaderValue::try_from("y".repeat(5000));
            request
                .headers_mut()
                .insert(name.expect("a name"), value.expect("a value"));
        }
        match connection.send(request).await {
            Ok(response) => assert_eq!(response.status(), 431),
            Err(e) => assert!(!e.is_timeout(), "{e:?}"),
        }
    });
    assert_eq!(backend.connections(), 0);
}

/// RFC 9113 8.2.3: HTTP/2 may split Cookie; HTTP/1 servers expect it whole.
#[test]
fn a_split_cookie_is_joined() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let mut request = get("/");
        for crumb in ["a=1", "b=2", "c=3"] {
            let crumb = HeaderValue::from_static(crumb);
            request.headers_mut().append("cookie", crumb);
        }
        connection.send(request).await.expect("an answer");
    });
    assert_eq!(backend.last().all("cookie"), ["a=1; b=2; c=3"]);
}

#[test]
fn a_part_of_a_split_cookie_decides() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = Splitter::start(
        &splitter_tests::manifests::Manifests::new()
            .main("main", "a.test", "/", "main")
            .canary(
                "canary",
                "a.test",
                "/",
                "canary",
                &[("canary-by-cookie", "try")],
            )
            .service("main", &[main.addr()])
            .service("canary", &[canary.addr()]),
    );
    run(async {
        let mut connection = Connection::open(&splitter).await;
        let mut request = get("/");
        for crumb in ["a=1", "try=always", "c=3"] {
            let crumb = HeaderValue::from_static(crumb);
            request.headers_mut().append("cookie", crumb);
        }
        let response = connection.send(request).await.expect("an answer");
        assert_eq!(text(response).await, "canary");
    });
}
