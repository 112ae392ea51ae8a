//! Streams on shared connections.

use splitter_tests::backend::Backend;

use super::*;

/// Many calls at once: more than one connection takes, each answered.
async fn at_once(client: &Client, calls: usize) {
    let calls: Vec<_> = (0..calls)
        .map(|index| {
            let mut client = client.clone();
            tokio::spawn(async move { client.unary("Unary", &index.to_string()).await })
        })
        .collect();
    for (index, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap(), format!("pod:{index}"));
    }
}

#[test]
fn calls_at_once_are_all_answered() {
    let pod = Pod::named("pod");
    let splitter = before(&[&pod], &[]);
    run(async {
        let client = Client::of(&splitter).await;
        at_once(&client, 100).await;
        at_once(&client, 500).await;
    });
    assert_eq!(pod.calls(), 600);
}

/// A pod's own limit of streams is kept, by more connections.
#[test]
fn a_pod_that_allows_few_streams_gets_more_connections() {
    let pod = Pod::with_streams("pod", Some(2));
    let splitter = before(&[&pod], &[]);
    run(async {
        let client = Client::of(&splitter).await;
        // Tells the limit.
        assert!(client.clone().unary("Unary", "").await.is_ok());
        let hanging: Vec<_> = (0..5)
            .map(|_| {
                let mut client = client.clone();
                tokio::spawn(async move { client.unary("Hang", "").await })
            })
            .collect();
        eventually("all have reached the pod", || pod.open() == 5).await;
        assert_eq!(client.clone().unary("Unary", "x").await.unwrap(), "pod:x");
        for call in &hanging {
            call.abort();
        }
        eventually("all are cancelled", || pod.open() == 0).await;
    });
}

#[test]
fn calls_share_a_connection() {
    // Counts connections, and speaks no word of HTTP/2 but the preface.
    let backend = Backend::scripted(|conversation| {
        let preface = conversation.read(24);
        assert_eq!(preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        conversation.send([0, 0, 0, 4, 0, 0, 0, 0, 0]);
        conversation.wait_for_close();
    });
    let splitter = at(&[backend.addr()], &[("proxy-read-timeout", "1")]);
    run(async {
        let client = Client::of(&splitter).await;
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let mut client = client.clone();
                tokio::spawn(async move { client.unary("Unary", "").await })
            })
            .collect();
        for call in calls {
            assert!(call.await.unwrap().is_err());
        }
    });
    assert_eq!(backend.connections(), 1);
}
