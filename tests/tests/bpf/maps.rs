//! The maps as bpftool shows them, and weights that it changes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use serde_json::Value;
use splitter::dataplane::{Pinned, Policy, SlotAllocator, SlotContent, plan};
use splitter::model::{
    Backend, BackendId, BackendKey, HostPattern, Kind, Location, LocationKey, ObjectRef, PathKind,
    Snapshot, Split, Variant,
};
use splitter::routing::{SlotId, WeightSource as _};
use splitter_common::{Fallback, Pool};
use splitter_tests::bpf::Loaded;
use splitter_tests::bpf::net::command;

fn path(loaded: &Loaded, map: &str) -> String {
    let dir = &loaded.kernel.report().pin_dir;
    dir.join(map).to_string_lossy().into_owned()
}

/// What `bpftool map …` prints as JSON.
fn bpftool(loaded: &Loaded, verb: &str, map: &str) -> Value {
    let text = command(
        "bpftool",
        &["-j", "map", verb, "pinned", &path(loaded, map)],
    );
    serde_json::from_str(&text).unwrap()
}

/// What `bpftool map dump` prints for a person.
fn dump(loaded: &Loaded, map: &str) -> String {
    command("bpftool", &["map", "dump", "pinned", &path(loaded, map)])
}

const MAPS: [&str; 33] = [
    "config",
    "cidr4",
    "cidr6",
    "cidr4_index",
    "cidr6_index",
    "listeners",
    "listener_addrs",
    "pools",
    "pool_info",
    "counters",
    "class_buckets",
    "source_buckets",
    "splits",
    "split_stats",
    "split_names",
    "logged",
    "l4_services",
    "l4_endpoints",
    "l4_keeps",
    "l4_turns",
    "l4_counts",
    "l4_asked",
    "l4_settings",
    "l4_ports",
    "l4_fronts",
    "l4_balanced",
    "l4_rings",
    "l4_targets",
    "l4_flows",
    "l4_unproven",
    "l4_fragments",
    "l4_traffic",
    "l4_work",
];

#[test]
fn every_map_has_type_information_and_a_name() {
    let loaded = Loaded::new(&Policy::default());
    let pinned = std::fs::read_dir(&loaded.kernel.report().pin_dir).unwrap();
    assert_eq!(
        pinned.count(),
        MAPS.len(),
        "a map that this test does not know"
    );
    for map in MAPS {
        let info = bpftool(&loaded, "show", map);
        assert_eq!(info["name"], map);
        // The kernel takes none for socket maps.
        let wanted = map != "pools";
        assert_eq!(info.get("btf_id").is_some(), wanted, "{map}: {info}");
    }
}

#[test]
fn dumps_show_fields_and_addresses() {
    let mut loaded = Loaded::new(&Policy::default());
    let listener = loaded
        .nodes
        .node
        .run(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let addr = "203.0.113.1:80".parse().unwrap();
    let Loaded { kernel, nodes, .. } = &mut loaded;
    let pools = [(Pool::EastWest, listener.as_fd())];
    nodes
        .node
        .run(|| kernel.pools.publish(addr, Fallback::Reset, &pools))
        .unwrap();

    let text = dump(&loaded, "cidr4").replace([' ', '\n'], "");
    let wanted = "\"len\":24,\"pad\":[0,0],\"addr\":[10,244,0,0]},\"value\":{\"kind\":2}";
    assert!(text.contains(wanted), "{text}");
    let text = dump(&loaded, "cidr6").replace([' ', '\n'], "");
    assert!(
        text.contains("\"addr\":[253,0,2,68,0,0,0,0,0,0,0,0,0,0,0,0]"),
        "{text}"
    );
    let text = dump(&loaded, "listener_addrs").replace([' ', '\n'], "");
    let wanted = "\"addr\":[203,0,113,1,0,0,0,0,0,0,0,0,0,0,0,0],\"port\":{\"port\":80,\"protocol\":6,\"family\":4}";
    assert!(text.contains(wanted), "{text}");
    let text = dump(&loaded, "config").replace([' ', '\n'], "");
    assert!(
        text.contains("\"spoof\":[2,2,2,2,1],\"pool\":[0,0,1,1,1]"),
        "{text}"
    );
    let nic = loaded.nic();
    assert!(
        text.contains(&format!("\"externals\":1,\"external\":[{nic},0")),
        "{text}"
    );

    let text = dump(&loaded, "counters").replace([' ', '\n'], "");
    assert!(
        text.contains("\"steer_assigned\":{\"count\":0,\"bytes\":0}"),
        "{text}"
    );

    // Sockets by their cookies, and what they are beside them.
    let cookie = socket2::SockRef::from(&listener).cookie().unwrap();
    let pools = bpftool(&loaded, "dump", "pools");
    let info = bpftool(&loaded, "dump", "pool_info");
    let place = pools
        .as_array()
        .unwrap()
        .iter()
        .position(|entry| entry["value"].is_array());
    let place = place.unwrap();
    let info = &info[place]["formatted"]["value"];
    assert_eq!(info["cookie"], cookie);
    assert_eq!(info["pool"], Pool::EastWest.code());
    assert_eq!(info["pid"], std::process::id());
    assert_eq!(
        (&info["port"], &info["addr"][0]),
        (&Value::from(80), &Value::from(203))
    );
    let bytes: Vec<u8> = pools[place]["value"]
        .as_array()
        .unwrap()
        .iter()
        .map(|byte| {
            u8::from_str_radix(byte.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
        })
        .collect();
    assert_eq!(u64::from_ne_bytes(bytes.try_into().unwrap()), cookie);
}

const SLOT: SlotId = SlotId(7);

/// A slot's bytes, as bpftool takes them.
fn hex(words: &[u32]) -> Vec<String> {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
    bytes.map(|byte| byte.to_string()).collect()
}

#[test]
fn both_sides_see_the_same_weights() {
    let loaded = Loaded::new(&Policy::default());
    let slots = loaded.kernel.splits().table;
    slots
        .write(SLOT, &SlotContent::new([(80, 3), (20, 4)]), 12)
        .unwrap();
    let key = ["key", "7", "0", "0", "0"];
    let file = path(&loaded, "splits");
    let lookup = || {
        let args = [&["-j", "map", "lookup", "pinned", &file], &key[..]].concat();
        let value: Value = serde_json::from_str(&command("bpftool", &args)).unwrap();
        value["formatted"]["value"].clone()
    };
    let value = lookup();
    assert_eq!(
        (&value["generation"], &value["count"]),
        (&Value::from(12), &Value::from(2))
    );
    assert_eq!(value["variants"][0]["weight"], 80);
    assert_eq!(
        (
            &value["variants"][1]["weight"],
            &value["variants"][1]["backend"]
        ),
        (&Value::from(20), &Value::from(4))
    );

    // Somebody changes the split from outside: the next read has it.
    let mut words = vec![2, 12, 2, 0, 50, 3, 50, 4];
    words.resize(20, 0);
    let bytes = hex(&words);
    let mut args = [&["map", "update", "pinned", &file], &key[..], &["value"]].concat();
    args.extend(bytes.iter().map(String::as_str));
    command("bpftool", &args);
    assert_eq!(slots.weights(SLOT).values[..3], [50, 50, 0]);

    // And the other way round.
    slots
        .write(SLOT, &SlotContent::new([(1, 3), (1, 4), (1, 5)]), 13)
        .unwrap();
    assert_eq!(lookup()["count"], 3);
}

#[test]
fn decisions_are_counted_beside_the_weights() {
    let loaded = Loaded::new(&Policy::default());
    for _ in 0..3 {
        loaded.kernel.splits().stats.count(SLOT, 1);
    }
    let stats = bpftool(&loaded, "dump", "split_stats");
    assert_eq!(stats[7]["formatted"]["value"]["chosen"][1], 3);
}

/// A Snapshot with one Location that is split.
fn snapshot() -> Snapshot {
    let ingress = ObjectRef::new(Kind::Ingress, "default", "shop");
    let backend = |service: &str| {
        Arc::new(Backend {
            key: BackendKey {
                namespace: "default".into(),
                service: service.into(),
                port: "80".into(),
            },
            fault: None,
            endpoints: Vec::new(),
        })
    };
    let variant = |name: &str, backend, weight| Variant {
        name: name.into(),
        ingress: ingress.clone(),
        backend: BackendId(backend),
        weight,
    };
    let location = Location {
        key: LocationKey {
            host: HostPattern::Exact("shop.example".into()),
            path: "/cart".into(),
            kind: PathKind::Prefix,
        },
        pattern: None,
        policy: None,
        split: Split {
            variants: vec![variant("stable", 0, 80), variant("shop-new", 1, 20)],
            rules: Vec::new(),
            policy: None,
        },
        ingress: ingress.clone(),
    };
    Snapshot {
        locations: vec![Arc::new(location)].into(),
        backends: vec![backend("shop"), backend("shop-new")].into(),
        ..Snapshot::default()
    }
}

#[test]
fn slots_have_names_that_bpftool_prints_as_text() {
    let loaded = Loaded::new(&Policy::default());
    let splits = loaded.kernel.splits();
    let (snapshot, mut slots) = (snapshot(), SlotAllocator::default());
    let first = plan(&snapshot, 1, &mut slots);
    splits.name(&first, &snapshot).unwrap();
    let names = bpftool(&loaded, "dump", "split_names");
    let name = &names[0]["formatted"]["value"];
    let variants = &name["variants"];
    assert_eq!(
        (&name["host"], &name["path"]),
        (&"shop.example".into(), &"/cart".into())
    );
    assert_eq!(
        (&name["kind"], &variants[0]),
        (&"Prefix".into(), &"stable".into())
    );
    assert_eq!(
        (&variants[1], &variants[2]),
        (&"shop-new".into(), &"".into())
    );
    let text = dump(&loaded, "split_names");
    assert!(text.contains("\"host\": \"shop.example\""), "{text}");

    let pinned = Pinned::open(&loaded.pins.path().join("splitter")).unwrap();
    let name = &pinned.names().unwrap()[&0];
    assert_eq!(name.location, "shop.example/cart (Prefix)");
    assert_eq!(name.variants, ["stable", "shop-new"]);
    // A Location that is gone leaves no name behind.
    let empty = plan(&Snapshot::default(), 2, &mut slots);
    splits.name(&empty, &Snapshot::default()).unwrap();
    assert!(pinned.names().unwrap().is_empty());
}
