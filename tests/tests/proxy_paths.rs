//! Paths that programs read differently: a request is never matched to a Location other than the
//! one that the backend will see, and what goes on is byte for byte what came.

use splitter_tests::backend::Backend;
use splitter_tests::client::Answer;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

/// `/` belongs to one backend and `/admin` to another.
struct Shop {
    shop: Backend,
    admin: Backend,
    splitter: Splitter,
}

impl Shop {
    fn open() -> Self {
        let (shop, admin) = (Backend::named("shop"), Backend::named("admin"));
        let splitter = Splitter::start(
            &Manifests::new()
                .main("shop", "a.test", "/", "shop")
                .main("admin", "a.test", "/admin", "admin")
                .service("shop", &[shop.addr()])
                .service("admin", &[admin.addr()]),
        );
        Shop {
            shop,
            admin,
            splitter,
        }
    }

    fn get(&self, target: &str) -> Answer {
        self.splitter.get("a.test", target)
    }

    /// The target reaches this Location as it is.
    #[track_caller]
    fn passes(&self, target: &str, to: &str) {
        let answer = self.get(target);
        assert_eq!(
            (answer.status, answer.text()),
            (200, to.to_owned()),
            "{target}"
        );
        let backend = match to {
            "shop" => &self.shop,
            _ => &self.admin,
        };
        assert_eq!(backend.last().target(), target);
    }

    /// The target reaches nobody.
    #[track_caller]
    fn refuses(&self, target: &str) {
        let before = self.splitter.faults("ambiguous-path");
        let asked = self.shop.seen().len() + self.admin.seen().len();
        let answer = self.get(target);
        assert_eq!(answer.status, 400, "{target}: {}", answer.text());
        answer.assert_own(400);
        assert_eq!(self.shop.seen().len() + self.admin.seen().len(), asked);
        eventually("the fault is counted", || {
            self.splitter.faults("ambiguous-path") == before + 1.0
        });
    }
}

macro_rules! refused {
    ($($name:ident: $($target:expr),+;)*) => {$(
        #[test]
        fn $name() {
            let shop = Shop::open();
            for target in [$($target),+] {
                shop.refuses(target);
            }
        }
    )*};
}

refused! {
    dots_that_lead_into_another_location: "/x/../admin", "/../admin", "/x/y/../../admin/z";
    dots_that_lead_out_of_a_location: "/admin/../x", "/admin/x/../../y", "/admin/..";
    encoded_dots: "/x/%2e%2e/admin", "/x/%2E%2E/admin", "/x/.%2e/admin", "/x/%2e./admin",
        "/admin/%2e%2e/x";
    single_dots: "/./admin", "/x/.././admin", "/%2e/admin";
    dots_above_the_root: "/..", "/../..", "/../x", "/x/../..";
    encoded_slashes: "/admin%2fx", "/admin%2Fx", "/x%2f..%2fadmin", "/x/..%2fadmin", "/%2fadmin";
    doubled_slashes: "//admin", "///admin", "//admin/x", "/x/..//admin";
    backslashes: "/admin\\x", "/x\\..\\admin", "/x/..\\admin", "/\\admin";
    encoded_backslashes: "/x/..%5cadmin", "/admin%5cx", "/%5Cadmin";
    parameters_of_elements: "/admin;x", "/x/..;/admin", "/admin;x=y/z", "/x/..;a=b/admin";
    encodings_that_are_none: "/x%", "/x%2", "/x%zz/admin", "/%u0061dmin";
    hidden_nuls: "/admin%00", "/x%00/../admin";
}

#[test]
fn what_leads_to_the_same_location_passes_unchanged() {
    let shop = Shop::open();
    for target in [
        "/",
        "/x",
        "/x/../y",
        "/x/./y",
        "/x/.",
        "/x//y",
        "/x/%2e%2e/y",
        "/a%2fb",
        "/a%2Fb//c/./d;e=f",
        "/a\\b",
        "/adminx",
        "/x/admin",
        "/Admin",
        "/x%20y%41",
    ] {
        shop.passes(target, "shop");
    }
    for target in [
        "/admin",
        "/admin/",
        "/admin/x",
        "/admin/x/../y",
        "/admin/./x",
        "/admin//x",
        "/admin/x%2fy",
        "/admin/x;y",
        "/admin/%2e/x",
    ] {
        shop.passes(target, "admin");
    }
}

/// Servers decode letters before they choose: `/%61dmin` is `/admin` to them.
#[test]
fn encoded_letters_belong_where_their_decoded_form_does() {
    let shop = Shop::open();
    shop.passes("/%61dmin", "admin");
    shop.passes("/a%64min/x", "admin");
    shop.passes("/%78", "shop");
}

/// Twice encoded dots are a name to whoever decodes once.
#[test]
fn only_one_layer_of_encoding_counts() {
    let shop = Shop::open();
    shop.passes("/x/%252e%252e/admin", "shop");
    shop.passes("/admin%252fx", "shop");
}

#[test]
fn a_query_takes_no_part() {
    let shop = Shop::open();
    shop.passes("/?/admin", "shop");
    shop.passes("/x?../admin", "shop");
    shop.passes("/x?y=/../admin&z=%2e%2e%2fadmin", "shop");
    shop.passes("/admin?x=/../..", "admin");
    shop.passes("/admin?", "admin");
    shop.passes("/?", "shop");
    shop.passes("/x??a=?&b==//&c=%zz", "shop");
}

#[test]
fn absolute_form_is_judged_alike() {
    let shop = Shop::open();
    let mut client = shop.splitter.client();
    client.send("GET http://a.test/x/../admin HTTP/1.1\r\nHost: a.test\r\n\r\n");
    client.answer("GET").assert_own(400);
    assert_eq!(shop.shop.seen(), []);
    let mut client = shop.splitter.client();
    client.send("GET http://a.test/x/../y?z HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(client.answer("GET").text(), "shop");
    assert_eq!(shop.shop.last().target(), "/x/../y?z");
}

#[test]
fn a_refused_path_leaves_the_connection() {
    let shop = Shop::open();
    let mut client = shop.splitter.client();
    client.get("a.test", "/x/../admin").assert_own(400);
    assert_eq!(client.get("a.test", "/admin").text(), "admin");
}

/// With one Location there is nothing to confuse, whatever the path looks like.
#[test]
fn one_location_for_all_takes_every_path_unchanged() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    for target in [
        "/a/../b",
        "/%2e%2e%2fb",
        "//",
        "/a/b/c%2F%2f/..;x/\\..\\b?c=%20&d=..//",
        "/%7E~%7e",
        "/a+b%2Bc",
        "/!$&'()*+,;=:@-._~",
        "/x?",
        "/x?a=b?c",
    ] {
        let answer = splitter.get("a.test", target);
        if target == "/%2e%2e%2fb" {
            // Above the root: no backend can be trusted with it.
            answer.assert_own(400);
            continue;
        }
        assert_eq!(answer.status, 200, "{target}");
        assert_eq!(backend.last().target(), target);
    }
}

#[test]
fn exact_paths_are_not_reached_by_another_spelling_alone() {
    let (exact, rest) = (Backend::named("exact"), Backend::named("rest"));
    let splitter = Splitter::start(
        &Manifests::new()
            .ingress("exact", "a.test", "/pay", "Exact", "exact", &[])
            .main("rest", "a.test", "/", "rest")
            .service("exact", &[exact.addr()])
            .service("rest", &[rest.addr()]),
    );
    assert_eq!(splitter.get("a.test", "/pay").text(), "exact");
    assert_eq!(splitter.get("a.test", "/pay/").text(), "rest");
    assert_eq!(splitter.get("a.test", "/PAY").text(), "rest");
    assert_eq!(splitter.get("a.test", "/pay/x").text(), "rest");
    for target in ["/x/../pay", "//pay", "/./pay", "/pay;x"] {
        let answer = splitter.get("a.test", target);
        assert_eq!(answer.status, 400, "{target}: {}", answer.text());
    }
    // However it is read, this is not `/pay`.
    assert_eq!(splitter.get("a.test", "/pay/../x").text(), "rest");
    assert_eq!(exact.seen().len(), 1);
}

/// Variants of a Location are reached by its every spelling or by none.
#[test]
fn a_canary_is_not_avoided_by_another_spelling() {
    let (main, canary) = (Backend::named("main"), Backend::named("canary"));
    let splitter = Splitter::start(
        &Manifests::new()
            .main("root", "a.test", "/", "main")
            .main("api", "a.test", "/api", "main")
            .canary(
                "canary",
                "a.test",
                "/api",
                "canary",
                &[("canary-weight", "100")],
            )
            .service("main", &[main.addr()])
            .service("canary", &[canary.addr()]),
    );
    for target in ["/api", "/api/", "/%61pi", "/api/x/../y"] {
        assert_eq!(splitter.get("a.test", target).text(), "canary", "{target}");
    }
    for target in ["/x/../api", "//api", "/x/..%2fapi"] {
        splitter.get("a.test", target).assert_own(400);
    }
    assert_eq!(main.seen(), []);
}
