use clap::Parser;

use super::*;
use crate::config::{Limits, PoolSettings, Timeouts};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    steer: SteerArgs,
}

fn settings(args: &[&str]) -> Result<DataplaneSettings, SettingsError> {
    let line = ["splitter"].iter().chain(args);
    let general = General {
        workers: Some(3),
        usable_cpus: 9,
        timeouts: Timeouts::default(),
        limits: Limits::default(),
    };
    Line::try_parse_from(line).unwrap().steer.settings(&general)
}

#[test]
fn nothing_said_is_every_default() {
    assert_eq!(settings(&[]), Ok(DataplaneSettings::new(3)));
}

#[test]
fn every_flag_sets_its_field() {
    let found = settings(&[
        "--interface=eth0,eth1",
        "--xdp-mode=generic",
        "--pod-cidr=10.244.1.0/24",
        "--pod-cidr=fd00:244:1::/64",
        "--cluster-cidr=10.244.0.0/16,fd00:244::/48",
        "--node-ip=192.0.2.1",
        "--peer-node-ip=192.0.2.2,2001:db8::2",
        "--native-routing",
        "--pools=north-south=4",
        "--class-pool=node=north-south",
        "--spoof=off",
        "--spoof-rule=cluster=drop,martian=count",
        "--source-syn-limit=10:20",
        "--source-packet-limit=30",
        "--class-syn-limit=north-south=40",
        "--class-packet-limit=unknown=50:60",
        "--cpu-isolation=east-west=0",
        "--pin-dir=/sys/fs/bpf/other",
        "--keep-attached",
        "--connect-hooks=on",
        "--cgroup=/host/cgroup",
        "--l4-xdp=false",
        "--l4-nat-ports=50000-50099",
        "--l4-flow-limit=off",
    ])
    .unwrap();
    let mut expected = DataplaneSettings {
        interfaces: vec!["eth0".to_owned(), "eth1".to_owned()],
        xdp: XdpKind::Generic,
        ranges: Ranges {
            own: ["192.0.2.1"].map(|ip| ip.parse().unwrap()).to_vec(),
            pods: ["10.244.1.0/24", "fd00:244:1::/64"]
                .map(|range| range.parse().unwrap())
                .to_vec(),
            cluster: ["10.244.0.0/16", "fd00:244::/48"]
                .map(|range| range.parse().unwrap())
                .to_vec(),
            nodes: ["192.0.2.2", "2001:db8::2"]
                .map(|ip| ip.parse().unwrap())
                .to_vec(),
        },
        pools: [PoolSettings::new(4), PoolSettings::new(3)],
        pin_dir: "/sys/fs/bpf/other".into(),
        keep_attached: true,
        hooks: HookMode::On,
        cgroup: Some("/host/cgroup".into()),
        balance: BalanceOptions {
            on: false,
            ports: (50_000, 50_099),
            new_flows: Limit::default(),
        },
        ..DataplaneSettings::new(3)
    };
    let limit = |rate, burst| Limit { rate, burst };
    let policy = &mut expected.policy;
    policy.native_routing = true;
    policy.pool[Class::Node as usize] = Pool::NorthSouth;
    policy.spoof = [SpoofAction::Off; Spoof::COUNT];
    policy.spoof[Spoof::Cluster as usize] = SpoofAction::Drop;
    policy.spoof[Spoof::Martian as usize] = SpoofAction::Count;
    policy.source_syn = limit(10, 20);
    policy.source_packets = limit(30, 30);
    policy.class_syn[Class::NorthSouth as usize] = limit(40, 40);
    policy.class_packets[Class::Unknown as usize] = limit(50, 60);
    policy.cpus.of[Pool::EastWest as usize] = vec![0];
    assert_eq!(found, expected);
}

#[test]
fn a_cpu_that_is_not_there_is_named() {
    let error = settings(&["--cpu-isolation=north-south=60000"]).unwrap_err();
    let text = error.to_string();
    let start = "--cpu-isolation: CPU 60000 is not online";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn one_thing_has_one_value() {
    let error = settings(&["--pools=east-west=1", "--pools=east-west=2"]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("--pools east-west is given twice"), "{text}");
    assert!(settings(&["--pools=east-west=1,east-west=1"]).is_ok());
}
