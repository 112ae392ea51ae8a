use super::*;

fn two_hosts_one_canary(policy: &[(&str, &str)]) -> (Cast, Splitter) {
    serve(|it| {
        it.main("main-a", "a.test", "/", "m")
            .main("main-b", "b.test", "/", "m")
            .canary("canary-a", "a.test", "/", "c", policy)
    })
}

#[test]
fn row_01_shared_service_host_is_not_canaried() {
    let (_cast, splitter) = two_hosts_one_canary(ALL);
    always(&splitter, "a.test", "/", "", "C");
    always(&splitter, "b.test", "/", "", "M");
}

#[test]
fn row_02_shared_service_host_is_not_canaried_by_header() {
    let rule = &[
        ("canary-by-header", "X"),
        ("canary-by-header-value", "true"),
    ];
    let (_cast, splitter) = two_hosts_one_canary(rule);
    always(&splitter, "a.test", "/", "X: true\r\n", "C");
    always(&splitter, "b.test", "/", "X: true\r\n", "M");
}

#[test]
fn row_04_shared_service_path_is_not_canaried() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m")
            .main("main-x", "a.test", "/x", "m")
            .canary("canary", "a.test", "/x", "c", ALL)
    });
    always(&splitter, "a.test", "/", "", "M");
    always(&splitter, "a.test", "/y", "", "M");
    always(&splitter, "a.test", "/x", "", "C");
}

#[test]
fn row_05_deleted_canary_ends_although_another_host_has_one() {
    let cast = Cast::new();
    let rest = cast
        .services()
        .main("main-a", "a.test", "/", "m")
        .main("main-b", "b.test", "/", "m")
        .canary("canary-b", "b.test", "/", "c", ALL);
    let splitter = Splitter::start(&rest.clone().canary("canary-a", "a.test", "/", "c", ALL));
    always(&splitter, "a.test", "/", "", "C");
    splitter.apply(&rest);
    eventually("the canary ends", || {
        who(&splitter, "a.test", "/", "") == "M"
    });
    always(&splitter, "a.test", "/", "", "M");
    always(&splitter, "b.test", "/", "", "C");
}

/// The canary's Service is the main one of another host; every order of creation.
fn canary_service_is_another_main(order: [u32; 3]) {
    let (_cast, splitter) = serve(|it| {
        it.created(order[0])
            .main("main", "a.test", "/", "m")
            .created(order[1])
            .main("test-host", "canary.a.test", "/", "c")
            .created(order[2])
            .canary("canary", "a.test", "/", "c", ALL)
    });
    always(&splitter, "a.test", "/", "", "C");
    always(&splitter, "canary.a.test", "/", "", "C");
    assert_eq!(splitter.problems(), Vec::<String>::new());
}

#[test]
fn row_06_canary_works_although_its_service_was_a_main_before() {
    canary_service_is_another_main([1, 2, 3]);
}

#[test]
fn row_07_main_works_although_its_service_was_a_canary_before() {
    let cast = Cast::new();
    let before = cast
        .services()
        .created(1)
        .main("main", "a.test", "/", "m")
        .created(2)
        .canary("canary", "a.test", "/", "c", &[("canary-weight", "0")]);
    let splitter = Splitter::start(&before);
    assert_eq!(who(&splitter, "canary.a.test", "/", ""), "404");
    splitter.apply(
        &before
            .created(3)
            .main("test-host", "canary.a.test", "/", "c"),
    );
    eventually("the host is served", || {
        who(&splitter, "canary.a.test", "/", "") == "C"
    });
    always(&splitter, "a.test", "/", "", "M");
}

#[test]
fn row_08_every_order_of_creation_gives_the_same() {
    for order in [
        [1, 2, 3],
        [1, 3, 2],
        [2, 1, 3],
        [2, 3, 1],
        [3, 1, 2],
        [3, 2, 1],
    ] {
        canary_service_is_another_main(order);
    }
    // In the same second, with either name first.
    for (host, canary) in [("one", "two"), ("two", "one")] {
        let (_cast, splitter) = serve(|it| {
            it.created(1)
                .main("main", "a.test", "/", "m")
                .main(host, "canary.a.test", "/", "c")
                .canary(canary, "a.test", "/", "c", ALL)
        });
        always(&splitter, "a.test", "/", "", "C");
        always(&splitter, "canary.a.test", "/", "", "C");
    }
}

#[test]
fn row_09_third_ingress_on_the_canary_service_changes_nothing() {
    let (_cast, splitter) = serve(|it| {
        it.main("web", "web.test", "/", "m")
            .main("web2", "web2.test", "/", "c")
            .canary("canary", "web.test", "/", "c", ALL)
    });
    always(&splitter, "web.test", "/", "", "C");
    always(&splitter, "web2.test", "/", "", "C");
}

#[test]
fn row_11_test_host_on_the_canary_service_is_served() {
    canary_service_is_another_main([1, 3, 2]);
}

#[test]
fn row_12_main_and_canary_of_different_hosts_share_a_service() {
    let (_cast, splitter) = serve(|it| {
        it.main("main-a", "a.test", "/", "c")
            .canary("canary", "b.test", "/", "c", &[("canary-weight", "50")])
            .main("main-b", "b.test", "/", "m")
    });
    always(&splitter, "a.test", "/", "", "C");
    assert_eq!(share(&splitter, "b.test", 100, "C"), 50);
}

#[test]
fn row_14_stray_path_of_a_canary_is_reported_alone() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m")
            .canary("canary", "a.test", "/", "c", ALL)
            .canary("stray", "a.test", "/only-here", "c", ALL)
    });
    always(&splitter, "a.test", "/", "", "C");
    always(&splitter, "a.test", "/only-here", "", "C");
    assert_eq!(splitter.problems(), ["stray: canary-stray"]);
}

/// As one Ingress with two rules, which is how Argo Rollouts and Flagger write it.
#[test]
fn row_15_stray_path_does_not_disable_its_ingress() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m").raw(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: canary\n  \
             namespace: demo\n  annotations:\n    \
             nginx.ingress.kubernetes.io/canary: \"true\"\n    \
             nginx.ingress.kubernetes.io/canary-weight: \"100\"\nspec:\n  rules:\n  \
             - host: nobody.test\n    http: &paths\n      paths:\n      \
             - {path: /, pathType: Prefix, backend: {service: {name: c, port: {number: 80}}}}\n  \
             - host: a.test\n    http: *paths\n",
        )
    });
    always(&splitter, "a.test", "/", "", "C");
    always(&splitter, "nobody.test", "/", "", "404");
    assert_eq!(splitter.problems(), ["canary: canary-stray"]);
}

/// One canary for one of four Locations that share one Service, each in turn.
#[test]
fn row_17_and_18_policy_is_applied_where_it_is_configured() {
    const PLACES: [(&str, &str); 4] = [
        ("a.test", "/"),
        ("a.test", "/x"),
        ("b.test", "/"),
        ("b.test", "/x"),
    ];
    for canaried in PLACES {
        let (_cast, splitter) = serve(|it| {
            let mains = PLACES.iter().enumerate().fold(it, |it, (i, (host, path))| {
                it.main(&format!("main-{i}"), host, path, "m")
            });
            mains.canary("canary", canaried.0, canaried.1, "c", ALL)
        });
        for (host, path) in PLACES {
            let by = if (host, path) == canaried { "C" } else { "M" };
            always(&splitter, host, path, "", by);
        }
    }
}

/// Traefik's replacement keys the canary by namespace, Service and port as well.
#[test]
fn row_19_same_service_and_port_by_number_and_by_name() {
    let (_cast, splitter) = serve(|it| {
        it.main("main-a", "a.test", "/", "m")
            .canary("canary", "a.test", "/", "c", ALL)
            .raw(
                "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: main-b, \
                 namespace: demo}\nspec: {rules: [{host: b.test, http: {paths: [{path: /, \
                 pathType: Prefix, backend: {service: {name: m, port: {name: http}}}}]}}]}\n",
            )
    });
    always(&splitter, "a.test", "/", "", "C");
    always(&splitter, "b.test", "/", "", "M");
}

#[test]
fn row_21_several_canaries_on_one_location() {
    let (_cast, splitter) = serve(|it| {
        it.main("main", "a.test", "/", "m")
            .canary(
                "canary-c",
                "a.test",
                "/",
                "c",
                &[("canary-by-header", "X-C")],
            )
            .canary(
                "canary-d",
                "a.test",
                "/",
                "d",
                &[("canary-by-header", "X-D")],
            )
    });
    always(&splitter, "a.test", "/", "", "M");
    always(&splitter, "a.test", "/", "X-C: always\r\n", "C");
    always(&splitter, "a.test", "/", "X-D: always\r\n", "D");
}
