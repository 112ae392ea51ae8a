#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use proptest::prelude::*;

use super::*;
use crate::k8s::Objects;

/// A Service in one line.
fn service(name: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: {name}}}, spec: {{ports: [{{port: 80}}]}}}}\n"
    )
}

/// The objects as `source kind namespace/name`, and the Problems as `source object code`.
fn read(text: &str) -> (Vec<String>, Vec<String>) {
    let parsed = parse_documents("f.yaml", text);
    let objects = parsed
        .objects
        .iter()
        .map(|it| format!("{} {}", it.source(), it.object_ref()));
    let problems = parsed.problems.iter();
    (
        objects.map(|it| it.replace("f.yaml", "")).collect(),
        problems
            .map(|it| {
                format!(
                    "{} {} {}",
                    it.source.replace("f.yaml", ""),
                    it.object,
                    it.code
                )
            })
            .collect(),
    )
}

fn objects(text: &str) -> Vec<String> {
    let (objects, problems) = read(text);
    assert_eq!(problems, [""; 0], "{text}");
    objects
}

fn message(text: &str) -> (String, String, &'static str) {
    let parsed = parse_documents("f.yaml", text);
    assert_eq!(parsed.problems.len(), 1, "{text}: {:?}", parsed.problems);
    let problem = parsed.problems.into_iter().next().unwrap();
    (problem.field, problem.message, problem.code)
}

#[test]
fn documents_end_at_a_separator_line() {
    let (a, b) = (service("a"), service("b"));
    let both = ["#1 Service default/a", "#2 Service default/b"];
    for text in [
        format!("{a}---\n{b}"),
        format!("---\n{a}---\n{b}---\n"),
        format!("---\r\n{a}---\r\n{b}"),
        format!("\u{feff}{a}--- # comment\n{b}"),
        format!("{a}---   \n\n# only a comment\n---\n{b}...\n"),
        format!("%YAML 1.2\n---\n{a}...\n---\n{b}"),
        format!("--- {a}--- {b}"),
        format!("{a}---\t{b}"),
    ] {
        assert_eq!(objects(&text), both, "{text:?}");
    }
    for text in [
        "",
        "\n",
        "---",
        "---\n---\n",
        "# nothing\n",
        "...",
        "null\n",
        "---\n~\n",
    ] {
        assert_eq!(objects(text), [""; 0], "{text:?}");
    }
}

#[test]
fn what_only_looks_like_a_separator_is_none() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  tls.crt: |\n    -----BEGIN CERTIFICATE-----\n    ---\n    -----END CERTIFICATE-----\n";
    assert_eq!(objects(text), ["#1 Secret default/s"]);
}

#[test]
fn a_bad_document_hides_no_other() {
    let (a, b) = (service("a"), service("b"));
    for bad in [
        "{",
        "a: b: c",
        "- \"",
        "\tx: 1",
        "a: &x [*y]",
        "}{",
        "a: 1\na: 2",
    ] {
        let (objects, problems) = read(&format!("{a}---\n{bad}\n---\n{b}"));
        assert_eq!(
            objects,
            ["#1 Service default/a", "#3 Service default/b"],
            "{bad}"
        );
        assert_eq!(problems, ["#2 File f.yaml yaml-invalid"], "{bad}");
    }
}

#[test]
fn lines_are_those_of_the_file() {
    let text = format!(
        "{}---\n# comment\na: 1\nb: c: d\n---\n{}",
        service("a"),
        service("b")
    );
    let (_, message, _) = message(&text);
    assert!(message.ends_with("at line 5 column 5"), "{message}");
    let text = format!("{}---\na:\n- {{b: 1\nc: 2\n", service("a"));
    let (_, message, _) = self::message(&text);
    assert!(
        message.contains("at line 5 ") && message.contains("at line 4 "),
        "{message}"
    );
    let text = format!(
        "{}---\n# comment\na: 1\n---\nb:\n  a: 1\n  a: 2\n",
        service("a")
    );
    let parsed = parse_documents("f", &text);
    let message = &parsed.problems[1].message;
    assert!(
        message.contains("\"a\" is there twice") && message.contains("line 7"),
        "{message}"
    );
}

#[test]
fn a_wrong_type_names_the_field_and_the_line() {
    let text = "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec:\n  rules:\n  - host: a\n    http: {paths: {}}\n";
    let (_, message, code) = message(text);
    assert_eq!(code, "object-invalid");
    assert!(message.contains("spec.rules[0].http.paths"), "{message}");
    assert!(message.contains("line 8"), "{message}");
}

#[test]
fn text_without_quotes_is_named_by_its_key() {
    let with = |line: &str| {
        message(&format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: i\n  {line}\nspec: {{defaultBackend: {{}}}}\n"
        ))
    };
    let (field, message, code) = with("annotations: {nginx.ingress.kubernetes.io/canary: true}");
    assert_eq!(code, "object-invalid");
    assert_eq!(
        field,
        "metadata.annotations.nginx.ingress.kubernetes.io/canary"
    );
    assert_eq!(message, "true is not text; write it in quotes: \"true\"");
    let (field, message, _) = with("labels: {a: 10}");
    assert_eq!(field, "metadata.labels.a");
    assert!(message.contains("\"10\""), "{message}");
}

#[test]
fn lists_are_unfolded() {
    let (a, b) = (service("a"), service("b"));
    let (a, b) = (a.trim(), b.trim());
    assert_eq!(
        objects(&format!(
            "apiVersion: v1\nkind: List\nitems:\n- {a}\n- {b}\n"
        )),
        ["#1[0] Service default/a", "#1[1] Service default/b"]
    );
    // The items of a typed list need not repeat what they are.
    assert_eq!(
        objects("apiVersion: v1\nkind: ServiceList\nitems: [{metadata: {name: a, namespace: n}}]"),
        ["#1[0] Service n/a"]
    );
    assert_eq!(
        objects(
            "apiVersion: networking.k8s.io/v1\nkind: IngressList\n\
             items: [{metadata: {name: a}, spec: {defaultBackend: {}}}]"
        ),
        ["#1[0] Ingress default/a"]
    );
    assert_eq!(
        objects(&format!(
            "apiVersion: v1\nkind: List\nitems: [{{apiVersion: v1, kind: List, items: [{a}]}}]"
        )),
        ["#1[0][0] Service default/a"]
    );
    for empty in ["items: []", "items: null", ""] {
        assert_eq!(
            objects(&format!("apiVersion: v1\nkind: List\n{empty}\n")),
            [""; 0]
        );
    }
}

#[test]
fn a_bad_item_hides_no_other() {
    let a = service("a");
    let text = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {a}- 7\n- {{kind: Service}}\n- {{apiVersion: v1, kind: Service}}\n- {}",
        service("b")
    );
    let (objects, problems) = read(&text);
    assert_eq!(
        objects,
        ["#1[0] Service default/a", "#1[4] Service default/b"]
    );
    assert_eq!(
        problems,
        [
            "#1 File f.yaml kind-missing",
            "#1 File f.yaml kind-missing",
            "#1 File f.yaml name-missing"
        ]
    );
    assert_eq!(
        message("apiVersion: v1\nkind: List\nitems: {}\n").2,
        "list-invalid"
    );
}

#[test]
fn other_kinds_are_passed_over() {
    for (version, kind) in [
        ("apps/v1", "Deployment"),
        ("v1", "Pod"),
        ("v1", "Endpoints"),
        ("apps/v1", "DeploymentList"),
        ("serving.knative.dev/v1", "Service"),
        ("config.openshift.io/v1", "Ingress"),
        ("example.com/v1", "PriceList"),
    ] {
        let text = format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n");
        assert_eq!(objects(&text), [""; 0], "{kind}");
    }
}

#[test]
fn other_versions_are_reported_by_name() {
    for (version, kind) in [
        ("extensions/v1beta1", "Ingress"),
        ("networking.k8s.io/v1beta1", "Ingress"),
        ("networking.k8s.io/v1beta1", "IngressClass"),
        ("discovery.k8s.io/v1beta1", "EndpointSlice"),
        ("v2", "Service"),
    ] {
        let text = format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n");
        let (field, message, code) = message(&text);
        assert_eq!(
            (code, field.as_str()),
            ("version-unsupported", "apiVersion")
        );
        assert!(message.contains(version), "{message}");
    }
}

#[test]
fn what_is_no_object_is_reported() {
    for (text, code) in [
        ("hello\n", "kind-missing"),
        ("- a\n- b\n", "kind-missing"),
        ("42\n", "kind-missing"),
        ("kind: Service\nmetadata: {name: x}\n", "kind-missing"),
        ("apiVersion: v1\nmetadata: {name: x}\n", "kind-missing"),
        ("apiVersion: v1\nkind: Service\n", "name-missing"),
        ("apiVersion: v1\nkind: Service\nmetadata:\n", "name-missing"),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: \"\"}\n",
            "name-missing",
        ),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: \"a\\nb\"}\n",
            "name-invalid",
        ),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: a/b}\n",
            "name-invalid",
        ),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {generateName: x-}\n",
            "name-missing",
        ),
        (
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x}\n",
            "ingress-empty",
        ),
        (
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x}\nspec: {rules: []}\n",
            "ingress-empty",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: '%'}\n",
            "object-invalid",
        ),
    ] {
        assert_eq!(message(text).2, code, "{text}");
    }
}

#[test]
fn a_secrets_content_is_never_shown() {
    for rest in [
        "data: {tls.key: 123456}",
        "data: {tls.key: 'hunter2!'}",
        "data: hunter2",
        "stringData: {tls.key: [hunter2]}",
        "type: [hunter2]",
    ] {
        let text = format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: x}}\n{rest}\n");
        let (_, message, code) = message(&text);
        assert_eq!(code, "object-invalid");
        assert!(
            !message.contains("hunter2") && !message.contains("123456"),
            "{message}"
        );
    }
}

#[test]
fn namespaces_are_filled_in() {
    let parsed = parse_documents("f", &service("a"));
    let Object::Service(service) = &parsed.objects[0] else {
        panic!("{parsed:?}")
    };
    assert_eq!(
        service.object.metadata.namespace.as_deref(),
        Some("default")
    );
    let class =
        "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: c, namespace: n}\n";
    assert_eq!(objects(class), ["#1 IngressClass c"]);
}

#[test]
fn json_is_read_too() {
    let text = "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Service\",\n\t\"metadata\": {\"name\": \"a\", \"labels\": {\"l\": \"\\ud83d\\ude00\"}}\n}\n";
    assert_eq!(objects(text), ["#1 Service default/a"]);
    assert_eq!(message("{\"apiVersion\": \"v1\", ").2, "yaml-invalid");
}

#[test]
fn anchors_merges_and_kubectls_own_fields_are_read() {
    let text = "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  creationTimestamp: null\n\
                spec: &s {ports: [&p {port: 80}]}\nextra: {<<: *s, again: *p}\nstatus: {loadBalancer: {}}\n";
    assert_eq!(objects(text), ["#1 Service default/a"]);
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = vec![format!("*a{}", level - 1); 10].join(", ");
        text += &format!("a{level}: &a{level} [{before}]\n");
    }
    assert_eq!(message(&text).2, "yaml-invalid");
}

#[test]
fn a_large_anchor_used_often_is_refused() {
    let text = format!(
        "a: &a [{}]\nb: [{}]\n",
        "x,".repeat(20_000),
        "*a,".repeat(20_000)
    );
    let (_, message, code) = message(&text);
    assert_eq!(code, "yaml-invalid");
    assert!(message.contains("aliases make it far larger"), "{message}");
}

#[test]
fn deep_nesting_is_refused() {
    assert_eq!(message(&"[".repeat(100_000)).2, "yaml-invalid");
    assert_eq!(message(&"{\"a\":".repeat(100_000)).2, "yaml-invalid");
    assert_eq!(message(&"[".repeat(1_500)).2, "yaml-invalid");
    assert_eq!(message(&"- ".repeat(100_000)).2, "yaml-invalid");
}

#[test]
fn documents_are_limited() {
    let text = "[]\n---\n".repeat(MAX_DOCUMENTS + 10);
    let parsed = parse_documents("f", &text);
    assert_eq!(parsed.problems.len(), MAX_DOCUMENTS + 1);
    assert_eq!(parsed.problems.last().unwrap().code, "too-many-documents");
}

#[test]
fn of_two_with_one_name_the_first_stays() {
    let text = format!("{}---\n{}", service("a"), service("a").replace("80", "81"));
    let parsed = parse_documents("f", &text);
    let (objects, problems) = Objects::collect(parsed.objects);
    assert_eq!(objects.services.len(), 1);
    assert_eq!(&*objects.services[0].source, "f#1");
    assert_eq!(problems.len(), 1);
    assert_eq!(
        (problems[0].code, problems[0].source.as_str()),
        ("object-duplicate", "f#2")
    );
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in any::<String>()) {
        parse_documents("f", &text);
    }

    #[test]
    fn any_text_of_yamls_own_signs_is_read_without_panic(
        text in "([-:{}\\[\\],&*#|>'\"%@! \n\ta-b]|---\n|kind: |apiVersion: v1\n|metadata: |items: |List\n){0,40}",
    ) {
        parse_documents("f", &text);
    }

    #[test]
    fn a_cut_file_never_gives_more_than_the_whole(cut in 0usize..400) {
        let whole = format!("{}---\n{}---\n{}", service("a"), service("b"), service("c"));
        let text = whole.get(..cut.min(whole.len())).unwrap();
        let all = parse_documents("f", &whole).objects;
        for object in parse_documents("f", text).objects {
            prop_assert!(all.contains(&object));
        }
    }
}
