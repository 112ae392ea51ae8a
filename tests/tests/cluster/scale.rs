//! How large a cluster may be. Runs only by name, as it takes minutes: it prints what it measures.

use std::time::{Duration, Instant};

use splitter_tests::client::Client;
use splitter_tests::cluster::{objects, pod, pod_ip};

use crate::world::World;

/// Ingresses; half as many Services, each with ten endpoints.
const INGRESSES: usize = 5_000;

/// Who writes them.
const WRITERS: usize = 4;

pub fn thousands_of_ingresses(world: &mut World) {
    let ns = world.namespace();
    let _pods = [pod(1, "stable"), pod(2, "canary")];
    world.put_service(&ns, "stable", 1);
    world.put_service(&ns, "canary", 2);
    world.put(&objects::ingress(&ns, "main", "main.test", "stable"));
    world.put(&objects::canary(&ns, "canary", "main.test", "canary", 0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (plane, ns) = (&world.plane, &ns);
            scope.spawn(move || {
                let api = plane.admin();
                for number in (writer..INGRESSES).step_by(WRITERS) {
                    let name = format!("i{number}");
                    let service = format!("s{}", number / 2);
                    if number % 2 == 0 {
                        let endpoints: Vec<_> = (10..20).map(pod_ip).collect();
                        let slice = objects::slice(ns, &service, &endpoints, &[]);
                        api.try_apply(&objects::service(ns, &service)).unwrap();
                        api.try_apply(&slice).unwrap();
                    }
                    let ingress = objects::ingress(ns, &name, &format!("{name}.test"), &service);
                    api.try_apply(&ingress).unwrap();
                }
            });
        }
    });
    println!("{INGRESSES} Ingresses written in {:.1?}", began.elapsed());

    let before = resident();
    let began = Instant::now();
    let splitter = world.splitter();
    let (took, after) = (began.elapsed(), resident());
    println!(
        "serving after {took:.1?}, {} MiB more",
        (after - before) / 1_048_576
    );

    let mut client = Client::connect(splitter.http());
    let mut times = Vec::new();
    for round in 0..20 {
        let (weight, expected) = if round % 2 == 0 {
            (100, "canary")
        } else {
            (0, "stable")
        };
        world.put(&objects::canary(
            &ns,
            "canary",
            "main.test",
            "canary",
            weight,
        ));
        let began = Instant::now();
        while client.get("main.test", "/").text() != expected {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "the weight never comes"
            );
        }
        times.push(began.elapsed());
    }
    times.sort_unstable();
    println!(
        "a weight counts after {:.1?} (median), {:.1?} (worst)",
        times[10], times[19]
    );
}

/// Bytes of memory that this process has.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|it| it.parse::<usize>().ok());
    pages.unwrap() * 4096
}
