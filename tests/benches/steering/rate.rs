//! Connections per second with steering and without.

use std::time::Duration;

use super::{load, median, start};

const TIME: Duration = Duration::from_secs(2);
const CLIENTS: usize = 4;

pub fn run(rounds: usize) {
    let modes = ["none", "sk-lookup", "xdp"];
    let sites = modes.map(|mode| start(&format!("--workers 1 --steering {mode}")));
    let mut found = modes.map(|_| Vec::new());
    for _ in 0..rounds {
        for (site, found) in sites.iter().zip(&mut found) {
            found.push(load::connections(&site.nodes.out, CLIENTS, TIME));
        }
    }
    println!("connections a second over veth, {rounds} rounds of {TIME:?} each in turn");
    for (mode, rates) in modes.iter().zip(&found) {
        let ratios: Vec<_> = rates
            .iter()
            .zip(&found[0])
            .map(|(with, without)| with / without)
            .collect();
        let (rate, ratio) = (median(rates), median(&ratios));
        println!("  --steering {mode:<10} {rate:>8.0}   x {ratio:.3}");
    }
    println!("  (at least 0.97)\n");
    // What was measured is what was meant.
    for (site, mode) in sites.iter().zip(modes).skip(1) {
        let assigned = [("class", "north-south"), ("reason", "assigned")];
        let steered = site.metrics().sum("splitter_steer_total", &assigned);
        assert!(steered >= rounds as f64, "{mode}: {steered}");
    }
}
