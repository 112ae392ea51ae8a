//! What a flood from outside does to callers from inside, with steering and without.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use splitter_tests::bpf::Site;
use splitter_tests::eventually;

use super::{least, load, median, start_behind};

/// Requests a second from inside.
const RATE: u32 = 200;
const TIME: Duration = Duration::from_secs(4);
/// Kept connections of the flood.
const FLOOD: usize = 64;
/// Where the flood is made, and the CPU of the north-south pool.
const OUTER: usize = 0;
/// Where callers from inside are, and the CPU of the east-west pool.
const INNER: usize = 1;

/// What is done to the north-south pool meanwhile. The requests of the second flood have no Location,
/// so that it is the proxy that they are too many for, and not the backend.
const FLOODS: [&str; 3] = ["idle", "SYN flood", "keep-alive flood"];

pub fn run(rounds: usize) {
    let modes = [
        (
            "xdp, cpu sets",
            "--steering xdp --cpu-isolation north-south=0;east-west=1 --pools north-south=1,east-west=1",
        ),
        ("none", "--steering none"),
    ];
    let sites = modes.map(|(_, args)| {
        let site = start_behind(INNER, args);
        // One backend answers everything.
        site.weigh(0);
        eventually("the weight is taken up", || {
            let canary = [("variant", "web-next")];
            site.metrics().sum("splitter_variant_weight", &canary) == 0.0
        });
        site.nodes
            .node
            .ip("route add 198.18.0.0/15 via 203.0.113.2");
        site
    });
    let mut found = modes.map(|_| FLOODS.map(|_| Vec::new()));
    for _ in 0..rounds {
        for (site, found) in sites.iter().zip(&mut found) {
            for (flood, found) in FLOODS.iter().zip(found) {
                found.push(under(site, flood));
            }
        }
    }
    println!(
        "p99 of {RATE} requests a second from a pod, in ms; {rounds} rounds of {TIME:?} each in turn"
    );
    println!(
        "  {:<16}{:<20}{:>8}{:>8}   of idle (median of rounds)",
        "steering", "", "median", "least"
    );
    for ((mode, _), found) in modes.iter().zip(&found) {
        for (flood, p99s) in FLOODS.iter().zip(found) {
            let ratios: Vec<_> = p99s
                .iter()
                .zip(&found[0])
                .map(|(p99, idle)| p99 / idle)
                .collect();
            let (p99, least, ratio) = (median(p99s), least(p99s), median(&ratios));
            println!("  {mode:<16}{flood:<20}{p99:>8.2}{least:>8.2}   x {ratio:.2}");
        }
    }
    println!("  (with steering at most x 2)\n");
}

fn under(site: &Site, flood: &str) -> f64 {
    let (out, pod) = (&site.nodes.out, &site.nodes.pod);
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let flood = match flood {
            "SYN flood" => Some(scope.spawn(move || load::syn_flood(out, OUTER, stop))),
            "keep-alive flood" => {
                Some(scope.spawn(move || load::keep_alive_flood(out, OUTER, FLOOD, stop)))
            }
            _ => None,
        };
        let p99 = load::p99(pod, INNER, RATE, TIME);
        stop.store(true, Ordering::Relaxed);
        // A flood that was none would show nothing.
        let flooded = flood.map(|flood| flood.join().unwrap());
        assert!(flooded.is_none_or(|count| count > 1000), "{flooded:?}");
        p99
    })
}
