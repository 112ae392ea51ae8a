//! How large a cluster may be, by a whole process behind an API server of ours that answers at once:
//! 10,000 Ingresses on hosts of their own, 5,000 Services, 50,000 endpoints. What is measured is the
//! time until everything is served, the memory, and how soon a change counts: from the moment the
//! event is written to the watch until every kept connection is answered by it.
//!
//! `SPLITTER_SCALE_INGRESSES` sets another number of Ingresses, `SPLITTER_BENCH_ROUNDS` how many
//! changes of each kind there are. Before it, the memory of connections that are kept and not used:
//! `SPLITTER_SCALE_CONNECTIONS` of them.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

mod idle;
mod inside;
mod objects;
mod process;

use std::time::{Duration, Instant};

use serde_json::Value;
use splitter_tests::backend::Backend;
use splitter_tests::client::Client;
use splitter_tests::cluster::fake::FakeApi;

use objects::{INGRESSES, SLICES};
use process::Process;

/// Kept connections: enough to have some with each of two workers.
const CONNECTIONS: usize = 8;

fn main() {
    let number = |name: &str, usual: usize| -> usize {
        std::env::var(name).map_or(usual, |text| text.parse().unwrap())
    };
    idle::measure(number("SPLITTER_SCALE_CONNECTIONS", 100_000));
    let ingresses = number("SPLITTER_SCALE_INGRESSES", 10_000);
    let rounds = number("SPLITTER_BENCH_ROUNDS", 200);
    inside::measure(ingresses, rounds);
    let api = FakeApi::start();
    let (stable, canary) = (Backend::named("stable"), Backend::named("canary"));
    let put = |list: &str, object: &Value| drop(api.put_silently(list, object));
    let counts = objects::fill(put, ingresses, [stable.addr(), canary.addr()]);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    println!("{counts}, one process with 2 workers, load {}", load.trim());

    let process = Process::start(&api);
    println!("  first snapshot served after   {:>9.2?}", process.took);
    let idle = process.memory();
    println!(
        "  memory                        {:>7} MiB (at most {} MiB)",
        idle.now, idle.most
    );

    let mut clients: Vec<Client> = (0..CONNECTIONS)
        .map(|_| Client::connect(process.http))
        .collect();
    assert!(clients.iter_mut().all(|it| answer(it) == "stable"));
    let changes = [
        ("weight changed", INGRESSES, objects::weights()),
        (
            "endpoint changed",
            SLICES,
            objects::endpoints([stable.addr(), canary.addr()]),
        ),
        ("path added or removed", INGRESSES, objects::paths()),
    ];
    for (what, list, sides) in changes {
        let before = process.control_time();
        let times = measure(&api, &mut clients, list, &sides, rounds);
        // Two more changes are not among the times.
        let each = (process.control_time() - before) / (rounds as u32 + 2);
        println!(
            "  {what:<29} {:>9.1?} median, {:>9.1?} p99, {:>9.1?} worst of {rounds}; \
             {each:.1?} of CPU time each",
            times[rounds / 2],
            times[rounds * 99 / 100],
            times[rounds - 1]
        );
    }
    let busy = process.memory();
    println!(
        "  memory after these            {:>7} MiB (at most {} MiB)",
        busy.now, busy.most
    );
}

/// An object, and who answers by it.
type Side = (Value, &'static str);

/// Sorted times of `rounds` changes from one side to the other.
fn measure(
    api: &FakeApi,
    clients: &mut [Client],
    list: &str,
    sides: &[Side; 2],
    rounds: usize,
) -> Vec<Duration> {
    let change = |clients: &mut [Client], (object, by): &Side| {
        let began = Instant::now();
        api.put(list, object);
        for client in clients {
            while answer(client) != *by {
                assert!(
                    began.elapsed() < Duration::from_secs(60),
                    "{by} never answers"
                );
            }
        }
        began.elapsed()
    };
    // As it began.
    change(clients, &sides[0]);
    let times = (1..=rounds).map(|round| change(clients, &sides[round % 2]));
    let mut times: Vec<_> = times.collect();
    change(clients, &sides[0]);
    times.sort_unstable();
    times
}

fn answer(client: &mut Client) -> String {
    let answer = client.get(objects::HOST, objects::PATH);
    match answer.status {
        200 => answer.text(),
        status => status.to_string(),
    }
}
