//! Canaries of gRPC services: the same rules, decided for each call.

use super::*;

fn split(stable: &Pod, canary: &Pod, rule: (&str, &str)) -> Splitter {
    Splitter::start(
        &Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &[GRPC])
            .canary("next", "a.test", "/", "app-next", &[rule])
            .service("app", &[stable.addr])
            .service("app-next", &[canary.addr]),
    )
}

/// On one connection of the client, and exactly.
#[test]
fn by_weight() {
    let (stable, canary) = (Pod::named("stable"), Pod::named("canary"));
    let splitter = split(&stable, &canary, ("canary-weight", "20"));
    run(async {
        let mut client = Client::of(&splitter).await;
        let mut next = 0;
        for _ in 0..100 {
            next += usize::from(client.unary("Unary", "").await.unwrap() == "canary:");
        }
        assert_eq!(next, 20);
    });
    assert_eq!((stable.calls(), canary.calls()), (80, 20));
}

#[test]
fn by_metadata() {
    let (stable, canary) = (Pod::named("stable"), Pod::named("canary"));
    let splitter = split(&stable, &canary, ("canary-by-header", "x-next"));
    run(async {
        let mut client = Client::of(&splitter).await;
        for (value, answer) in [
            ("always", "canary:"),
            ("never", "stable:"),
            ("?", "stable:"),
        ] {
            let mut request = Request::new(Bytes::new());
            request
                .metadata_mut()
                .insert("x-next", value.parse().unwrap());
            let response = client.unary_with("Unary", request).await.unwrap();
            assert_eq!(response.into_inner(), answer, "{value}");
        }
    });
}

/// A canary has no protocol of its own.
#[test]
fn the_mains_protocol_counts_for_both() {
    let (stable, canary) = (Pod::named("stable"), Pod::named("canary"));
    let notes = [("canary-weight", "100"), ("backend-protocol", "HTTP")];
    let splitter = Splitter::start(
        &Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &[GRPC])
            .canary("next", "a.test", "/", "app-next", &notes)
            .service("app", &[stable.addr])
            .service("app-next", &[canary.addr]),
    );
    run(async {
        let answer = Client::of(&splitter).await.unary("Unary", "").await;
        assert_eq!(answer.unwrap(), "canary:");
    });
    assert_eq!(splitter.problems(), ["next: annotation-unsupported"]);
}
