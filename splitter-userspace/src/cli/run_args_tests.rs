#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use clap::Parser;

use super::*;
use crate::config::{
    AfterHandOver, DataplaneSettings, HandOver, Limits, NamespacedName, PoolSettings, Timeouts,
};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    run: RunArgs,
}

fn settings(args: &[&str]) -> Result<Settings, SettingsError> {
    let line = ["splitter", "--manifests=m"].iter().chain(args);
    Line::try_parse_from(line).unwrap().run.try_into()
}

#[test]
fn nothing_said_is_every_default() {
    let all = settings(&[]).unwrap();
    assert_eq!(all.source, Source::Manifests("m".into()));
    assert_eq!(all.http, ["0.0.0.0:80".parse().unwrap()]);
    assert_eq!(all.https, ["0.0.0.0:443".parse().unwrap()]);
    assert_eq!(all.default_certificate, None);
    assert_eq!(all.hsts.as_deref(), Some(Settings::HSTS));
    assert_eq!(all.admin, "0.0.0.0:10254".parse().unwrap());
    assert_eq!(all.steering, Steering::Auto);
    assert_eq!(all.dataplane, DataplaneSettings::new(usable_cpus()));
    assert_eq!(all.class, ClassSettings::default());
    assert_eq!(all.workers, usable_cpus());
    assert_eq!(all.log_format, LogFormat::Text);
    assert_eq!(all.access_log, AccessLog::Stdout);
    assert!(!all.use_forwarded_headers && !all.use_proxy_protocol);
    assert!(all.proxy_real_ip.is_all());
    assert_eq!(all.shutdown_delay, Duration::ZERO);
    assert_eq!(all.drain_timeout, Duration::from_secs(30));
    assert_eq!(all.timeouts, Timeouts::default());
    assert_eq!(all.limits, Limits::default());
    assert_eq!(all.identity, Identity::default());
    assert_eq!(all.hand_over, HandOver::default());
    assert_eq!(all.probe_socket, None);
    assert_eq!(all.webhook, None);
}

#[test]
fn every_flag_sets_its_field() {
    let all = settings(&[
        "--http=127.0.0.1:1,127.0.0.1:2",
        "--http=[::1]:3",
        "--https=127.0.0.1:5,[::1]:6",
        "--default-ssl-certificate=ingress/wildcard",
        "--tls-ticket-secret=ingress/tickets",
        "--hsts=max-age=60",
        "--admin=127.0.0.1:4",
        "--steering=sk-lookup",
        "--interface=eth0",
        "--ingress-class=own",
        "--controller-class=own.example/a",
        "--watch-ingress-without-class",
        "--annotations-prefix=own.example",
        "--workers=3",
        "--log-format=json",
        "--access-log=/a",
        "--use-forwarded-headers",
        "--use-proxy-protocol",
        "--proxy-real-ip-cidr=10.0.0.0/8,2001:db8::1",
        "--dns-server=127.0.0.1:53",
        "--allow-local-external-names",
        "--shutdown-delay=15s",
        "--drain-timeout=1s",
        "--connect-timeout=2s",
        "--read-timeout=3s",
        "--send-timeout=4s",
        "--header-timeout=5s",
        "--handshake-timeout=13s",
        "--keep-alive-timeout=6s",
        "--upstream-idle-timeout=7s",
        "--tunnel-timeout=12s",
        "--max-connections=8",
        "--max-handshakes=14",
        "--max-requests=13",
        "--max-head-bytes=9000",
        "--max-headers=10",
        "--upstream-idle-per-endpoint=11",
        "--max-body-bytes=14",
        "--max-l4-connections=15",
        "--l4-idle-timeout=16s",
        "--max-udp-sessions=17",
        "--udp-idle-timeout=18s",
        "--pod-namespace=ns",
        "--pod-name=pod",
        "--take-over=/run/s",
        "--after-hand-over=wait",
        "--probe-socket=/run/p",
    ])
    .unwrap();
    let timeouts = Timeouts {
        connect: Duration::from_secs(2),
        read: Duration::from_secs(3),
        send: Duration::from_secs(4),
        header: Duration::from_secs(5),
        handshake: Duration::from_secs(13),
        keep_alive: Duration::from_secs(6),
        upstream_idle: Duration::from_secs(7),
        tunnel: Duration::from_secs(12),
    };
    let limits = Limits {
        max_connections: 8,
        max_handshakes: 14,
        max_requests: 13,
        max_head_bytes: 9_000,
        max_headers: 10,
        upstream_idle_per_endpoint: 11,
        max_body_bytes: 14,
    };
    let pool = PoolSettings {
        workers: 3,
        timeouts,
        limits,
    };
    let expected = Settings {
        source: Source::Manifests("m".into()),
        http: ["127.0.0.1:1", "127.0.0.1:2", "[::1]:3"]
            .map(|addr| addr.parse().unwrap())
            .to_vec(),
        https: ["127.0.0.1:5", "[::1]:6"]
            .map(|addr| addr.parse().unwrap())
            .to_vec(),
        default_certificate: Some(NamespacedName {
            namespace: "ingress".to_owned(),
            name: "wildcard".to_owned(),
        }),
        ticket_secret: Some(NamespacedName {
            namespace: "ingress".to_owned(),
            name: "tickets".to_owned(),
        }),
        hsts: Some("max-age=60".to_owned()),
        admin: "127.0.0.1:4".parse().unwrap(),
        steering: Steering::SkLookup,
        dataplane: DataplaneSettings {
            interfaces: vec!["eth0".to_owned()],
            pools: [pool; 2],
            ..DataplaneSettings::new(3)
        },
        class: ClassSettings {
            ingress_class: "own".to_owned(),
            controllers: vec!["own.example/a".to_owned()],
            without_class: true,
            annotations_prefix: "own.example".to_owned(),
            defaults: Arc::default(),
            strict_nginx: false,
            upstream_tls_verify: false,
            ssl_passthrough: false,
            l4: crate::config::L4Settings::default(),
        },
        workers: 3,
        log_format: LogFormat::Json,
        access_log: AccessLog::File("/a".into()),
        use_forwarded_headers: true,
        names: NameSettings {
            servers: vec!["127.0.0.1:53".parse().unwrap()],
            allow_local: true,
        },
        use_proxy_protocol: true,
        proxy_real_ip: "10.0.0.0/8,2001:db8::1/128".parse().unwrap(),
        shutdown_delay: Duration::from_secs(15),
        drain_timeout: Duration::from_secs(1),
        timeouts,
        limits,
        l4: crate::config::L4Limits {
            max_connections: 15,
            idle: Duration::from_secs(16),
            max_sessions: 17,
            udp_idle: Duration::from_secs(18),
        },
        identity: Identity {
            pod_namespace: "ns".to_owned(),
            pod_name: "pod".to_owned(),
        },
        hand_over: HandOver {
            path: Some("/run/s".into()),
            after: AfterHandOver::Wait,
        },
        probe_socket: Some("/run/p".into()),
        webhook: None,
    };
    assert_eq!(all, expected);
}

#[test]
fn https_is_on_or_off_and_has_its_own_addresses() {
    assert_eq!(settings(&["--https=off"]).unwrap().https, []);
    let both = settings(&["--https=off,127.0.0.1:5"]);
    assert_eq!(both, Err(SettingsError::HttpsOffAndOn));
    let addr = "127.0.0.1:5".parse().unwrap();
    for args in [
        &["--https=127.0.0.1:5,127.0.0.1:5"][..],
        &["--https=127.0.0.1:5", "--http=127.0.0.1:5"],
    ] {
        assert_eq!(settings(args), Err(SettingsError::DuplicateHttps(addr)));
    }
    let admin = settings(&["--https=127.0.0.1:5", "--admin=127.0.0.1:5"]);
    assert_eq!(admin, Err(SettingsError::AdminIsHttp(addr)));
}

#[test]
fn without_manifests_the_cluster_says_what_to_do() {
    let line = [
        "splitter",
        "--kubeconfig=/k",
        "--default-ssl-certificate=a/b",
        "--tls-ticket-secret=a/c",
    ];
    let run = Line::try_parse_from(line).unwrap().run;
    let all: Settings = run.try_into().unwrap();
    let Source::Cluster(cluster) = all.source else {
        panic!("{:?}", all.source)
    };
    assert_eq!(cluster.kubeconfig, Some("/k".into()));
    let line = ["splitter", "--webhook=127.0.0.1:1"];
    let files = ["--webhook-certificate=/c", "--webhook-key=/k"];
    let whole = Line::try_parse_from(line.iter().chain(&files)).unwrap().run;
    let webhook = Settings::try_from(whole).unwrap().webhook.unwrap();
    assert_eq!(
        (webhook.certificate, webhook.key),
        ("/c".into(), "/k".into())
    );
    assert!(
        Line::try_parse_from(line).is_err(),
        "there is no certificate"
    );
    // Nobody else would have it read.
    assert_eq!(
        cluster.secrets,
        ["a/b", "a/c"].map(|it| it.parse().unwrap())
    );
}

#[test]
fn any_free_port_may_be_asked_for_everywhere() {
    let all = settings(&["--http=127.0.0.1:0", "--admin=127.0.0.1:0"]);
    assert!(all.is_ok(), "{all:?}");
}

#[test]
fn defaults_have_one_source() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let defaults = format!("--defaults={}", file.path().display());
    for other in ["--manifests=m", defaults.as_str()] {
        let line = ["splitter", "--configmap=in/nginx", other];
        let error = Line::try_parse_from(line).unwrap_err().to_string();
        assert!(error.contains("cannot be used with"), "{error}");
    }
}

#[test]
fn settings_of_the_process_come_from_the_defaults_too() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let with = |text: &str, more: &[&str]| {
        std::fs::write(file.path(), text).unwrap();
        let flag = format!("--defaults={}", file.path().display());
        let args: Vec<&str> = [flag.as_str()]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        settings(&args)
    };
    let text = "use-forwarded-headers: true\nuse-proxy-protocol: \"true\"\nproxy-real-ip-cidr: 10.0.0.0/8\n";
    let all = with(text, &[]).unwrap();
    assert!(all.use_forwarded_headers && all.use_proxy_protocol);
    assert_eq!(all.proxy_real_ip.to_string(), "10.0.0.0/8");
    let all = with(text, &["--proxy-real-ip-cidr=192.0.2.1"]).unwrap();
    assert_eq!(all.proxy_real_ip.to_string(), "192.0.2.1/32");
    for text in [
        "use-forwarded-headers: perhaps",
        "proxy-real-ip-cidr: office",
    ] {
        let error = with(text, &[]).unwrap_err().to_string();
        assert!(
            error.contains("--defaults") && error.contains("may be"),
            "{error}"
        );
    }
}
