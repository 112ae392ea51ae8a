#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use clap::Parser;

use super::*;
use crate::k8s::Objects;
use crate::model::{Kind, Severity};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ExplainArgs,
}

fn args(line: &[&str]) -> Result<ExplainArgs, String> {
    let line = ["explain", "--manifests", "dir"].iter().chain(line);
    Line::try_parse_from(line)
        .map(|line| line.args)
        .map_err(|error| error.to_string())
}

const MANIFESTS: &str = r#"
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  ingressClassName: nginx
  rules:
  - host: shop.example
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: app, port: {number: 80}}}}
      - {path: /cart, pathType: Exact, backend: {service: {name: app, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web-canary
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/canary: "true"
    nginx.ingress.kubernetes.io/canary-weight: "5"
    nginx.ingress.kubernetes.io/canary-by-header: X-Canary
    nginx.ingress.kubernetes.io/canary-by-cookie: canary
spec:
  ingressClassName: nginx
  rules:
  - host: shop.example
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: app-canary, port: {number: 80}}}}
---
apiVersion: v1
kind: Service
metadata: {name: app, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: app-canary, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app-1, namespace: shop, labels: {kubernetes.io/service-name: app}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.0.0.1], conditions: {ready: true}}]
"#;

fn snapshot() -> Snapshot {
    let (objects, problems): (Objects, _) = Manifests::from_text("test", MANIFESTS);
    assert_eq!(problems, []);
    translate(&objects, &ClassSettings::default()).snapshot
}

fn problem(namespace: &str) -> Problem {
    Problem {
        severity: Severity::Warning,
        object: ObjectRef::new(Kind::Ingress, namespace, "stray"),
        source: String::new(),
        field: "spec".to_owned(),
        code: "test",
        message: "odd".to_owned(),
        effect: "left out".to_owned(),
    }
}

fn print(line: &[&str], problems: &[Problem]) -> String {
    let mut out = Vec::new();
    args(line)
        .unwrap()
        .print(&snapshot(), &BTreeMap::new(), problems, &mut out)
        .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn text_for_people() {
    let line = [
        "--host",
        "Shop.example:8080",
        "--path",
        "/cart/1?x=1",
        "--method",
        "POST",
        "--header",
        "x-canary: maybe",
        "--cookie",
        "a=b",
        "--cookie",
        "canary=always",
    ];
    insta::assert_snapshot!(print(&line, &[problem("shop"), problem("other")]));
}

#[test]
fn text_by_weight() {
    insta::assert_snapshot!(print(&["--host", "shop.example", "--path", "/"], &[]));
}

#[test]
fn text_names_the_policies() {
    let notes = "annotations: {nginx.ingress.kubernetes.io/proxy-read-timeout: \"7\", \
                 nginx.ingress.kubernetes.io/proxy-body-size: 8k}";
    let manifests = MANIFESTS.replacen(
        "{name: web, namespace: shop}",
        &format!("{{name: web, namespace: shop, {notes}}}"),
        1,
    );
    let (objects, _) = Manifests::from_text("test", &manifests);
    let snapshot = translate(&objects, &ClassSettings::default()).snapshot;
    let mut out = Vec::new();
    let line = args(&["--host", "shop.example", "--path", "/"]).unwrap();
    line.print(&snapshot, &BTreeMap::new(), &[], &mut out)
        .unwrap();
    let text = String::from_utf8(out).unwrap();
    let expected =
        "policies\n  body_max           8192\n  exchange           {\"read_timeout\":7}\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn text_without_a_location() {
    let text = print(
        &["--host", "other.example", "--path", "/"],
        &[problem("other")],
    );
    assert!(text.contains("404: no rule is for this host"), "{text}");
    assert!(
        text.contains("warning: Ingress other/stray: spec: odd; left out"),
        "{text}"
    );
    let text = print(&["--host", "shop.example", "--path", "/x/../cart"], &[]);
    assert!(
        text.contains("400: a backend could read the path in another way"),
        "{text}"
    );
    assert!(
        text.contains("as /cart it belongs to shop.example/cart (Exact)"),
        "{text}"
    );
    let text = print(&["--host", "shop,example", "--path", "/"], &[]);
    assert!(
        text.contains("400: the Host header is not a host name"),
        "{text}"
    );
}

#[test]
fn json_has_the_same() {
    let line = [
        "--host",
        "shop.example",
        "--path",
        "/",
        "--header",
        "X-Canary:always",
        "--json",
    ];
    let json: serde_json::Value = serde_json::from_str(&print(&line, &[problem("other")])).unwrap();
    let outcome = &json["outcome"];
    assert_eq!(outcome["kind"], "location");
    assert_eq!(outcome["location"]["path"], "/");
    assert_eq!(outcome["rules"][0]["answer"], "canary");
    assert_eq!(outcome["rules"][1]["answer"], "not-asked");
    assert_eq!(outcome["answered"]["by"]["variant"], "stable");
    assert_eq!(outcome["answered"]["by"]["reason"], "canary-unavailable");
    assert_eq!(json["other_problems"], 1);
}

#[test]
fn wrong_arguments_say_what_is_allowed() {
    for (line, expected) in [
        (&["--path", "shop"][..], "starts with /"),
        (&["--path", "/a b"], "no spaces"),
        (&["--path", "/", "--header", "X-Canary"], "'Name: value'"),
        (
            &["--path", "/", "--header", "X Canary: a"],
            "cannot be the name of a header",
        ),
        (
            &["--path", "/", "--header", "x: a\nb"],
            "cannot be the value of a header",
        ),
        (&["--path", "/", "--cookie", "always"], "name=value"),
        (&["--path", "/", "--cookie", "=always"], "name=value"),
        (&["--path", "/", "--method", "G T"], "--method"),
        (&[], "--path"),
    ] {
        let error = args(line).unwrap_err();
        assert!(error.contains(expected), "{line:?}: {error}");
    }
}

const GUARDED: &str = r#"
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/auth-type: basic
    nginx.ingress.kubernetes.io/auth-secret: users
    splitter.io/jwt-issuer: https://id.test
    splitter.io/jwt-audiences: shop
    splitter.io/jwt-jwks-url: https://id.test/keys
    nginx.ingress.kubernetes.io/auth-url: http://auth.test/check
    nginx.ingress.kubernetes.io/auth-tls-secret: shop/ca
    nginx.ingress.kubernetes.io/auth-tls-verify-client: optional
spec:
  ingressClassName: nginx
  defaultBackend: {service: {name: app, port: {number: 80}}}
---
apiVersion: v1
kind: Secret
metadata: {name: users, namespace: shop}
stringData: {auth: "ann:{PLAIN}topsecret"}
---
apiVersion: v1
kind: Secret
metadata: {name: ca, namespace: shop}
stringData: {ca.crt: none}
"#;

fn guarded(more: &str, line: &[&str]) -> String {
    let yaml = GUARDED.replace(
        "spec:\n  ingressClassName",
        &format!("{more}spec:\n  ingressClassName"),
    );
    let (objects, _) = crate::k8s::Manifests::from_text("stdin", &yaml);
    let translation = translate(&objects, &ClassSettings::default());
    let mut out = Vec::new();
    let line = args(&[&["--path", "/"], line].concat()).unwrap();
    let secrets = &translation.secrets;
    line.print(&translation.snapshot, secrets, &[], &mut out)
        .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn each_guard_says_what_it_makes_of_what_is_given() {
    let nothing = guarded("", &[]);
    for part in [
        "auth-tls: asks for a certificate by the Secret shop/ca: which cannot be read: answers 503",
        "auth-type: asks for a password of the Secret shop/users: none is given",
        "jwt: asks for a token of https://id.test: none is given",
        "auth-url: asks http://auth.test:80, whose answer is not known here",
    ] {
        assert!(nothing.contains(part), "{part}: {nothing}");
    }
    assert!(!nothing.contains("topsecret"), "{nothing}");
    let ann = ["--header", "Authorization: Basic YW5uOnRvcHNlY3JldA=="];
    let right = guarded("", &ann);
    assert!(right.contains("\"ann\" has the right one"), "{right}");
    let wrong = guarded("", &["--header", "Authorization: Basic YW5uOng="]);
    assert!(
        wrong.contains("is unknown or has another one: answers 401"),
        "{wrong}"
    );
    let token = guarded("", &["--header", "Authorization: Bearer a.b.c"]);
    assert!(
        token.contains("its keys are not in the manifests"),
        "{token}"
    );
    let any = "    nginx.ingress.kubernetes.io/satisfy: any\n";
    let any = guarded(any, &ann);
    assert!(
        any.contains("satisfy: one of addresses and these is enough"),
        "{any}"
    );
}
