use super::*;

fn without_main_pods(policy: &[(&str, &str)]) -> (Backend, Splitter) {
    let canary = Backend::named("C");
    let splitter = Splitter::start(
        &Manifests::new()
            .main("main", "a.test", "/", "m")
            .canary("canary", "a.test", "/", "c", policy)
            .service("m", &[])
            .service("c", &[canary.addr()]),
    );
    (canary, splitter)
}

#[test]
fn row_34_canary_answers_by_header_although_main_is_down() {
    let (_canary, splitter) = without_main_pods(&[("canary-by-header", "X")]);
    always(&splitter, "a.test", "/", "X: always\r\n", "C");
    always(&splitter, "a.test", "/", "", "503");
}

#[test]
fn row_35_and_36_weight_100_answers_although_main_is_down() {
    let (_canary, splitter) = without_main_pods(ALL);
    always(&splitter, "a.test", "/", "", "C");
}

#[test]
fn row_37_canary_without_pods_leaves_all_to_main() {
    let main = Backend::named("M");
    for weight in ["0", "50", "100"] {
        let splitter = Splitter::start(
            &Manifests::new()
                .main("main", "a.test", "/", "m")
                .canary(
                    "canary",
                    "a.test",
                    "/",
                    "c",
                    &[("canary-weight", weight), ("canary-by-header", "X")],
                )
                .service("m", &[main.addr()])
                .service("c", &[]),
        );
        always(&splitter, "a.test", "/", "", "M");
        always(&splitter, "a.test", "/", "X: always\r\n", "M");
        assert_eq!(splitter.metrics().sum("splitter_faults_total", &[]), 0.0);
    }
}

#[test]
fn row_38_retry_picks_another_pod_of_the_canary() {
    let (main, canary) = (Backend::named("M"), Backend::named("C"));
    let splitter = Splitter::start_with(
        &Manifests::new()
            .main("main", "a.test", "/", "m")
            .canary("canary", "a.test", "/", "c", ALL)
            .service("m", &[main.addr()])
            .service("c", &[refusing(), canary.addr()]),
        |settings| settings.workers = 2,
    );
    let addr = splitter.http();
    let threads: Vec<_> = (0..20)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::connect(addr);
                (0..50).all(|_| client.get("a.test", "/").text() == "C")
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().ok(), Some(true));
    }
    assert_eq!(main.connections(), 0);
}
