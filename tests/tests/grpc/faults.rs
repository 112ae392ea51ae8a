//! Pods that do not do their part, and clients that leave.

use std::time::Duration;

use splitter_tests::backend::{Backend, refusing};
use tonic::Code;

use super::*;

#[test]
fn who_refuses_is_unavailable() {
    let splitter = at(&[refusing()], &[]);
    run(async {
        let status = Client::of(&splitter)
            .await
            .unary("Unary", "")
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(
            status.message(),
            "the backend refused or broke the connection"
        );
    });
    assert_eq!(splitter.faults("upstream-refused"), 1.0);
}

#[test]
fn who_is_not_there_is_unavailable() {
    let splitter = at(&[], &[]);
    run(async {
        let status = Client::of(&splitter)
            .await
            .unary("Unary", "")
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(status.message(), "no endpoint is ready for this location");
    });
}

/// The HTTP status is ingress-nginx's, beside gRPC's own.
#[test]
fn the_http_status_is_told_as_well() {
    let splitter = at(&[refusing()], &[]);
    let ask = |kind: &str| {
        let mut client = splitter.client();
        client.send(format!(
            "POST /t.Echo/Unary HTTP/1.1\r\nHost: a.test\r\nContent-Type: {kind}\r\n\
             Content-Length: 5\r\n\r\n\0\0\0\0\0"
        ));
        client.answer("POST")
    };
    let answer = ask("application/grpc+proto");
    assert_eq!(answer.status, 502);
    assert_eq!(answer.field("grpc-status"), Some("14"));
    assert_eq!(answer.field("content-type"), Some("application/grpc"));
    ask("text/plain").assert_own(502);
}

#[test]
fn an_endpoint_that_refuses_is_passed_by() {
    let pod = Pod::named("pod");
    let splitter = at(&[refusing(), pod.addr], &[]);
    run(async {
        let mut client = Client::of(&splitter).await;
        for _ in 0..10 {
            assert_eq!(client.unary("Unary", "x").await.unwrap(), "pod:x");
        }
    });
}

#[test]
fn who_speaks_http_1_is_unavailable() {
    let backend = Backend::named("main");
    let splitter = at(&[backend.addr()], &[]);
    run(async {
        let status = Client::of(&splitter)
            .await
            .unary("Unary", "")
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
    });
}

/// No request is sent before the pod has shown that it speaks HTTP/2, so that one with a body can
/// go to another.
#[test]
fn who_speaks_http_1_is_passed_by() {
    let (backend, pod) = (Backend::named("main"), Pod::named("pod"));
    let splitter = at(&[backend.addr(), pod.addr], &[]);
    run(async {
        let mut client = Client::of(&splitter).await;
        for _ in 0..10 {
            assert_eq!(client.unary("Unary", "x").await.unwrap(), "pod:x");
        }
    });
    assert!(backend.connections() > 0, "it was tried");
}

#[test]
fn who_accepts_and_says_nothing_is_unavailable() {
    let backend = Backend::scripted(|conversation| conversation.wait_for_close());
    let splitter = at(&[backend.addr()], &[("proxy-connect-timeout", "1")]);
    run(async {
        let status = Client::of(&splitter)
            .await
            .unary("Unary", "")
            .await
            .unwrap_err();
        assert_eq!(status.message(), "the backend did not accept in time");
    });
    assert_eq!(splitter.faults("connect-timeout"), 1.0);
}

#[test]
fn who_takes_too_long_is_unavailable_and_hears_of_it() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[("proxy-read-timeout", "1")]);
    run(async {
        let mut client = Client::of(&splitter).await;
        let status = client.unary("Hang", "").await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(status.message(), "the backend did not answer in time");
        eventually("the pod's call is cancelled", || pod.open() == 0).await;
        // The connection goes on.
        assert_eq!(client.unary("Unary", "x").await.unwrap(), "pod:x");
    });
    assert_eq!(splitter.faults("upstream-timeout"), 1.0);
}

#[test]
fn a_clients_deadline_reaches_the_pod() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    run(async {
        let mut client = Client::of(&splitter).await;
        let mut request = Request::new(Bytes::new());
        request.set_timeout(Duration::from_millis(300));
        let status = client.unary_with("Hang", request).await.unwrap_err();
        assert!(
            matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded),
            "{status:?}"
        );
        eventually("the pod's call is over", || pod.open() == 0).await;
        assert_eq!(client.unary("Unary", "x").await.unwrap(), "pod:x");
    });
}

#[test]
fn a_client_that_gives_up_cancels_the_pods_call() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    run(async {
        let mut client = Client::of(&splitter).await;
        // Before an answer.
        let mut other = client.clone();
        let call = tokio::spawn(async move { other.unary("Hang", "").await });
        eventually("the call has reached the pod", || pod.open() == 1).await;
        call.abort();
        eventually("it is cancelled", || pod.open() == 0).await;
        // In the middle of one.
        let mut messages = client.stream("1000000,1000").await.unwrap();
        assert!(messages.message().await.unwrap().is_some());
        drop(messages);
        eventually("it is cancelled", || pod.open() == 0).await;
        assert_eq!(client.unary("Unary", "x").await.unwrap(), "pod:x");
    });
}

#[test]
fn a_client_whose_connection_breaks_cancels_the_pods_call() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    run(async {
        let mut client = Client::of(&splitter).await;
        let call = tokio::spawn(async move { client.unary("Hang", "").await });
        eventually("the call has reached the pod", || pod.open() == 1).await;
        call.abort();
        let _ = call.await;
        eventually("it is cancelled", || pod.open() == 0).await;
    });
}

#[test]
fn a_message_that_is_too_large_is_refused() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[("proxy-body-size", "10k")]);
    run(async {
        let mut client = Client::of(&splitter).await;
        assert!(client.unary("Unary", &"x".repeat(9_000)).await.is_ok());
        let status = client
            .unary("Unary", &"x".repeat(11_000))
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(client.unary("Unary", "x").await.is_ok());
    });
    assert_eq!(splitter.faults("body-too-large"), 1.0);
}

/// A pod that goes away is replaced by another connection, without anybody noticing.
#[test]
fn a_pod_that_restarts_is_found_again() {
    let splitter;
    {
        let pod = Pod::named("first");
        splitter = before(&[&pod], &[]);
        run(async {
            let answer = Client::of(&splitter).await.unary("Unary", "").await;
            assert_eq!(answer.unwrap(), "first:");
        });
    }
    let pod = Pod::named("second");
    splitter.apply(
        &Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &[GRPC])
            .service("app", &[pod.addr]),
    );
    run(async {
        let mut client = Client::of(&splitter).await;
        let began = std::time::Instant::now();
        while client.unary("Unary", "").await.is_err() {
            assert!(began.elapsed() < splitter_tests::PATIENCE);
        }
        assert_eq!(client.unary("Unary", "").await.unwrap(), "second:");
    });
}
