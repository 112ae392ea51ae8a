//! The same changes in one thread of this process, without an API server and without workers: what
//! they cost, whatever else the machine does.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;
use splitter::app::Rehearsal;
use splitter::k8s::{Object, parse_documents};

use super::objects;

pub fn measure(ingresses: usize, rounds: usize) {
    // Keys are fetched by tasks, of which there are none here.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let mut rehearsal = Rehearsal::new().unwrap();
    let put = |_: &str, object: &Value| rehearsal.say(&read(object));
    let backends: [SocketAddr; 2] = [([10, 200, 0, 1], 80).into(), ([10, 200, 0, 2], 80).into()];
    let counts = objects::fill(put, ingresses, backends);
    println!("{counts}, in one thread of this process: CPU time, and time");
    let (cpu, wall) = timed(|| rehearsal.follow());
    println!("  all of it                     {cpu:>9.1?} {wall:>9.1?}");
    let changes = [
        ("weight changed", objects::weights()),
        ("endpoint changed", objects::endpoints(backends)),
        ("path added or removed", objects::paths()),
    ];
    for (what, sides) in changes {
        let sides = sides.map(|(object, _)| read(&object));
        let times = (1..=rounds).map(|round| {
            let before = rehearsal.live();
            rehearsal.say(&sides[round % 2]);
            let times = timed(|| rehearsal.follow());
            assert!(rehearsal.live().generation == before.generation + 1);
            // Letting go of the former state is part of it.
            let (cpu, wall) = timed(|| drop(before));
            (times.0 + cpu, times.1 + wall)
        });
        let (mut cpu, mut wall): (Vec<_>, Vec<_>) = times.unzip();
        cpu.sort_unstable();
        wall.sort_unstable();
        let (median, p99) = (rounds / 2, rounds * 99 / 100);
        println!(
            "  {what:<29} {:>9.1?} {:>9.1?} median, {:>9.1?} {:>9.1?} p99 of {rounds}",
            cpu[median], wall[median], cpu[p99], wall[p99]
        );
        rehearsal.say(&sides[0]);
        rehearsal.follow();
    }
}

fn read(object: &Value) -> Object {
    let parsed = parse_documents("bench", &object.to_string());
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    parsed.objects.into_iter().next().unwrap()
}

/// CPU time of this thread, and time.
fn timed(what: impl FnOnce()) -> (Duration, Duration) {
    let (cpu, wall) = (cpu(), Instant::now());
    what();
    (self::cpu() - cpu, wall.elapsed())
}

fn cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
