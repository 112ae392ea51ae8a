use super::*;
use crate::model::Transport;
use crate::telemetry::{ControllerLabels, Registry};

fn key(service: &str) -> L4Key {
    L4Key {
        namespace: "shop".into(),
        service: service.into(),
        port: 53,
        transport: Transport::Udp,
    }
}

fn page(stats: &L4Stats) -> String {
    let registry = Registry::new(&ControllerLabels::default());
    let stats = stats.clone();
    registry.collect(move |text| stats.write(text));
    registry.page().into_string()
}

#[test]
fn connections_bytes_and_reasons_are_counted_by_service_port() {
    let stats = L4Stats::default();
    let counts = stats.of(&key("dns"));
    let open = counts.begin(&"stable".into());
    drop(counts.begin(&"next".into()));
    open.received(5);
    open.sent(7);
    counts.refuse(L4Refusal::NoEndpoint);
    counts.cut(L4Cut::EndpointGone);
    counts.fall_back();
    let page = page(&stats);
    let of = r#"namespace="shop",service="dns",port="53",protocol="UDP""#;
    for line in [
        format!(r#"splitter_l4_connections_total{{{of},variant="stable"}} 1"#),
        format!(r#"splitter_l4_connections_total{{{of},variant="next"}} 1"#),
        format!(r#"splitter_l4_open_connections{{{of},variant="stable"}} 1"#),
        format!(r#"splitter_l4_open_connections{{{of},variant="next"}} 0"#),
        format!(r#"splitter_l4_bytes_total{{{of},variant="stable",direction="in"}} 5"#),
        format!(r#"splitter_l4_bytes_total{{{of},variant="stable",direction="out"}} 7"#),
        format!("splitter_l4_fallbacks_total{{{of}}} 1"),
        format!(r#"splitter_l4_refused_total{{{of},reason="no-endpoint"}} 1"#),
        format!(r#"splitter_l4_cut_total{{{of},reason="endpoint-gone"}} 1"#),
    ] {
        assert!(page.lines().any(|it| it == line), "{line}:\n{page}");
    }
    let types = page
        .lines()
        .filter(|it| *it == "# TYPE splitter_l4_bytes_total counter");
    assert_eq!(types.count(), 1);
    let shown = stats.shown();
    assert_eq!(
        (&*shown[1].variant, shown[1].open, shown[1].received),
        ("stable", 1, 5)
    );
}

#[test]
fn what_is_gone_is_forgotten_once_it_is_not_open() {
    let stats = L4Stats::default();
    let open = stats.of(&key("dns")).begin(&"stable".into());
    drop(stats.of(&key("other")).begin(&"stable".into()));
    stats.keep(&L4::default());
    assert_eq!(stats.shown().len(), 1);
    drop(open);
    stats.keep(&L4::default());
    assert_eq!(stats.shown(), []);
    assert!(!page(&stats).contains("splitter_l4"));
}
