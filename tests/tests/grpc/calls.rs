//! Each kind of call.

use tonic::Code;
use tonic::codegen::tokio_stream;

use super::*;

#[test]
fn one_message_each_way_with_its_metadata() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    run(async {
        let mut client = Client::of(&splitter).await;
        let mut request = Request::new(Bytes::from_static(b"hello"));
        request
            .metadata_mut()
            .insert("x-ask", "this".parse().unwrap());
        let response = client.unary_with("Unary", request).await.unwrap();
        assert_eq!(response.metadata().get("x-told").unwrap(), "this");
        assert_eq!(response.metadata().get("x-host").unwrap(), "a.test");
        assert_eq!(response.into_inner(), "pod:hello");
    });
    assert_eq!(splitter.problems(), [""; 0]);
}

#[test]
fn many_messages_from_the_pod() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    run(async {
        let mut messages = Client::of(&splitter)
            .await
            .stream("100,5000")
            .await
            .unwrap();
        let mut count = 0u8;
        while let Some(message) = messages.message().await.unwrap() {
            assert!(message.len() == 5000 && message.iter().all(|byte| *byte == count));
            count += 1;
        }
        assert_eq!(count, 100);
    });
}

#[test]
fn many_messages_from_the_client() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    run(async {
        let mut client = Client::of(&splitter).await;
        client.ready().await;
        let messages = tokio_stream::iter((0..100).map(|_| Bytes::from(vec![7; 5000])));
        let request = Request::new(messages);
        let response = client
            .0
            .client_streaming(request, path("Collect"), Raw)
            .await;
        assert_eq!(response.unwrap().into_inner(), "100,500000");
    });
}

/// Each answer comes before the next message is sent.
#[test]
fn messages_both_ways_in_turn() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    run(async {
        let mut client = Client::of(&splitter).await;
        client.ready().await;
        let (say, said) = tokio::sync::mpsc::channel(1);
        let request = Request::new(tokio_stream::wrappers::ReceiverStream::new(said));
        let response = client.0.streaming(request, path("Both"), Raw).await;
        let mut answers = response.unwrap().into_inner();
        for index in 0..50 {
            let message = Bytes::from(format!("message {index}"));
            say.send(message.clone()).await.unwrap();
            assert_eq!(answers.message().await.unwrap(), Some(message));
        }
        drop(say);
        assert_eq!(answers.message().await.unwrap(), None);
        assert!(answers.trailers().await.unwrap().is_some());
    });
}

#[test]
fn a_status_without_a_message() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    run(async {
        let refused = Client::of(&splitter).await.unary("Refuse", "").await;
        let status = refused.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(status.message(), "not today, \u{fc}ber");
    });
}

#[test]
fn a_status_behind_messages() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    run(async {
        let mut messages = Client::of(&splitter).await.stream("3,10,5").await.unwrap();
        for _ in 0..3 {
            assert!(messages.message().await.unwrap().is_some());
        }
        let status = messages.message().await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::NotFound, "that was all")
        );
        assert_eq!(status.metadata().get("x-end").unwrap(), "told");
    });
}

/// The pod is asked for no more than the client takes: windows, not memory, hold the rest.
#[test]
fn a_slow_reader_slows_the_pod() {
    const MESSAGES: usize = 200;
    const SIZE: usize = 100_000;
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    run(async {
        let mut client = Client::of(&splitter).await;
        let ask = format!("{MESSAGES},{SIZE}");
        let mut messages = client.stream(&ask).await.unwrap();
        assert!(messages.message().await.unwrap().is_some());
        // Others are not held up.
        for _ in 0..20 {
            assert_eq!(client.unary("Unary", "x").await.unwrap(), "pod:x");
        }
        let held = pod.sent();
        assert!(held < MESSAGES / 2, "{held} messages are on their way");
        let mut count = 1;
        while let Some(message) = messages.message().await.unwrap() {
            assert_eq!(message.len(), SIZE);
            count += 1;
        }
        assert_eq!(count, MESSAGES);
    });
}

/// Ordinary HTTP goes there too: what speaks HTTP/2 need not be gRPC.
#[test]
fn clients_of_http_1_are_served_as_well() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    let mut client = splitter.client();
    client.send(
        "POST /t.Echo/Refuse HTTP/1.1\r\nHost: a.test\r\nTE: trailers\r\nConnection: te\r\n\
         Content-Type: application/grpc\r\nContent-Length: 5\r\n\r\n\0\0\0\0\0",
    );
    let answer = client.answer("POST");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("grpc-status"), Some("9"));
}
