//! From the write of a weight to the first decision of the last worker by it.

use std::time::Instant;

use splitter::dataplane::{Pinned, SlotContent};
use splitter::routing::SlotId;
use splitter_tests::bpf::site::HOST;
use splitter_tests::client::Client;

use super::{load, median, start};

/// Kept connections of each pool: enough to have some with every worker.
const CONNECTIONS: usize = 12;

pub fn run(rounds: usize) {
    let site = start(2, "--steering sk-lookup");
    let splits = Pinned::open(&site.pin_dir()).unwrap().splits;
    let before = splits.table.read(SlotId(0));
    let backends = [before.variants[0].backend, before.variants[1].backend];
    let to = load::TO.parse().unwrap();
    let from = [&site.nodes.out, &site.nodes.pod].into_iter();
    let mut clients: Vec<_> = from
        .flat_map(|from| (0..CONNECTIONS).map(|_| from.run(|| Client::connect(to))))
        .collect();
    let (mut writes, mut all) = (Vec::new(), Vec::new());
    for round in 0..rounds * 20 {
        // All for one side, then all for the other.
        let side = round % 2;
        let mut weights = [0, 0];
        weights[side] = 1;
        let content = SlotContent::new([0, 1].map(|n| (weights[n], backends[n])));
        let began = Instant::now();
        splits
            .table
            .write(SlotId(0), &content, round as u64)
            .unwrap();
        writes.push(began.elapsed().as_secs_f64() * 1e6);
        for client in &mut clients {
            client.send(format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
        }
        for client in &mut clients {
            let answer = client.answer("GET").text();
            assert_eq!(
                answer,
                ["web", "web-next"][side],
                "a request by an old weight"
            );
        }
        all.push(began.elapsed().as_secs_f64() * 1e6);
    }
    println!(
        "a weight written to the map, {} times; the next request of each of {} connections to 4 workers",
        all.len(),
        clients.len()
    );
    println!(
        "  the write                               {:>8.1} us",
        median(&writes)
    );
    println!(
        "  until the last of them was answered     {:>8.0} us, all by the new weight\n",
        median(&all)
    );
}
