use serde_json::{Value, json};

use super::*;
use crate::k8s::parse_documents;

fn objects(yaml: &str) -> Objects {
    let parsed = parse_documents("m", yaml);
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    Objects::collect(parsed.objects).0
}

const PRESENT: &str = "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: shop, creationTimestamp: 2026-01-01T00:00:00Z}
spec:
  ingressClassName: nginx
  rules:
    - host: shop.test
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{port: 80}]}
";

fn ingress(name: &str, annotations: Value, path: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "name": name, "namespace": "shop", "annotations": annotations,
            "creationTimestamp": "2026-02-01T00:00:00Z",
        },
        "spec": {
            "ingressClassName": "nginx",
            "rules": [{"host": "shop.test", "http": {"paths": [{
                "path": path, "pathType": "Prefix",
                "backend": {"service": {"name": "web", "port": {"number": 80}}},
            }]}}],
        },
    })
}

fn question(operation: &str, object: Value, old: Value) -> Question {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "networking.k8s.io", "version": "v1", "kind": "Ingress"},
            "operation": operation,
            "namespace": "shop",
            "object": object,
            "oldObject": old,
        },
    });
    Question::read(review.to_string().as_bytes()).unwrap()
}

fn opinion(question: &Question) -> Opinion {
    let (new, old) = question.ingress().unwrap();
    review(
        objects(PRESENT),
        new,
        old.as_ref(),
        &ClassSettings::default(),
    )
}

fn codes(problems: &[Problem]) -> Vec<&'static str> {
    problems.iter().map(|it| it.code).collect()
}

const BAD: &str = "nginx.ingress.kubernetes.io/proxy-body-size";

#[test]
fn what_is_right_is_allowed_without_a_word() {
    let question = question("CREATE", ingress("more", json!({}), "/more"), Value::Null);
    let opinion = opinion(&question);
    assert_eq!(opinion, Opinion::default());
    let answer = serde_json::to_value(question.answer(&opinion)).unwrap();
    let expected = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": true},
    });
    assert_eq!(answer, expected);
}

#[test]
fn what_the_object_does_wrong_is_refused_with_the_reason() {
    let taken = question("CREATE", ingress("more", json!({}), "/"), Value::Null);
    let found = opinion(&taken);
    assert_eq!(codes(&found.faults), ["path-duplicate"]);
    let answer = serde_json::to_value(taken.answer(&found)).unwrap();
    let response = &answer["response"];
    assert_eq!(response["allowed"], false);
    assert_eq!(response["status"]["code"], 422);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.contains("spec.rules[0].http.paths[0]"), "{message}");
}

#[test]
fn what_may_still_come_is_a_warning() {
    let mut early = ingress("more", json!({}), "/more");
    early["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] = "later".into();
    let early = question("CREATE", early, Value::Null);
    let found = opinion(&early);
    assert_eq!(
        (codes(&found.faults), codes(&found.warnings)),
        (vec![], vec!["service-not-found"])
    );
    let answer = early.answer(&found);
    assert!(answer.is_allowed());
    assert!(answer.response.warnings[0].contains("later"), "{answer:?}");

    let canary = json!({"nginx.ingress.kubernetes.io/canary": "true", "nginx.ingress.kubernetes.io/canary-weight": "5"});
    let stray = opinion(&question(
        "CREATE",
        ingress("next", canary, "/other"),
        Value::Null,
    ));
    assert_eq!(
        (codes(&stray.faults), codes(&stray.warnings)),
        (vec![], vec!["canary-stray"])
    );
}

#[test]
fn what_was_wrong_before_keeps_nobody_from_a_change() {
    let bad = || ingress("more", json!({}), "/");
    let mut labelled = bad();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let found = opinion(&question("UPDATE", labelled, bad()));
    assert_eq!(
        (codes(&found.faults), codes(&found.warnings)),
        (vec![], vec!["path-duplicate"])
    );
    // But not from being told of what is new.
    let good = ingress("more", json!({}), "/more");
    let found = opinion(&question("UPDATE", bad(), good));
    assert_eq!(codes(&found.faults), ["path-duplicate"]);
}

#[test]
fn a_fault_that_only_moved_is_no_new_one() {
    let bad = || ingress("more", json!({}), "/");
    let before = |rules: usize| {
        let mut moved = bad();
        let old = moved["spec"]["rules"][0].clone();
        let list = moved["spec"]["rules"].as_array_mut().unwrap();
        for number in 0..rules {
            let mut rule = old.clone();
            rule["host"] = format!("other-{number}.test").into();
            list.insert(0, rule);
        }
        moved
    };
    let found = opinion(&question("UPDATE", before(12), bad()));
    assert_eq!(
        (codes(&found.faults), codes(&found.warnings)),
        (vec![], vec!["path-duplicate"])
    );
    // A second one of the kind is new.
    let mut second = before(1);
    second["spec"]["rules"][0]["host"] = "shop.test".into();
    second["spec"]["rules"][0]["http"]["paths"][0]["path"] = "/sub".into();
    let mut again = second["spec"]["rules"][0].clone();
    again["http"]["paths"][0]["path"] = "/sub".into();
    second["spec"]["rules"].as_array_mut().unwrap().push(again);
    let found = opinion(&question("UPDATE", second, bad()));
    assert_eq!(
        (codes(&found.faults), codes(&found.warnings)),
        (vec!["path-duplicate"], vec!["path-duplicate"])
    );
}

#[test]
fn only_indices_are_taken_out_of_texts() {
    assert_eq!(without_indices("spec.rules[12].a[0]"), "spec.rules[].a[]");
    for same in [
        "",
        "a",
        "a[",
        "a[b]",
        "[1",
        "[1x]",
        "metadata.annotations[a.b/c]",
    ] {
        assert_eq!(without_indices(same), same);
    }
}

#[test]
fn faults_of_others_are_not_its_own() {
    let mut all = objects(PRESENT);
    let more = format!(
        "{PRESENT}---\n{}",
        ingress("bad", json!({BAD: "much"}), "/bad")
    );
    all.ingresses = objects(&more).ingresses;
    let (new, _) = question("CREATE", ingress("more", json!({}), "/more"), Value::Null)
        .ingress()
        .unwrap();
    assert_eq!(
        review(all, new, None, &ClassSettings::default()),
        Opinion::default()
    );
}

#[test]
fn of_other_classes_kinds_and_operations_nothing_is_thought() {
    let mut other = ingress("more", json!({BAD: "much"}), "/");
    other["spec"]["ingressClassName"] = "traefik".into();
    assert_eq!(
        opinion(&question("CREATE", other, Value::Null)),
        Opinion::default()
    );
    let gone = question("DELETE", Value::Null, ingress("shop", json!({}), "/"));
    assert!(gone.ingress().is_none());
    assert!(gone.answer(&Opinion::default()).is_allowed());
    let mut pod = question("CREATE", ingress("more", json!({}), "/"), Value::Null);
    pod.request.kind.kind = "Pod".to_owned();
    assert!(pod.ingress().is_none());
    assert!(
        question("CREATE", json!({"metadata": 7}), Value::Null)
            .ingress()
            .is_none()
    );
}

#[test]
fn what_is_no_question_is_refused() {
    for (body, why) in [
        ("", "no AdmissionReview"),
        ("{}", "no AdmissionReview"),
        ("[1]", "no AdmissionReview"),
    ] {
        let error = Question::read(body.as_bytes()).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let old = json!({
        "apiVersion": "admission.k8s.io/v1beta1",
        "request": {"uid": "", "kind": {"group": "", "version": "", "kind": ""}, "operation": ""},
    });
    let error = Question::read(old.to_string().as_bytes()).unwrap_err();
    assert!(error.contains("v1beta1"), "{error}");
}

#[test]
fn long_texts_are_cut_between_letters() {
    assert_eq!(cut("short", 10), "short");
    let long = cut(&"ü".repeat(300), MAX_WARNING);
    assert!(
        long.len() <= MAX_WARNING && long.ends_with("ü ..."),
        "{long}"
    );
}

#[test]
fn only_what_shares_a_host_is_looked_at() {
    let of = |value: Value| hosts(&serde_json::from_value(value).unwrap());
    let plain = of(ingress("a", json!({}), "/"));
    assert_eq!(Vec::from_iter(&plain), ["shop.test", "www.shop.test"]);
    let alias = of(ingress(
        "a",
        json!({"nginx.ingress.kubernetes.io/server-alias": "A.test, b.test"}),
        "/",
    ));
    assert!(alias.contains("a.test") && alias.contains("b.test"));
    let mut all = ingress("a", json!({}), "/");
    all["spec"]["defaultBackend"] = json!({"service": {"name": "web", "port": {"number": 80}}});
    assert!(of(all).contains(""));
}
