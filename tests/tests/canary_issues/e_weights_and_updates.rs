use super::*;

fn weighted(rules: &[(&str, &str)]) -> (Cast, Splitter) {
    serve(|it| {
        it.main("main", "a.test", "/", "m")
            .canary("canary", "a.test", "/", "c", rules)
    })
}

#[test]
fn row_55_a_tenth_of_a_percent_is_fine_enough() {
    let (_cast, splitter) = weighted(&[("canary-weight", "1"), ("canary-weight-total", "1000")]);
    // Exactly one of each thousand, whichever.
    for _ in 0..3 {
        assert_eq!(share(&splitter, "a.test", 1000, "C"), 1);
    }
}

#[test]
fn row_56_weight_total_counts() {
    let (_cast, splitter) = weighted(&[("canary-weight", "100"), ("canary-weight-total", "200")]);
    assert_eq!(share(&splitter, "a.test", 200, "C"), 100);
    // Beside a rule, too.
    let (_cast, splitter) = weighted(&[
        ("canary-weight", "100"),
        ("canary-weight-total", "200"),
        ("canary-by-header", "X"),
    ]);
    assert_eq!(share(&splitter, "a.test", 200, "C"), 100);
    always(&splitter, "a.test", "/", "X: always\r\n", "C");
}

#[test]
fn row_57_every_canary_gets_its_weight() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m")
            .canary("canary-c", "a.test", "/", "c", &[("canary-weight", "10")])
            .canary("canary-d", "a.test", "/", "d", &[("canary-weight", "20")])
    });
    let mut client = splitter.client();
    let mut counts = [0; 3];
    for _ in 0..200 {
        let by = client.get("a.test", "/").text();
        counts["MCD".find(&by).expect("a known backend")] += 1;
    }
    assert_eq!(counts, [140, 20, 40]);
}

#[test]
fn row_58_older_canary_comes_first_when_weights_exceed_the_total() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m")
            .created(2)
            .canary("younger", "a.test", "/", "c", ALL)
            .created(1)
            .canary("older", "a.test", "/", "d", ALL)
    });
    always(&splitter, "a.test", "/", "", "D");
    assert!(
        splitter
            .problems()
            .iter()
            .any(|it| it.starts_with("younger: ")),
        "{:?}",
        splitter.problems()
    );
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m")
            .created(1)
            .canary("older", "a.test", "/", "c", &[("canary-weight", "70")])
            .created(2)
            .canary("younger", "a.test", "/", "d", &[("canary-weight", "70")])
    });
    assert_eq!(share(&splitter, "a.test", 100, "C"), 70);
    assert_eq!(share(&splitter, "a.test", 100, "D"), 30);
}

#[test]
fn row_60_change_of_a_weight_beside_rules_needs_no_change_of_main() {
    let cast = Cast::new();
    let with = |weight: &str| {
        cast.services().main("main", "a.test", "/", "m").canary(
            "canary",
            "a.test",
            "/",
            "c",
            &[
                ("canary-weight", weight),
                ("canary-by-header", "X"),
                ("canary-by-cookie", "k"),
            ],
        )
    };
    let splitter = Splitter::start(&with("50"));
    assert_eq!(share(&splitter, "a.test", 100, "C"), 50);
    always(
        &splitter,
        "a.test",
        "/",
        "X: always\r\nCookie: k=never\r\n",
        "C",
    );
    always(
        &splitter,
        "a.test",
        "/",
        "X: other\r\nCookie: k=never\r\n",
        "M",
    );
    splitter.apply(&with("100"));
    eventually("the weight counts", || {
        share(&splitter, "a.test", 20, "C") == 20
    });
    always(&splitter, "a.test", "/", "Cookie: k=never\r\n", "M");
}

#[test]
fn row_61_canary_that_comes_later_is_used_whatever_the_balancer() {
    for balancer in ["ewma", "round_robin"] {
        let cast = Cast::new();
        let main = cast.services().ingress(
            "main",
            "a.test",
            "/",
            "Prefix",
            "m",
            &[("load-balance", balancer)],
        );
        let splitter = Splitter::start(&main);
        always(&splitter, "a.test", "/", "", "M");
        splitter.apply(&main.canary("canary", "a.test", "/", "c", ALL));
        eventually("the canary is used", || {
            who(&splitter, "a.test", "/", "") == "C"
        });
        always(&splitter, "a.test", "/", "", "C");
    }
}

#[test]
fn row_62_draws_of_different_workers_are_independent() {
    let half = &[("canary-weight", "50")];
    let draws: Vec<Vec<String>> = (0..2)
        .map(|_| {
            let (_cast, splitter) = weighted(half);
            let mut client = splitter.client();
            (0..100).map(|_| client.get("a.test", "/").text()).collect()
        })
        .collect();
    assert_ne!(draws[0], draws[1]);
    // And with many workers the whole is still half.
    let cast = Cast::new();
    let splitter = Splitter::start_with(
        &cast
            .services()
            .main("main", "a.test", "/", "m")
            .canary("canary", "a.test", "/", "c", half),
        |settings| settings.workers = 4,
    );
    let canary = (0..40)
        .map(|_| share(&splitter, "a.test", 10, "C"))
        .sum::<usize>();
    assert!((150..=250).contains(&canary), "{canary} of 400");
}

#[test]
fn row_64_canary_false_is_an_ordinary_ingress() {
    let cast = Cast::new();
    let off = [("canary", "false"), ("canary-weight", "100")];
    let with = |note: &str| {
        cast.services()
            .created(1)
            .ingress("main", "a.test", "/", "Prefix", "m", &[("x", note)])
            .created(2)
            .ingress("off", "a.test", "/", "Prefix", "c", &off)
            .ingress("off-alone", "b.test", "/", "Prefix", "c", &off)
    };
    let splitter = Splitter::start(&with("1"));
    always(&splitter, "a.test", "/", "", "M");
    always(&splitter, "b.test", "/", "", "C");
    splitter.apply(&with("2").main("new", "new.test", "/", "m"));
    eventually("the update is taken", || {
        splitter.get("new.test", "/").status == 200
    });
    always(&splitter, "a.test", "/", "", "M");
}
