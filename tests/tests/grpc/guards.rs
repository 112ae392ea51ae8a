//! Who may call, with a real client: a refusal is one that gRPC knows, and reaches no pod.

use splitter_tests::backend::Backend;
use splitter_tests::cluster::base64;
use splitter_tests::tls::secret;
use tonic::Code;

use super::*;

async fn call(splitter: &Splitter, fields: &[(&'static str, &str)]) -> Result<String, Code> {
    let mut request = Request::new(Bytes::from_static(b"x"));
    for (name, value) in fields {
        request.metadata_mut().insert(*name, value.parse().unwrap());
    }
    let mut client = Client::of(splitter).await;
    let response = client.unary_with("Unary", request).await;
    let response = response.map_err(|status| status.code())?;
    Ok(String::from_utf8(response.into_inner().to_vec()).unwrap())
}

#[test]
fn who_may_not_call_is_told_so_and_reaches_no_pod() {
    let pod = Pod::named("pod");
    let service = Backend::scripted(|conversation| {
        while let Some(request) = conversation.request() {
            let head = match request.field("x-key") {
                Some("good") => "204 No Content",
                _ => "401 Unauthorized",
            };
            conversation.send(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n"));
        }
    });
    let url = format!("http://{}/", service.addr());
    let password = format!("Basic {}", base64("ann:secret"));
    let wrong = format!("Basic {}", base64("ann:other"));
    let basic: &[(&str, &str)] = &[("auth-type", "basic"), ("auth-secret", "users")];
    let external: &[(&str, &str)] = &[("auth-url", &url)];
    let deny: &[(&str, &str)] = &[("denylist-source-range", "127.0.0.0/8")];
    let class: &[(&str, &str)] = &[("splitter.io/traffic-class", "north-south")];
    let (none, no) = (&[][..], Code::Unauthenticated);
    let passes = || Ok("pod:x".to_owned());
    for (notes, fields, expected) in [
        (basic, none, Err(no)),
        (basic, &[("authorization", &*wrong)], Err(no)),
        (basic, &[("authorization", &*password)], passes()),
        (external, none, Err(no)),
        (external, &[("x-key", "good")], passes()),
        (deny, none, Err(Code::PermissionDenied)),
        (class, none, Err(Code::PermissionDenied)),
    ] {
        let before = pod.calls();
        let notes = [&[GRPC], notes].concat();
        let manifests = Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &notes)
            .service("app", &[pod.addr])
            .raw(&secret("users", &[("auth", "ann:{PLAIN}secret")]));
        let splitter = Splitter::start_with(&manifests, |it| it.names.allow_local = true);
        run(async { assert_eq!(call(&splitter, fields).await, expected, "{notes:?}") });
        assert_eq!(
            pod.calls() - before,
            usize::from(expected.is_ok()),
            "{notes:?}"
        );
    }
}
