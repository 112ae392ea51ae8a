//! Whole splitter processes on a node with an outside and a pod.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use splitter_tests::bpf::net::{command, let_go, output};
use splitter_tests::bpf::{Namespace, Site};
use splitter_tests::eventually;

const HOST: &str = splitter_tests::bpf::site::HOST;
const BOTH: &str = "--http 0.0.0.0:80 --http [::]:80";

fn site() -> Site {
    Site::new(env!("CARGO_BIN_EXE_splitter-here"))
}

/// Asks once, and checks which pool answered and what it told the backend.
fn answered_by(site: &Site, from: &Namespace, to: &str, client: &str, pool: &str) {
    let before = site.requests().len();
    let answer = site.get(from, to);
    assert_eq!(answer.status, 200, "{to}: {answer:?}");
    eventually("the request is logged", || site.requests().len() > before);
    let line = site.requests().pop().unwrap();
    assert_eq!(
        (&line["pool"], &line["remote_addr"]),
        (&pool.into(), &client.into()),
        "{to}"
    );
    let class = match client {
        "203.0.113.2" | "2001:db8::2" => "north-south",
        "10.244.0.7" | "fd00:244::7" => "east-west",
        _ => "local",
    };
    assert_eq!(line["class"], class, "{client}");
    let seen = site.backend(&answer.text()).last();
    assert_eq!(seen.field("x-forwarded-for"), Some(client), "{to}");
    assert_eq!(seen.field("x-forwarded-port"), Some("80"), "{to}");
}

#[test]
fn outside_and_pods_are_served_by_pools_of_their_own() {
    let mut site = site();
    site.start(&format!("--steering xdp {BOTH}"));
    let (out, node, pod) = (&site.nodes.out, &site.nodes.node, &site.nodes.pod);
    let check = |from, to, client, pool| answered_by(&site, from, to, client, pool);
    check(out, "203.0.113.1:80", "203.0.113.2", "north-south");
    check(out, "[2001:db8::1]:80", "2001:db8::2", "north-south");
    check(pod, "203.0.113.1:80", "10.244.0.7", "east-west");
    check(pod, "10.244.0.1:80", "10.244.0.7", "east-west");
    check(pod, "[fd00:244::1]:80", "fd00:244::7", "east-west");
    // The node's own addresses are known from its interfaces.
    check(node, "203.0.113.1:80", "203.0.113.1", "east-west");
    check(node, "127.0.0.1:80", "127.0.0.1", "east-west");

    let accepted = "splitter_connections_accepted_total";
    site.expect_sum(accepted, &[("pool", "north-south")], 2.0);
    site.expect_sum(accepted, &[("pool", "east-west")], 5.0);
    let metrics = site.metrics();
    let mode = metrics.select("splitter_steering_mode", &[]);
    assert_eq!((mode.len(), mode[0].label("mode")), (1, "xdp"));
    let steered = |class| {
        let labels = [("class", class), ("reason", "assigned")];
        metrics.sum("splitter_steer_total", &labels)
    };
    assert_eq!(steered("north-south"), 2.0);
    assert_eq!(steered("east-west"), 3.0);
    assert_eq!(steered("local"), 2.0);
    let xdp = [("class", "north-south"), ("verdict", "pass")];
    assert!(metrics.sum("splitter_xdp_packets_total", &xdp) >= 6.0);
    assert!(metrics.sum("splitter_xdp_bytes_total", &xdp) > 6.0 * 54.0);
    assert!(site.admin("/readyz").contains("steering: xdp\n"));
    assert!(site.stop().success());
}

#[test]
fn classes_may_be_given_other_pools_and_sources_are_limited() {
    let mut site = site();
    site.start(&format!(
        "--steering xdp {BOTH} --class-pool local=north-south --pools east-west=1 \
         --source-syn-limit 1:2 --spoof-rule own-pods=count"
    ));
    let (out, node) = (&site.nodes.out, &site.nodes.node);
    answered_by(&site, node, "127.0.0.1:80", "127.0.0.1", "north-south");
    let dump: serde_json::Value = serde_json::from_str(&site.admin("/config_dump")).unwrap();
    let pools = &dump["steering"]["pools"];
    assert_eq!(
        (&pools[0]["workers"], &pools[1]["workers"]),
        (&2.into(), &1.into())
    );
    // The third within a second is dropped, and comes through when it is sent again.
    for _ in 0..3 {
        assert_eq!(site.get(out, "203.0.113.1:80").status, 200);
    }
    let dropped = [
        ("verdict", "drop"),
        ("reason", "source-syn"),
        ("class", "north-south"),
    ];
    assert!(site.metrics().sum("splitter_xdp_packets_total", &dropped) >= 1.0);
}

#[test]
fn a_foreign_listener_is_left_alone() {
    let mut site = site();
    let node = &site.nodes.node;
    let bind = |addr: &str| node.listen(addr);
    let (other, taken) = (bind("0.0.0.0:22"), bind("203.0.113.1:8080"));
    // An address of somebody else's is not taken away from him.
    let args = site.run_args("--steering sk-lookup --http 203.0.113.1:8080");
    let refused = site.output(&args);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(
        error.contains("cannot listen on 203.0.113.1:8080"),
        "{error}"
    );
    let_go(taken);

    site.start(&format!("--steering sk-lookup {BOTH}"));
    let hello = |from: &Namespace| {
        thread::scope(|scope| {
            scope.spawn(|| other.accept().unwrap().0.write_all(b"ssh").unwrap());
            from.run(|| {
                let mut text = String::new();
                let mut stream = TcpStream::connect("203.0.113.1:22").unwrap();
                stream.read_to_string(&mut text).unwrap();
                text
            })
        })
    };
    assert_eq!(hello(&site.nodes.out), "ssh");
    assert_eq!(hello(&site.nodes.pod), "ssh");
    assert!(
        site.metrics()
            .sum("splitter_steer_total", &[("reason", "not-ours")])
            >= 2.0
    );
    assert!(site.stop().success());
    assert_eq!(hello(&site.nodes.out), "ssh");
}

#[test]
fn a_weight_changed_by_bpftool_is_followed_at_once_and_reported() {
    let mut site = site();
    site.start(&format!("--steering sk-lookup {BOTH}"));
    let chosen = |site: &Site, from: &Namespace, times| {
        let answers = (0..times).map(|_| site.get(from, "203.0.113.1:80").text());
        answers.filter(|name| name == "web-next").count()
    };
    assert!(chosen(&site, &site.nodes.out, 20) < 20);
    // Sequence 2, generation 1, two Variants: all for the canary.
    let value = "2 0 0 0 1 0 0 0 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 7 0 0 0 1 0 0 0";
    let rest = " 0".repeat(48);
    let update = format!(
        "map update pinned {} key 0 0 0 0 value {value}{rest}",
        site.map("splits")
    );
    command("bpftool", &update.split(' ').collect::<Vec<_>>());
    // Both workers of both pools, on the very next request.
    for from in [&site.nodes.out, &site.nodes.pod] {
        assert_eq!(chosen(&site, from, 20), 20, "from {}", from.name());
    }
    let overrides = |site: &Site| site.metrics().sum("splitter_weight_overrides", &[]);
    eventually("the override is reported", || overrides(&site) == 1.0);
    let weight = [("variant", "web-next"), ("host", HOST)];
    site.expect_sum("splitter_variant_weight", &weight, 7.0);
    assert_eq!(
        site.log()
            .matches("weights were changed in the map")
            .count(),
        1
    );

    // The next change of the object replaces it.
    site.weigh(0);
    eventually("the object's weight is back", || overrides(&site) == 0.0);
    assert_eq!(chosen(&site, &site.nodes.out, 20), 0);
    assert!(
        site.log()
            .contains("weights are those of the objects again")
    );
}

#[test]
fn after_a_crash_nothing_is_swallowed_and_a_restart_serves() {
    for more in ["", "--keep-attached"] {
        let mut site = site();
        let args = format!("--steering xdp {BOTH} {more}");
        site.start(args.trim_end());
        let to: SocketAddr = "203.0.113.1:80".parse().unwrap();
        let out = &site.nodes.out;
        let connect = |from: &Namespace| from.run(|| TcpStream::connect(to).map_err(|e| e.kind()));
        let held = connect(out).unwrap();
        assert_eq!(site.get(out, "203.0.113.1:80").status, 200);
        site.kill();
        // Refused at once, not left to time out.
        let (out, pod) = (&site.nodes.out, &site.nodes.pod);
        for from in [out, pod] {
            let refused = connect(from).unwrap_err();
            assert_eq!(refused, std::io::ErrorKind::ConnectionRefused, "{more}");
        }
        drop(held);
        // And whoever listens there now is found.
        let other = site.nodes.node.listen(&to.to_string());
        for from in [out, pod] {
            connect(from).unwrap();
            other.accept().unwrap();
        }
        let_go(other);
        site.start(args.trim_end());
        let (out, pod) = (&site.nodes.out, &site.nodes.pod);
        answered_by(&site, out, "203.0.113.1:80", "203.0.113.2", "north-south");
        answered_by(&site, pod, "203.0.113.1:80", "10.244.0.7", "east-west");
        assert!(site.stop().success());
    }
}

#[test]
fn a_second_instance_is_refused_by_the_name_of_the_first() {
    let mut site = site();
    site.start(&format!("--steering auto {BOTH}"));
    for mode in ["xdp", "sk-lookup", "auto"] {
        let args = site.run_args(&format!("--steering {mode} --http 127.0.0.1:81"));
        let second = site.output(&args.replace(":10254", ":10255"));
        let error = String::from_utf8_lossy(&second.stderr);
        assert_eq!(second.status.code(), Some(1), "{mode}: {error}");
        let owner = format!("belongs to the running process {}", site.pid());
        assert!(
            error.contains(&owner) && error.contains("--pin-dir"),
            "{error}"
        );
    }
    let (out, pod) = (&site.nodes.out, &site.nodes.pod);
    answered_by(&site, out, "203.0.113.1:80", "203.0.113.2", "north-south");
    answered_by(&site, pod, "203.0.113.1:80", "10.244.0.7", "east-west");
}

/// Runs a program without any capability.
const NO_RIGHTS: [&str; 4] = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"];

#[test]
fn without_rights_auto_steps_down_and_says_so() {
    let mut site = site();
    let args = site.run_args("--steering auto --http 0.0.0.0:8080");
    let command = site.command_under(&NO_RIGHTS, &args);
    site.start_as(command);
    let ready = site.admin("/readyz");
    for says in [
        "steering: none; no xdp: ",
        "; no sk-lookup: ",
        "CAP_NET_ADMIN",
    ] {
        assert!(ready.contains(says), "{ready}");
    }
    assert_eq!(
        site.log()
            .matches("this way of steering is not to be had")
            .count(),
        2
    );
    let metrics = site.metrics();
    let mode = metrics.select("splitter_steering_mode", &[]);
    assert_eq!((mode.len(), mode[0].label("mode")), (1, "none"));
    assert_eq!(site.get(&site.nodes.out, "203.0.113.1:8080").status, 200);
    eventually("the request is logged", || site.requests().len() == 1);
    site.get(&site.nodes.pod, "10.244.0.1:8080");
    eventually("both are logged", || site.requests().len() == 2);
    let classes = ["north-south", "east-west"];
    for (line, class) in site.requests().iter().zip(classes) {
        // One pool for all; who it was is known all the same.
        assert_eq!(
            (&line["pool"], &line["class"]),
            (&"all".into(), &class.into())
        );
    }
    assert!(site.stop().success());
}

/// The same with the capabilities that `deploy/` names, and no other.
const RIGHTS: [&str; 4] = [
    "setpriv",
    "--bounding-set=-all,+bpf,+net_admin,+perfmon,+net_bind_service",
    "--inh-caps=-all",
    "--",
];

#[test]
fn the_documented_capabilities_are_enough() {
    let mut site = site();
    let args = site.run_args(&format!("--steering xdp {BOTH} --keep-attached"));
    let command = site.command_under(&RIGHTS, &args);
    site.start_as(command);
    let (out, pod) = (&site.nodes.out, &site.nodes.pod);
    answered_by(&site, out, "203.0.113.1:80", "203.0.113.2", "north-south");
    answered_by(&site, pod, "203.0.113.1:80", "10.244.0.7", "east-west");
    assert!(site.stop().success());
}

#[test]
fn a_mode_asked_for_by_name_is_had_or_an_error() {
    let site = site();
    for mode in ["xdp", "sk-lookup"] {
        let args = site.run_args(&format!("--steering {mode} --http 0.0.0.0:8080"));
        let output = output(&mut site.command_under(&NO_RIGHTS, &args)).unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        let says = format!("--steering {mode} is not to be had: steering needs the capability");
        assert!(error.contains(&says), "{error}");
        assert!(
            error.contains("securityContext.capabilities.add"),
            "{error}"
        );
    }
    // The loopback interface has no native XDP; auto takes what it has.
    let args = "--http 0.0.0.0:80 --interface lo --steering";
    let output = site.output(
        &site
            .run_args(&format!("{args} xdp"))
            .replace("--interface en0 ", ""),
    );
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("lo") && error.contains("use --steering sk-lookup"),
        "{error}"
    );
    let mut site = site;
    let auto = site
        .run_args(&format!("{args} auto"))
        .replace("--interface en0 ", "");
    let auto = site.command(&auto);
    site.start_as(auto);
    let ready = site.admin("/readyz");
    assert!(ready.contains("steering: sk-lookup; no xdp: lo"), "{ready}");
}

/// Runs a command that must succeed; gives what it printed.
fn printed(site: &Site, args: &str) -> String {
    let output = site.output(args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn failed(site: &Site, args: &str) -> String {
    let output = site.output(args);
    assert_eq!(output.status.code(), Some(1), "{args}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn weights_are_set_by_name_and_shown_with_the_share() {
    let mut site = site();
    assert!(failed(&site, "status").contains("there is no data plane under"));
    site.start(&format!("--steering xdp {BOTH}"));
    let out = &site.nodes.out;
    let set = format!("weight set {HOST} / stable=0 web-next=5");
    let text = printed(&site, &set);
    assert!(text.contains("stable: 80 -> 0 (objects: 80)"), "{text}");
    assert!(text.contains("web-next: 20 -> 5 (objects: 20)"), "{text}");
    for _ in 0..10 {
        assert_eq!(site.get(out, "203.0.113.1:80").text(), "web-next");
    }
    let status = printed(&site, "status");
    for line in [
        format!("instance   process {}", site.pid()),
        "steering   xdp (asked for: xdp)".to_owned(),
        "interfaces en0 (xdp native)".to_owned(),
        "pools      north-south (2 workers), east-west (2 workers)".to_owned(),
        "overrides  1".to_owned(),
        "  stable            80           0             0  0.0 %".to_owned(),
        "  web-next          20           5            10  100.0 %".to_owned(),
    ] {
        assert!(
            status.lines().any(|found| found == line),
            "{line:?}:\n{status}"
        );
    }
    let error = failed(&site, &format!("weight set {HOST} / beta=1"));
    assert!(
        error.contains("has no variant beta; it has: stable, web-next"),
        "{error}"
    );
    let error = failed(&site, "weight set other.test / stable=1");
    assert!(
        error.contains(&format!("there are: {HOST}/ (Prefix)")),
        "{error}"
    );
}

#[test]
fn maps_are_printed_with_names_and_as_the_instance_says() {
    let mut site = site();
    site.start(&format!(
        "--steering xdp {BOTH} --source-syn-limit 5000:9000"
    ));
    site.get(&site.nodes.out, "203.0.113.1:80");
    let maps: serde_json::Value = serde_json::from_str(&printed(&site, "maps")).unwrap();
    assert_eq!(maps["config"]["pid"], site.pid());
    let settings = &maps["config"]["settings"];
    assert_eq!(settings["spoof"]["cluster"], "count");
    assert_eq!(settings["source_syn_limit"]["burst"], 9000);
    let has = |list: &str, key: &str, value: &str| {
        let list = maps[list].as_array().unwrap();
        list.iter().filter(|entry| entry[key] == value).count()
    };
    assert_eq!(has("ranges", "range", "10.244.0.0/24"), 1);
    assert_eq!(
        has("ranges", "range", "203.0.113.1/32"),
        1,
        "found on the interface"
    );
    assert_eq!(has("listeners", "addr", "0.0.0.0:80"), 1);
    assert_eq!(has("pools", "pool", "east-west"), 2);
    assert_eq!(has("counters", "reason", "steer-assigned"), 1);
    // The same as the instance has it, field by field.
    let dump: serde_json::Value = serde_json::from_str(&site.admin("/config_dump")).unwrap();
    let (ours, theirs) = (&maps["weights"][0], &dump["weights"][0]);
    for variant in 0..2 {
        for field in ["name", "wanted", "live", "chosen"] {
            let [ours, theirs] = [ours, theirs].map(|all| &all["variants"][variant][field]);
            assert!(
                !ours.is_null() && ours == theirs,
                "{field}: {ours} {theirs}"
            );
        }
    }
    assert_eq!(ours["location"], theirs["location"]);
}

#[test]
fn detach_takes_what_is_ours_and_nothing_else() {
    let mut site = site();
    site.start(&format!("--steering xdp {BOTH} --keep-attached"));
    let error = failed(&site, "detach");
    assert!(
        error.contains(&format!("belongs to the running process {}", site.pid())),
        "{error}"
    );
    let attached = |site: &Site| site.nodes.node.ip("-d link show en0").contains("prog/xdp");
    site.kill();
    assert!(attached(&site), "kept");
    assert!(failed(&site, "status").contains("does not answer"));
    // Somebody else's map beside ours.
    let foreign = site.pin_dir().join("other");
    let create = format!(
        "map create {} type array key 4 value 4 entries 1 name other",
        foreign.display()
    );
    command("bpftool", &create.split(' ').collect::<Vec<_>>());
    let text = printed(&site, "detach");
    assert!(
        text.contains("v1/link_steer") && text.contains("v1/splits"),
        "{text}"
    );
    assert!(!attached(&site));
    assert!(!site.pin_dir().join("v1").exists() && foreign.exists());
    assert!(failed(&site, "detach").contains("there is no data plane under"));
}

#[test]
fn addresses_that_the_node_gets_later_are_its_own_too() {
    let mut site = site();
    site.start(&format!("--steering sk-lookup {BOTH}"));
    site.nodes.node.ip("addr add 198.51.100.7/32 dev en0");
    site.nodes.out.ip("route add 198.51.100.7 via 203.0.113.1");
    eventually("the address is known", || {
        printed(&site, "maps").contains("198.51.100.7/32")
    });
    let (out, node) = (&site.nodes.out, &site.nodes.node);
    answered_by(&site, node, "198.51.100.7:80", "198.51.100.7", "east-west");
    answered_by(&site, out, "198.51.100.7:80", "203.0.113.2", "north-south");
    assert!(site.log().contains("the addresses around have changed"));
}
