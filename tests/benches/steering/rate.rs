//! Connections per second with steering and without.

use std::time::Duration;

use splitter_tests::bpf::Site;

use super::{load, median, start};

const TIME: Duration = Duration::from_millis(500);
/// So many times the rounds of the others, as each is short: a busy machine disturbs neighbours alike.
const TIMES: usize = 4;
const CLIENTS: usize = 4;

pub fn run(rounds: usize) {
    // One worker a pool: as many threads serve the outside with steering as without.
    let modes = ["none", "sk-lookup", "xdp"];
    let sites = modes.map(|mode| start(1, &format!("--steering {mode}")));
    let rounds = rounds * TIMES;
    let mut found = modes.map(|_| Vec::new());
    let mut spent = modes.map(|_| Vec::new());
    for _ in 0..rounds {
        for ((site, found), spent) in sites.iter().zip(&mut found).zip(&mut spent) {
            let before = cpu(site);
            let rate = load::connections(&site.nodes.out, CLIENTS, TIME);
            found.push(rate);
            spent.push((cpu(site) - before) * 1e6 / (rate * TIME.as_secs_f64()));
        }
    }
    println!("connections a second over veth, {rounds} rounds of {TIME:?} each in turn");
    for ((mode, rates), spent) in modes.iter().zip(&found).zip(&spent) {
        let ratios: Vec<_> = rates
            .iter()
            .zip(&found[0])
            .map(|(with, without)| with / without)
            .collect();
        let (rate, ratio) = (median(rates), median(&ratios));
        let spent = spent.iter().sum::<f64>() / rounds as f64;
        println!(
            "  --steering {mode:<10} {rate:>8.0}   x {ratio:.3}   {spent:.0} us of CPU time each"
        );
    }
    println!("  (at least 0.97)\n");
    // What was measured is what was meant.
    for (site, mode) in sites.iter().zip(modes).skip(1) {
        let assigned = [("class", "north-south"), ("reason", "assigned")];
        let steered = site.metrics().sum("splitter_steer_total", &assigned);
        assert!(steered >= rounds as f64, "{mode}: {steered}");
    }
}

/// CPU time of the process so far, in seconds; by the kernel's count in hundredths.
fn cpu(site: &Site) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", site.pid())).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks = fields.split(' ').skip(11).take(2);
    ticks
        .map(|ticks| ticks.parse::<f64>().unwrap() / 100.0)
        .sum()
}
