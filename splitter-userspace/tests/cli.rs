//! The command line of the real binary: names, environment, errors and exit codes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

/// Every flag of `run` that takes a value which can be wrong, its variable, and a wrong value with
/// a part of the error that says what is allowed.
const FLAGS: &[(&str, &str, &str, &str)] = &[
    ("--http", "SPLITTER_HTTP", "80", "0.0.0.0:80"),
    ("--https", "SPLITTER_HTTPS", "on", "0.0.0.0:443"),
    (
        "--default-ssl-certificate",
        "SPLITTER_DEFAULT_SSL_CERTIFICATE",
        "wildcard",
        "NAMESPACE/NAME",
    ),
    ("--hsts", "SPLITTER_HSTS", "max-age=x", "max-age=31536000"),
    ("--admin", "SPLITTER_ADMIN", "localhost", "0.0.0.0:80"),
    (
        "--steering",
        "SPLITTER_STEERING",
        "magic",
        "none, sk-lookup, xdp, auto",
    ),
    ("--interface", "SPLITTER_INTERFACE", "a/b", "such as eth0"),
    ("--xdp-mode", "SPLITTER_XDP_MODE", "fast", "native, generic"),
    (
        "--pod-cidr",
        "SPLITTER_POD_CIDR",
        "10.244.3.1/16",
        "did you mean 10.244.0.0/16?",
    ),
    (
        "--cluster-cidr",
        "SPLITTER_CLUSTER_CIDR",
        "pods",
        "10.244.0.0/16",
    ),
    ("--node-ip", "SPLITTER_NODE_IP", "node1", "192.0.2.1"),
    ("--peer-node-ip", "SPLITTER_PEER_NODE_IP", "", "192.0.2.1"),
    (
        "--native-routing",
        "SPLITTER_NATIVE_ROUTING",
        "perhaps",
        "true, false",
    ),
    (
        "--pools",
        "SPLITTER_POOLS",
        "all=2",
        "a pool: north-south, east-west",
    ),
    (
        "--pool-limit",
        "SPLITTER_POOL_LIMIT",
        "east-west:streams=1",
        "a limit: connections, requests",
    ),
    (
        "--pool-timeout",
        "SPLITTER_POOL_TIMEOUT",
        "all:read=1s",
        "a pool: north-south, east-west",
    ),
    (
        "--class-pool",
        "SPLITTER_CLASS_POOL",
        "pods=east-west",
        "a class: unknown, north-south, east-west, node, local",
    ),
    ("--spoof", "SPLITTER_SPOOF", "on", "drop, count, off"),
    (
        "--spoof-rule",
        "SPLITTER_SPOOF_RULE",
        "pods=drop",
        "a rule: own-address, own-pods, loopback, martian, cluster",
    ),
    (
        "--source-syn-limit",
        "SPLITTER_SOURCE_SYN_LIMIT",
        "0",
        "1000:5000",
    ),
    (
        "--source-packet-limit",
        "SPLITTER_SOURCE_PACKET_LIMIT",
        "5:",
        "1000:5000",
    ),
    (
        "--class-syn-limit",
        "SPLITTER_CLASS_SYN_LIMIT",
        "north-south",
        "1000:5000",
    ),
    (
        "--class-packet-limit",
        "SPLITTER_CLASS_PACKET_LIMIT",
        "north=5",
        "a class: unknown",
    ),
    (
        "--cpu-isolation",
        "SPLITTER_CPU_ISOLATION",
        "half",
        "off, auto or CPUs of pools",
    ),
    (
        "--keep-attached",
        "SPLITTER_KEEP_ATTACHED",
        "perhaps",
        "true, false",
    ),
    (
        "--ingress-class",
        "SPLITTER_INGRESS_CLASS",
        "Not A Name",
        "in lower case",
    ),
    (
        "--annotations-prefix",
        "SPLITTER_ANNOTATIONS_PREFIX",
        "a/b",
        "a DNS name",
    ),
    (
        "--controller-class",
        "SPLITTER_CONTROLLER_CLASS",
        "nginx",
        "a domain and a path",
    ),
    (
        "--watch-ingress-without-class",
        "SPLITTER_WATCH_INGRESS_WITHOUT_CLASS",
        "perhaps",
        "perhaps",
    ),
    (
        "--defaults",
        "SPLITTER_DEFAULTS",
        "/nowhere/defaults.yaml",
        "cannot read the file",
    ),
    (
        "--watch-namespace",
        "SPLITTER_WATCH_NAMESPACE",
        "Shop",
        "a name in lower case",
    ),
    (
        "--node-name",
        "SPLITTER_NODE_NAME",
        "a b",
        "a name in lower case",
    ),
    (
        "--update-status",
        "SPLITTER_UPDATE_STATUS",
        "perhaps",
        "true, false",
    ),
    (
        "--update-status-on-shutdown",
        "SPLITTER_UPDATE_STATUS_ON_SHUTDOWN",
        "perhaps",
        "true, false",
    ),
    (
        "--publish-service",
        "SPLITTER_PUBLISH_SERVICE",
        "edge",
        "a namespace and a name",
    ),
    (
        "--publish-status-address",
        "SPLITTER_PUBLISH_STATUS_ADDRESS",
        "1.2.3",
        "an IP address or a host name",
    ),
    (
        "--report-node-internal-ip-address",
        "SPLITTER_REPORT_NODE_INTERNAL_IP_ADDRESS",
        "perhaps",
        "true, false",
    ),
    ("--events", "SPLITTER_EVENTS", "perhaps", "true, false"),
    (
        "--election-id",
        "SPLITTER_ELECTION_ID",
        "",
        "a name in lower case",
    ),
    (
        "--election-ttl",
        "SPLITTER_ELECTION_TTL",
        "1s",
        "from 3s to 1h",
    ),
    (
        "--dns-server",
        "SPLITTER_DNS_SERVER",
        "resolver",
        "0.0.0.0:80",
    ),
    (
        "--allow-local-external-names",
        "SPLITTER_ALLOW_LOCAL_EXTERNAL_NAMES",
        "perhaps",
        "true, false",
    ),
    (
        "--max-body-bytes",
        "SPLITTER_MAX_BODY_BYTES",
        "8m",
        "a whole number of bytes",
    ),
    (
        "--strict-nginx",
        "SPLITTER_STRICT_NGINX",
        "perhaps",
        "perhaps",
    ),
    (
        "--configmap",
        "SPLITTER_CONFIGMAP",
        "nginx",
        "such as ingress/edge",
    ),
    ("--workers", "SPLITTER_WORKERS", "0", "from 1 to 1024"),
    ("--log-format", "SPLITTER_LOG_FORMAT", "xml", "json, text"),
    ("--access-log", "SPLITTER_ACCESS_LOG", "", "off, stdout"),
    (
        "--use-forwarded-headers",
        "SPLITTER_USE_FORWARDED_HEADERS",
        "perhaps",
        "true, false",
    ),
    (
        "--use-proxy-protocol",
        "SPLITTER_USE_PROXY_PROTOCOL",
        "perhaps",
        "true, false",
    ),
    (
        "--proxy-real-ip-cidr",
        "SPLITTER_PROXY_REAL_IP_CIDR",
        "10.0.0.0/33",
        "10.0.0.0/8",
    ),
    ("--drain-timeout", "SPLITTER_DRAIN_TIMEOUT", "soon", "30s"),
    ("--connect-timeout", "SPLITTER_CONNECT_TIMEOUT", "0", "30s"),
    ("--read-timeout", "SPLITTER_READ_TIMEOUT", "-1s", "30s"),
    ("--send-timeout", "SPLITTER_SEND_TIMEOUT", "1d", "30s"),
    ("--header-timeout", "SPLITTER_HEADER_TIMEOUT", "x", "30s"),
    (
        "--handshake-timeout",
        "SPLITTER_HANDSHAKE_TIMEOUT",
        "x",
        "30s",
    ),
    (
        "--keep-alive-timeout",
        "SPLITTER_KEEP_ALIVE_TIMEOUT",
        "x",
        "30s",
    ),
    (
        "--upstream-idle-timeout",
        "SPLITTER_UPSTREAM_IDLE_TIMEOUT",
        "x",
        "30s",
    ),
    ("--tunnel-timeout", "SPLITTER_TUNNEL_TIMEOUT", "x", "30s"),
    (
        "--max-connections",
        "SPLITTER_MAX_CONNECTIONS",
        "0",
        "from 1 to 1048576",
    ),
    (
        "--max-requests",
        "SPLITTER_MAX_REQUESTS",
        "0",
        "from 1 to 1048576",
    ),
    (
        "--max-head-bytes",
        "SPLITTER_MAX_HEAD_BYTES",
        "8191",
        "from 8192 to 1048576",
    ),
    (
        "--max-handshakes",
        "SPLITTER_MAX_HANDSHAKES",
        "0",
        "from 1 to 1048576",
    ),
    (
        "--max-headers",
        "SPLITTER_MAX_HEADERS",
        "-1",
        "from 1 to 10000",
    ),
    (
        "--upstream-idle-per-endpoint",
        "SPLITTER_UPSTREAM_IDLE_PER_ENDPOINT",
        "1.5",
        "from 0 to 65536",
    ),
];

/// Flags that take any text.
const FREE: &[(&str, &str)] = &[
    ("--ingress-selector", "SPLITTER_INGRESS_SELECTOR"),
    ("--kubeconfig", "SPLITTER_KUBECONFIG"),
    ("--manifests", "SPLITTER_MANIFESTS"),
    ("--pin-dir", "SPLITTER_PIN_DIR"),
    ("--pod-name", "SPLITTER_POD_NAME"),
    ("--pod-namespace", "SPLITTER_POD_NAMESPACE"),
];

fn splitter(args: &[&str], env: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_splitter"))
        .args(args)
        .env_clear()
        .envs(env.iter().copied())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// Exit code 2 and an error that says this.
fn refused(output: &Output, says: &[&str]) {
    let error = std::str::from_utf8(&output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(stdout(output), "", "errors go to standard error");
    for text in says {
        assert!(error.contains(text), "{text:?} is not in: {error}");
    }
}

#[test]
fn a_wrong_value_is_refused_with_what_is_allowed() {
    for (flag, _, value, allowed) in FLAGS {
        let arg = format!("{flag}={value}");
        let output = splitter(&["run", "--manifests", "m", &arg], &[]);
        refused(&output, &[flag, allowed]);
    }
}

#[test]
fn every_flag_is_also_a_variable() {
    for (flag, variable, value, allowed) in FLAGS {
        let output = splitter(&["run", "--manifests", "m"], &[(variable, value)]);
        refused(&output, &[flag, allowed]);
    }
}

#[test]
fn the_help_names_every_flag_and_variable_and_there_are_no_others() {
    let output = splitter(&["run", "--help"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let help = stdout(&output);
    let known = FLAGS.iter().map(|(flag, variable, ..)| (*flag, *variable));
    let mut known: Vec<_> = known.chain(FREE.iter().copied()).collect();
    known.sort_unstable();
    let words = help.split([' ', '=', '[', '<', ',', '\n']);
    let mut flags: Vec<_> = words
        .filter(|word| word.starts_with("--") && *word != "--help")
        .collect();
    flags.sort_unstable();
    flags.dedup();
    assert_eq!(
        flags,
        known.iter().map(|(flag, _)| *flag).collect::<Vec<_>>()
    );
    for (_, variable) in known {
        assert!(help.contains(&format!("[env: {variable}=]")), "{variable}");
    }
}

#[test]
fn an_unknown_flag_or_command_is_refused_with_a_hint() {
    refused(
        &splitter(&["run", "--manifest", "m"], &[]),
        &["--manifest", "--manifests"],
    );
    refused(
        &splitter(&["run", "--frobnicate"], &[]),
        &["--frobnicate", "--help"],
    );
    refused(&splitter(&["walk"], &[]), &["walk"]);
    refused(&splitter(&[], &[]), &["Usage", "run"]);
}

/// Everything is off that a started instance would touch on the node.
const HARMLESS: [&str; 9] = [
    "run",
    "--steering",
    "none",
    "--https",
    "off",
    "--http",
    "127.0.0.1:0",
    "--admin",
    "127.0.0.1:0",
];

#[test]
fn without_anything_to_serve_it_stops_and_says_what_to_give() {
    for (more, says) in [
        (&[][..], &["--manifests DIR", "--kubeconfig FILE"][..]),
        (
            &["--kubeconfig", "/nowhere/config"],
            &["--kubeconfig /nowhere/config", "No such file"],
        ),
    ] {
        let output = splitter(&[&HARMLESS, more].concat(), &[]);
        let error = std::str::from_utf8(&output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        for text in says {
            assert!(error.contains(text), "{text:?} is not in: {error}");
        }
    }
}

#[test]
fn objects_come_from_files_or_from_the_api() {
    let env = [("SPLITTER_MANIFESTS", "m")];
    refused(
        &splitter(&["run", "--kubeconfig", "k"], &env),
        &["--kubeconfig <FILE>", "--manifests <DIR>"],
    );
}

#[test]
fn lists_are_repeated_flags_or_separated_by_commas() {
    let twice = "127.0.0.1:1,[::1]:2,127.0.0.1:1";
    let output = splitter(&["run", "--manifests", "m"], &[("SPLITTER_HTTP", twice)]);
    refused(&output, &["--http 127.0.0.1:1", "more than once"]);
    let flags = ["run", "--manifests=m", "--http=[::1]:2", "--http=[::1]:2"];
    refused(
        &splitter(&flags, &[]),
        &["--http [::1]:2", "more than once"],
    );
}

#[test]
fn a_flag_wins_over_its_variable() {
    let env = [
        ("SPLITTER_HTTP", "127.0.0.1:1,127.0.0.1:1"),
        ("SPLITTER_MANIFESTS", "m"),
    ];
    // The list of the variable would be refused for its first address.
    let output = splitter(&["run", "--http=[::1]:2", "--admin=[::1]:2"], &env);
    refused(
        &output,
        &["--admin [::1]:2 is also an --http or --https address"],
    );
}

#[test]
fn a_wrong_log_filter_is_refused() {
    let env = [("SPLITTER_LOG", "splitter=loud")];
    let output = splitter(&["run", "--manifests", "m"], &env);
    refused(&output, &["SPLITTER_LOG", "splitter=loud", "debug"]);
}

#[test]
fn version_and_help_are_no_errors() {
    let version = format!("splitter {}\n", env!("CARGO_PKG_VERSION"));
    for args in [["version"], ["--version"]] {
        let output = splitter(&args, &[]);
        assert_eq!(
            (output.status.code(), stdout(&output)),
            (Some(0), version.as_str())
        );
    }
    let output = splitter(&["--help"], &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("run"));
}
