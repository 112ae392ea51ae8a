//! What people reported about canaries of ingress-nginx, and what is right instead. Each test is
//! named after the report's row in the project's list, sections A to E; rows that need session
//! affinity, are about documentation only, or wish for what the annotations cannot say are left out.

use splitter_tests::backend::{Backend, refusing};
use splitter_tests::client::Client;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// A stable backend, two canaries, and manifests that know their Services `m`, `c` and `d`.
struct Cast {
    m: Backend,
    c: Backend,
    d: Backend,
}

impl Cast {
    fn new() -> Self {
        Cast {
            m: Backend::named("M"),
            c: Backend::named("C"),
            d: Backend::named("D"),
        }
    }

    fn services(&self) -> Manifests {
        Manifests::new()
            .service("m", &[self.m.addr()])
            .service("c", &[self.c.addr()])
            .service("d", &[self.d.addr()])
    }
}

/// Starts `ingresses` before the usual Services.
fn serve(ingresses: impl FnOnce(Manifests) -> Manifests) -> (Cast, Splitter) {
    let cast = Cast::new();
    let splitter = Splitter::start(&ingresses(cast.services()));
    (cast, splitter)
}

/// Who answers a GET with these fields; the status if it is nobody.
fn who(splitter: &Splitter, host: &str, path: &str, fields: &str) -> String {
    let answer = splitter.get_with(host, path, fields);
    match answer.status {
        200 => answer.text(),
        status => status.to_string(),
    }
}

/// Every of ten requests is answered by `by`.
#[track_caller]
fn always(splitter: &Splitter, host: &str, path: &str, fields: &str, by: &str) {
    for _ in 0..10 {
        assert_eq!(
            who(splitter, host, path, fields),
            by,
            "{host}{path} {fields:?}"
        );
    }
}

/// How many of `n` requests on one connection `by` answers.
fn share(splitter: &Splitter, host: &str, n: usize, by: &str) -> usize {
    let mut client = splitter.client();
    (0..n)
        .filter(|_| client.get(host, "/").text() == by)
        .count()
}

const ALL: &[(&str, &str)] = &[("canary-weight", "100")];

mod a_policy_belongs_to_the_location {
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
}

mod b_matching {
    use super::*;

    #[test]
    fn row_23_canary_without_host_is_used() {
        let (_cast, splitter) = serve(|it| {
            it.main("main", "", "/", "m")
                .canary("canary", "", "/", "c", ALL)
        });
        always(&splitter, "any.test", "/", "", "C");
    }

    #[test]
    fn row_24_canary_without_host_and_without_main_harms_nobody() {
        let (_cast, splitter) = serve(|it| {
            it.canary("canary", "", "/", "c", ALL)
                .main("main", "a.test", "/", "m")
        });
        always(&splitter, "any.test", "/", "", "404");
        always(&splitter, "a.test", "/", "", "M");
        assert_eq!(splitter.problems(), ["canary: canary-stray"]);
    }

    #[test]
    fn row_25_canary_of_another_path_type_is_reported_and_does_not_leak() {
        let (_cast, splitter) = serve(|it| {
            it.main("main", "h.test", "/", "m")
                .main("other", "other.test", "/", "m")
                .ingress(
                    "canary",
                    "h.test",
                    "/products",
                    "Exact",
                    "c",
                    &[
                        ("canary", "true"),
                        ("canary-by-header", "X"),
                        ("canary-by-header-pattern", "AAAA|BBBB"),
                    ],
                )
        });
        for (host, path) in [
            ("h.test", "/products"),
            ("h.test", "/"),
            ("other.test", "/products"),
        ] {
            always(&splitter, host, path, "X: AAAA\r\n", "M");
        }
        assert_eq!(splitter.problems(), ["canary: canary-stray"]);
    }

    #[test]
    fn row_26_rewrite_of_a_canary_has_no_effect() {
        let (cast, splitter) = serve(|it| {
            it.main("main", "a.test", "/input", "m").canary(
                "canary",
                "a.test",
                "/input",
                "c",
                &[("canary-weight", "100"), ("rewrite-target", "/ingest")],
            )
        });
        always(&splitter, "a.test", "/input", "", "C");
        assert_eq!(cast.c.last().target(), "/input");
        assert!(
            splitter
                .problems()
                .iter()
                .any(|it| it.starts_with("canary: ")),
            "it is told"
        );
    }

    #[test]
    fn row_27_class_decides_before_any_other_annotation() {
        let (_cast, splitter) = serve(|it| {
            it.main("main", "a.test", "/", "m").raw(
                "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: canary, \
                 namespace: demo, annotations: {kubernetes.io/ingress.class: other, \
                 nginx.ingress.kubernetes.io/canary: \"true\", \
                 nginx.ingress.kubernetes.io/canary-weight: \"100\"}}\n\
                 spec: {rules: [{host: a.test, http: {paths: [{path: /, pathType: Prefix, \
                 backend: {service: {name: c, port: {number: 80}}}}]}}]}\n",
            )
        });
        always(&splitter, "a.test", "/", "", "M");
    }

    #[test]
    fn row_29_service_upstream_of_main_does_not_end_its_canary() {
        let (_cast, splitter) = serve(|it| {
            it.ingress(
                "main",
                "a.test",
                "/",
                "Prefix",
                "m",
                &[("service-upstream", "true")],
            )
            .canary("canary", "a.test", "/", "c", &[("canary-weight", "50")])
        });
        assert_eq!(share(&splitter, "a.test", 100, "C"), 50);
        assert_eq!(share(&splitter, "a.test", 100, "M"), 50);
        assert!(
            splitter
                .problems()
                .iter()
                .any(|it| it.starts_with("main: ")),
            "what is not supported is told"
        );
    }

    #[test]
    fn row_30_canary_of_another_namespace_is_attached() {
        let cast = Cast::new();
        let splitter = Splitter::start(
            &Manifests::new()
                .namespace("ns1")
                .service("m", &[cast.m.addr()])
                .main("main", "a.test", "/", "m")
                .namespace("ns2")
                .service("c", &[cast.c.addr()])
                .canary("canary", "a.test", "/", "c", ALL),
        );
        always(&splitter, "a.test", "/", "", "C");
    }

    #[test]
    fn row_31_canary_alone_is_404() {
        let (cast, splitter) = serve(|it| it.canary("canary", "a.test", "/", "c", ALL));
        always(&splitter, "a.test", "/", "", "404");
        always(&splitter, "", "/", "", "404");
        assert_eq!(cast.c.connections(), 0);
    }

    /// Names outside the cluster are not resolved (yet), which is reported; the canary works.
    #[test]
    fn row_32_canary_of_an_external_main_works_by_header() {
        let cast = Cast::new();
        let splitter = Splitter::start(
            &cast
                .services()
                .main("main", "a.test", "/", "outside")
                .canary("canary", "a.test", "/", "c", &[("canary-by-header", "X")])
                .raw(
                    "apiVersion: v1\nkind: Service\nmetadata: {name: outside, namespace: demo}\n\
                     spec: {type: ExternalName, externalName: example.test, \
                     ports: [{port: 80}]}\n",
                ),
        );
        always(&splitter, "a.test", "/", "X: always\r\n", "C");
        always(&splitter, "a.test", "/", "", "503");
        assert!(
            splitter
                .problems()
                .iter()
                .any(|it| it.contains("external-name"))
        );
    }

    /// Guards are not supported yet, so nobody passes; least of all to one side only.
    #[test]
    fn row_33_guard_of_main_guards_both_sides() {
        let (cast, splitter) = serve(|it| {
            it.ingress(
                "main",
                "a.test",
                "/",
                "Prefix",
                "m",
                &[("auth-url", "http://auth.test/")],
            )
            .canary("canary", "a.test", "/", "c", &[("canary-by-header", "X")])
        });
        always(&splitter, "a.test", "/", "", "503");
        always(&splitter, "a.test", "/", "X: always\r\n", "503");
        assert_eq!(cast.m.connections() + cast.c.connections(), 0);
    }
}

mod c_endpoints_and_failure {
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
}

mod d_headers_and_cookies {
    use super::*;

    fn canary_with(rules: &[(&str, &str)]) -> (Cast, Splitter) {
        serve(|it| {
            it.main("main", "a.test", "/", "m")
                .canary("canary", "a.test", "/", "c", rules)
        })
    }

    /// The state in use says for each Location which canaries take part, and the Problems say of
    /// the others why not.
    #[test]
    fn row_45_what_is_attached_can_be_seen() {
        let (_cast, splitter) = serve(|it| {
            it.main("main", "a.test", "/", "m")
                .canary("seen", "a.test", "/", "c", &[("canary-weight", "30")])
                .canary("stray", "a.test", "/elsewhere", "d", ALL)
        });
        let dump = splitter.dump("/config_dump");
        let weights = dump["weights"].to_string();
        assert!(weights.contains("a.test/"), "{weights}");
        assert!(
            weights.contains("\"name\":\"c\"") && weights.contains("30"),
            "{weights}"
        );
        assert!(!weights.contains("\"name\":\"d\""), "{weights}");
        assert_eq!(splitter.problems(), ["stray: canary-stray"]);
    }

    #[test]
    fn row_48_several_values_are_several_canaries_or_a_pattern() {
        let (_cast, splitter) = serve(|it| {
            let rule = |value| {
                [
                    ("canary-by-header", "X-Country"),
                    ("canary-by-header-value", value),
                ]
            };
            it.main("main", "a.test", "/", "m")
                .canary("canary-c", "a.test", "/", "c", &rule("de"))
                .canary("canary-d", "a.test", "/", "d", &rule("fr"))
        });
        always(&splitter, "a.test", "/", "X-Country: de\r\n", "C");
        always(&splitter, "a.test", "/", "X-Country: fr\r\n", "D");
        always(&splitter, "a.test", "/", "X-Country: it\r\n", "M");
        let (_cast, splitter) = canary_with(&[
            ("canary-by-header", "X-Country"),
            ("canary-by-header-pattern", "^(de|fr)$"),
        ]);
        for (country, by) in [("de", "C"), ("fr", "C"), ("it", "M"), ("dex", "M")] {
            let field = format!("X-Country: {country}\r\n");
            always(&splitter, "a.test", "/", &field, by);
        }
    }

    #[test]
    fn row_51_cookie_name_may_have_hyphens() {
        let (_cast, splitter) = canary_with(&[("canary-by-cookie", "Canary-By-Cookie")]);
        always(
            &splitter,
            "a.test",
            "/",
            "Cookie: Canary-By-Cookie=always\r\n",
            "C",
        );
        always(
            &splitter,
            "a.test",
            "/",
            "Cookie: x=y; Canary-By-Cookie=always; z=1\r\n",
            "C",
        );
        always(
            &splitter,
            "a.test",
            "/",
            "Cookie: Canary-By-Cookie=never\r\n",
            "M",
        );
        always(&splitter, "a.test", "/", "Cookie: Other=always\r\n", "M");
    }

    /// What a header rule means with and without a value.
    #[test]
    fn row_53_always_and_never_count_without_a_value_only() {
        let plain = [("canary-by-header", "X"), ("canary-weight", "100")];
        let (_cast, splitter) = canary_with(&plain);
        always(&splitter, "a.test", "/", "X: always\r\n", "C");
        always(&splitter, "a.test", "/", "X: never\r\n", "M");
        always(&splitter, "a.test", "/", "X: other\r\n", "C");
        let with_value = [
            ("canary-by-header", "X"),
            ("canary-by-header-value", "yes"),
            ("canary-weight", "0"),
        ];
        let (_cast, splitter) = canary_with(&with_value);
        always(&splitter, "a.test", "/", "X: yes\r\n", "C");
        for other in ["always", "never", "Yes", "yes, yes"] {
            always(&splitter, "a.test", "/", &format!("X: {other}\r\n"), "M");
        }
    }

    #[test]
    fn row_54_unknown_canary_annotation_is_told() {
        let (_cast, splitter) = canary_with(&[("canary-header", "X")]);
        always(&splitter, "a.test", "/", "X: always\r\n", "M");
        assert!(
            splitter
                .problems()
                .contains(&"canary: annotation-unknown".to_owned()),
            "{:?}",
            splitter.problems()
        );
    }
}

mod e_weights_and_updates {
    use super::*;

    fn weighted(rules: &[(&str, &str)]) -> (Cast, Splitter) {
        serve(|it| {
            it.main("main", "a.test", "/", "m")
                .canary("canary", "a.test", "/", "c", rules)
        })
    }

    #[test]
    fn row_55_a_tenth_of_a_percent_is_fine_enough() {
        let (_cast, splitter) =
            weighted(&[("canary-weight", "1"), ("canary-weight-total", "1000")]);
        // Exactly one of each thousand, whichever.
        for _ in 0..3 {
            assert_eq!(share(&splitter, "a.test", 1000, "C"), 1);
        }
    }

    #[test]
    fn row_56_weight_total_counts() {
        let (_cast, splitter) =
            weighted(&[("canary-weight", "100"), ("canary-weight-total", "200")]);
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
}

/// Not in any report, but in ingress-nginx's code.
mod seen_in_the_code {
    use super::*;

    /// There, such a value is dropped and the rule becomes always/never: anyone gets in.
    #[test]
    fn invalid_header_value_never_becomes_always() {
        for rule in [
            ("canary-by-header-value", "a,b"),
            ("canary-by-header-pattern", "a{2,5}!"),
            ("canary-by-header-pattern", "("),
        ] {
            let (_cast, splitter) = serve(|it| {
                it.main("main", "a.test", "/", "m").canary(
                    "canary",
                    "a.test",
                    "/",
                    "c",
                    &[("canary-by-header", "X"), rule],
                )
            });
            always(&splitter, "a.test", "/", "X: always\r\n", "M");
            assert!(
                splitter
                    .problems()
                    .iter()
                    .any(|it| it.starts_with("canary: ")),
                "{rule:?} is told"
            );
        }
    }

    #[test]
    fn canary_rule_without_paths_harms_nobody() {
        let (_cast, splitter) = serve(|it| {
            it.main("main", "a.test", "/", "m").raw(
                "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: canary, \
                 namespace: demo, annotations: {nginx.ingress.kubernetes.io/canary: \"true\", \
                 nginx.ingress.kubernetes.io/canary-weight: \"100\"}}\n\
                 spec: {rules: [{host: a.test}]}\n",
            )
        });
        always(&splitter, "a.test", "/", "", "M");
    }
}
