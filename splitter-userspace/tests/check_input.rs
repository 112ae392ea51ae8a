//! `splitter check -` given what people, editors, shells and attackers may give it: it ends, says
//! what is wrong, and what is good in it is checked all the same.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What the binary says of this input.
fn check(input: impl AsRef<[u8]>, args: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_splitter"))
        .args([&["check", "-"], args].concat())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have seen enough before the end.
    let _ = child.stdin.take().unwrap().write_all(input.as_ref());
    child.wait_with_output().unwrap()
}

fn report(input: impl AsRef<[u8]>) -> (i32, Value) {
    let output = check(input, &["--json"]);
    let report = serde_json::from_slice(&output.stdout);
    let report = report.unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    (output.status.code().unwrap(), report)
}

/// The code of each fault, in order.
fn codes(report: &Value) -> Vec<&str> {
    let problems = report["problems"].as_array().unwrap().iter();
    problems.map(|it| it["code"].as_str().unwrap()).collect()
}

const GOOD: &str = "apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: a.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
";

#[test]
fn good_text_in_the_forms_that_editors_give_it() {
    let dos = GOOD.replace('\n', "\r\n");
    let marked = format!("\u{feff}{GOOD}");
    let both = format!("\u{feff}{dos}");
    let ended = format!("---\n# first\n{GOOD}...\n---\n---\n# nothing\n");
    let open = GOOD.trim_end();
    for text in [GOOD, &dos, &marked, &both, &ended, open] {
        let (code, report) = report(text);
        assert_eq!((code, codes(&report)), (0, vec![]), "{text:?}");
        assert_eq!(report["summary"]["unchanged"], 1, "{text:?}");
    }
}

/// As `kubectl get ingress,svc,endpointslices -A -o yaml` and `-o json` print it.
#[test]
fn lists_of_kubectl_in_both_languages() {
    let documents = serde_norway::Deserializer::from_str(GOOD);
    let items: Vec<Value> = documents
        .map(|it| serde::Deserialize::deserialize(it).unwrap())
        .map(|mut it: Value| {
            // What a server adds to each.
            it["metadata"]["namespace"] = "shop".into();
            it["metadata"]["uid"] = "0b4d".into();
            it["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
            it["metadata"]["managedFields"] =
                serde_json::json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {".": {}}}}]);
            it["status"] = serde_json::json!({"loadBalancer": {}});
            if it["kind"] == "EndpointSlice" {
                it.as_object_mut().unwrap().remove("status");
            }
            it
        })
        .collect();
    let list = serde_json::json!({
        "apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items,
    });
    let texts = [
        serde_json::to_string_pretty(&list).unwrap(),
        list.to_string(),
        serde_norway::to_string(&list).unwrap(),
    ];
    for text in texts {
        let (code, report) = report(&text);
        assert_eq!((code, codes(&report)), (0, vec![]), "{text}");
        assert_eq!(report["served"], 1, "{text}");
    }
    let empty =
        r#"{"apiVersion": "v1", "kind": "List", "items": [], "metadata": {"resourceVersion": ""}}"#;
    let (code, report) = report(empty);
    assert_eq!((code, &report["served"]), (0, &0.into()));
}

#[test]
fn what_is_no_text_is_refused_with_the_reason() {
    let elf = [b"\x7fELF\x02\x01\x01\0".to_vec(), vec![0x90; 4096]].concat();
    let wide: Vec<u8> = "\u{feff}apiVersion: v1\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (input, says) in [
        (elf, "no UTF-8 text: byte 8"),
        (wide, "UTF-16 text; write it as UTF-8"),
        ([GOOD.as_bytes(), b"\xff"].concat(), "no UTF-8 text"),
    ] {
        let output = check(&input, &[]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(
            error.starts_with("error: ") && error.contains(says),
            "{error}"
        );
    }
}

#[test]
fn more_than_anybody_has_is_refused_before_it_is_parsed() {
    let line = vec![b'a'; 100 << 20];
    let output = check(&line, &[]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("more than 67108864 bytes"), "{error}");
}

/// Each ends with a fault of its own document, and the good ones beside it are checked.
#[test]
fn bad_documents_hide_no_good_ones() {
    let bomb = {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = format!("*a{}, ", level - 1).repeat(9);
            text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        text
    };
    let circle = "a: &a {b: *a}\n".to_owned();
    let deep = format!("a: {}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let steep = (0..1000).fold(String::new(), |text, depth| {
        format!("{text}{}a:\n", " ".repeat(depth))
    });
    let twice = "apiVersion: v1\nkind: Service\nkind: Ingress\nmetadata: {name: x}\n".to_owned();
    let json = r#"{"apiVersion": "v1", "apiVersion": "v2", "kind": "Service"}"#.to_owned();
    let tabs = "apiVersion: v1\n\tkind: Service\n".to_owned();
    let long = format!("a: {}\nb: [\n", "x".repeat(4 << 20));
    let nuls = "apiVersion: v1\0\nkind: \0\n".to_owned();
    let merge = "a: &a {x: 1}\nb: {<<: [*a, 5]}\n".to_owned();
    let tag = "!!python/object/apply:os.system [ls]\n".to_owned();
    let open = "kind: \"Service\napiVersion: 'v1\n".to_owned();
    for bad in [
        bomb, circle, deep, steep, twice, json, tabs, long, nuls, merge, tag, open,
    ] {
        for text in [format!("{bad}\n---\n{GOOD}"), format!("{GOOD}---\n{bad}\n")] {
            let (code, report) = report(&text);
            let shown: String = bad.chars().take(60).collect();
            assert_eq!(code, 1, "{shown:?}");
            assert_eq!(codes(&report).len(), 1, "{shown:?}: {:?}", codes(&report));
            assert_eq!(report["served"], 1, "{shown:?}");
            let message = report["problems"][0]["message"].as_str().unwrap();
            assert!(
                !message.is_empty() && message.len() < 1000,
                "{shown:?}: {message}"
            );
        }
    }
}

#[test]
fn text_for_people_ends_with_a_sentence_and_has_no_colours_here() {
    let text = GOOD.replace("number: 80", "number: 81");
    let output = check(&text, &[]);
    assert_eq!(output.status.code(), Some(1));
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(!out.contains('\u{1b}'), "{out}");
    let last: Vec<_> = out.lines().rev().take(2).collect();
    assert_eq!(
        last[1],
        "1 Ingresses: 0 unchanged, 0 behave differently, 1 need work"
    );
    assert!(last[0].starts_with("1 errors, 0 warnings"), "{out}");
}

/// Few give their Secrets away: what is not shown is no fault.
#[test]
fn without_any_secret_those_that_are_named_are_taken_to_be_there() {
    let notes = "nginx.ingress.kubernetes.io/auth-tls-secret: default/ca, \
        splitter.io/jwt-issuer: 'https://id.test', splitter.io/jwt-audiences: shop, \
        splitter.io/jwt-jwks-secret: keys";
    let text = GOOD.replace(
        "kind: Ingress\nmetadata: {name: web}\nspec: {",
        &format!(
            "kind: Ingress\nmetadata: {{name: web, annotations: {{{notes}}}}}\n\
             spec: {{tls: [{{hosts: [a.test], secretName: cert}}], "
        ),
    );
    let (code, without) = report(&text);
    assert_eq!((code, codes(&without)), (0, vec![]));
    assert_eq!(without["supposed_secrets"], 3);
    let said = String::from_utf8(check(&text, &[]).stdout).unwrap();
    assert!(said.contains("no Secrets were given: 3 "), "{said}");
    let other = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: other}\n";
    let (code, with) = report(format!("{text}{other}"));
    assert_eq!(code, 1);
    assert!(codes(&with).contains(&"secret-not-found"));
    assert_eq!(with["supposed_secrets"], 0);
}

#[test]
fn what_is_not_supported_needs_work_and_fails() {
    let note = "{name: web, annotations: {nginx.ingress.kubernetes.io/mirror-target: x}}";
    let text = GOOD.replace(
        "kind: Ingress\nmetadata: {name: web}",
        &format!("kind: Ingress\nmetadata: {note}"),
    );
    let (code, report) = report(&text);
    assert_eq!((code, codes(&report)), (1, vec!["annotation-unsupported"]));
    assert_eq!(report["summary"]["need_work"], 1);
}

/// As in `splitter check - | head -1`.
#[test]
fn nobody_has_to_read_to_the_end() {
    let mut text = GOOD.to_owned();
    for number in 0..2000 {
        text.push_str(&format!(
            "---\napiVersion: v1\nkind: Service\nmetadata: {{name: S{number}}}\n"
        ));
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_splitter"))
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
