//! Rows of public reports about ingress-nginx's canary, at the level of the Snapshot. Each test is
//! named after the number of its upstream issue; the proxy's tests send the requests.

use super::support::{Ing, canary, clean, codes, main, problems_of, run, show};

fn full(name: &str) -> Ing {
    canary(name).weight("100")
}

#[test]
fn i4667_canary_of_one_host_leaves_the_other_alone() {
    let lines = clean(&[
        main("a").on("a", "/", "m"),
        main("b").on("b", "/", "m"),
        full("k").on("a", "/", "c"),
    ]);
    assert_eq!(lines, ["a/ (Prefix): m=0 c=100", "b/ (Prefix): m=100"]);
}

#[test]
fn i4692_header_canary_of_one_host_leaves_the_other_alone() {
    let by_header = canary("k")
        .note("canary-by-header", "X")
        .note("canary-by-header-value", "true");
    let lines = clean(&[
        main("a").on("a", "/", "m").on("b", "/", "m"),
        by_header.on("a", "/", "c"),
    ]);
    assert_eq!(
        lines,
        [
            "a/ (Prefix): m=100 c=0 | 1 header x = \"true\"",
            "b/ (Prefix): m=100"
        ]
    );
}

#[test]
fn i8689_canary_of_one_path_leaves_the_other_alone() {
    let lines = clean(&[
        main("m").on("a", "/", "m").on("a", "/x", "m"),
        full("k").on("a", "/x", "c"),
    ]);
    assert_eq!(lines, ["a/ (Prefix): m=100", "a/x (Prefix): m=0 c=100"]);
}

#[test]
fn i6753_deleting_one_canary_ends_it_for_that_host_only() {
    let mains = main("m").on("a", "/", "m").on("b", "/", "m");
    let (a, b) = (full("ka").on("a", "/", "c"), full("kb").on("b", "/", "c"));
    let both = clean(&[mains.clone(), a, b.clone()]);
    assert_eq!(both, ["a/ (Prefix): m=0 c=100", "b/ (Prefix): m=0 c=100"]);
    assert_eq!(
        clean(&[mains, b]),
        ["a/ (Prefix): m=100", "b/ (Prefix): m=0 c=100"]
    );
}

#[test]
fn i9458_i8004_i10729_i11563_canary_service_is_main_elsewhere() {
    // Older, younger, and in the same second with either name first.
    for (name, age) in [("o", 1), ("o", 3), ("o", 2), ("aa", 2)] {
        let lines = clean(&[
            main("m").at(2).on("a", "/", "m"),
            main(name).at(age).on("canary.a", "/", "c"),
            canary("k").at(2).weight("0").on("a", "/", "c"),
        ]);
        assert_eq!(
            lines,
            ["a/ (Prefix): m=100 c=0", "canary.a/ (Prefix): c=100"]
        );
    }
}

#[test]
fn i7896_a_third_ingress_on_the_canary_service() {
    let lines = clean(&[
        main("web").on("web", "/", "m"),
        main("web2").on("web2", "/", "c"),
        full("k").on("web", "/", "c"),
    ]);
    assert_eq!(lines, ["web/ (Prefix): m=0 c=100", "web2/ (Prefix): c=100"]);
}

#[test]
fn i3952_main_and_canary_of_different_hosts_share_a_service() {
    let lines = clean(&[
        main("a").on("a", "/", "c"),
        canary("k").weight("50").on("b", "/", "c"),
        main("b").on("b", "/", "m"),
    ]);
    assert_eq!(lines, ["a/ (Prefix): c=100", "b/ (Prefix): m=50 c=50"]);
}

#[test]
fn i9830_i8085_an_extra_path_is_reported_alone() {
    let translation = run(&[
        main("m").on("a", "/", "m"),
        full("k").on("a", "/", "c").on("a", "/only-here", "c"),
    ]);
    assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=0 c=100"]);
    assert_eq!(
        problems_of(&translation, "k"),
        ["spec.rules[1].http.paths[0] !canary-stray"]
    );
}

#[test]
fn i3707_canary_without_a_host() {
    assert_eq!(
        clean(&[main("m").on("", "/", "m"), full("k").on("", "/", "c")]),
        ["*/ (Prefix): m=0 c=100"]
    );
}

#[test]
fn i3606_i7497_nothing_but_a_canary() {
    let translation = run(&[full("k").on("", "/", "c")]);
    assert!(translation.snapshot.hosts.is_empty() && translation.snapshot.locations.is_empty());
    assert_eq!(codes(&translation.problems), ["!canary-stray"]);
}

#[test]
fn i7370_an_exact_canary_below_a_prefix_never_leaks() {
    let exact = canary("k")
        .note("canary-by-header", "h")
        .note("canary-by-header-pattern", "AAAA|BBBB");
    let translation = run(&[
        main("m").on("h", "/", "m").on("other", "/", "m"),
        exact.path("h", "/products", "Exact", "c"),
    ]);
    assert_eq!(
        show(&translation.snapshot),
        ["h/ (Prefix): m=100", "other/ (Prefix): m=100"]
    );
    assert_eq!(
        problems_of(&translation, "k"),
        ["spec.rules[0].http.paths[0] !canary-stray"]
    );
}

#[test]
fn i3475_rewrite_on_the_canary_is_reported_as_the_mains_to_say() {
    let translation = run(&[
        main("m").on("a", "/input", "m"),
        full("k")
            .note("rewrite-target", "/ingest")
            .on("a", "/input", "c"),
    ]);
    assert_eq!(show(&translation.snapshot), ["a/input (Prefix): m=0 c=100"]);
    assert!(
        translation.problems[0]
            .effect
            .contains("the main Ingress's annotations count")
    );
}

#[test]
fn i4337_the_class_filters_first() {
    let other = full("k").class(Some("other")).on("a", "/", "c");
    assert_eq!(
        clean(&[main("m").on("a", "/", "m"), other]),
        ["a/ (Prefix): m=100"]
    );
}

#[test]
fn i7657_a_canary_from_another_namespace_attaches() {
    let translation = run(&[
        main("m").on("a", "/", "m"),
        full("k").ns("other").on("a", "/", "c"),
    ]);
    assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=0 c=100"]);
    let split = &translation.snapshot.locations[0].split;
    let backend = translation
        .snapshot
        .backend(split.variants[1].backend)
        .unwrap();
    assert_eq!(&*backend.key.namespace, "other");
}

#[test]
fn i5635_several_headers_come_from_several_canaries() {
    let by = |name: &str, header: &str| {
        canary(name)
            .note("canary-by-header", header)
            .on("a", "/", "c")
    };
    assert_eq!(
        clean(&[
            main("m").on("a", "/", "m"),
            by("k1", "one"),
            by("k2", "two")
        ]),
        ["a/ (Prefix): m=100 c=0 c=0 | 1 header one always/never | 2 header two always/never"]
    );
}

#[test]
fn i4467_two_values_on_one_path() {
    let by = |name: &str, value: &str, service: &str| {
        let ingress = canary(name).note("canary-by-header", "region");
        ingress
            .note("canary-by-header-value", value)
            .on("a", "/", service)
    };
    assert_eq!(
        clean(&[
            main("m").on("a", "/", "m"),
            by("k1", "us", "c"),
            by("k2", "eu", "c2")
        ]),
        ["a/ (Prefix): m=100 c=0 c2=0 | 1 header region = \"us\" | 2 header region = \"eu\""]
    );
}

#[test]
fn i11085_a_misspelt_annotation_is_named() {
    let translation = run(&[
        main("m").on("a", "/", "m"),
        canary("k").note("canary-header", "X").on("a", "/", "c"),
    ]);
    assert_eq!(
        problems_of(&translation, "k"),
        [
            "metadata.annotations canary-without-rule",
            "metadata.annotations.canary-header annotation-unknown"
        ]
    );
}

#[test]
fn i6337_i9745_fine_and_large_totals() {
    let weighted = |weight: &str, total: &str| {
        let ingress = canary("k")
            .weight(weight)
            .note("canary-weight-total", total);
        clean(&[main("m").on("a", "/", "m"), ingress.on("a", "/", "c")]).remove(0)
    };
    assert_eq!(weighted("1", "1000"), "a/ (Prefix): m=999 c=1");
    assert_eq!(weighted("100", "200"), "a/ (Prefix): m=100 c=100");
}

#[test]
fn i9701_two_full_weights() {
    let translation = run(&[
        main("m").on("a", "/", "m"),
        full("k1").on("a", "/", "c"),
        full("k2").on("a", "/", "c2"),
    ]);
    assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=0 c=100 c2=0"]);
    assert_eq!(codes(&translation.problems), ["weight-cut"]);
}

#[test]
fn i3580_a_weight_change_needs_nothing_of_the_main() {
    let at = |weight: &str| {
        let ingress = canary("k")
            .weight(weight)
            .note("canary-by-cookie", "k")
            .note("canary-by-header", "h");
        clean(&[main("m").on("a", "/", "m"), ingress.on("a", "/", "c")]).remove(0)
    };
    assert_eq!(
        at("50"),
        "a/ (Prefix): m=50 c=50 | 1 header h always/never | 1 cookie k"
    );
    assert_eq!(
        at("100"),
        "a/ (Prefix): m=0 c=100 | 1 header h always/never | 1 cookie k"
    );
}

#[test]
fn i6825_canary_false_is_an_ordinary_younger_ingress() {
    let off = main("k").at(2).note("canary", "false").on("a", "/", "c");
    let translation = run(&[main("m").at(1).on("a", "/", "m"), off]);
    assert_eq!(show(&translation.snapshot), ["a/ (Prefix): m=100"]);
    assert_eq!(
        problems_of(&translation, "k"),
        ["spec.rules[0].http.paths[0] !path-duplicate"]
    );
}

#[test]
fn argo_i3541_two_rollouts_behind_one_ingress() {
    // Each canary Ingress holds the other's stable path unchanged.
    let lines = clean(&[
        main("m").on("a", "/one", "m").on("a", "/two", "m2"),
        canary("r1-m-canary")
            .weight("20")
            .on("a", "/one", "c")
            .on("a", "/two", "m2"),
        canary("r2-m-canary")
            .weight("30")
            .on("a", "/one", "m")
            .on("a", "/two", "c2"),
    ]);
    assert_eq!(
        lines,
        ["a/one (Prefix): m=80 c=20", "a/two (Prefix): m2=70 c2=30"]
    );
}
