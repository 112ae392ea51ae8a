//! Which side a client with a session is answered by: one test for each row of what ingress-nginx
//! does, and what is decided differently here.

use splitter_tests::backend::Backend;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::jar::Jar;
use splitter_tests::manifests::Manifests;

const AFFINITY: &[(&str, &str)] = &[("affinity", "cookie"), ("session-cookie-name", "aff")];

/// A main Ingress with affinity and a canary, and who answers for them.
struct Cast {
    main: Backend,
    canary: Backend,
}

impl Cast {
    fn new() -> Self {
        Cast {
            main: Backend::named("main"),
            canary: Backend::named("canary"),
        }
    }

    fn manifests(&self, rules: &[(&str, &str)]) -> Manifests {
        Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", AFFINITY)
            .canary("web-canary", "a.test", "/", "app-canary", rules)
            .service("app", &[self.main.addr()])
            .service("app-canary", &[self.canary.addr()])
    }

    fn serve(rules: &[(&str, &str)]) -> (Self, Splitter) {
        let cast = Cast::new();
        let splitter = Splitter::start(&cast.manifests(rules));
        assert_eq!(splitter.problems(), [""; 0]);
        (cast, splitter)
    }
}

fn who(splitter: &Splitter, jar: &mut Jar, fields: &str) -> String {
    jar.ask(splitter, "a.test", "/", fields).text()
}

/// All of twenty requests of this client are answered by `by`, and its cookie does not change.
#[track_caller]
fn stays(splitter: &Splitter, jar: &mut Jar, fields: &str, by: &str) {
    let before = jar.get("aff").map(str::to_owned);
    for _ in 0..20 {
        assert_eq!(who(splitter, jar, fields), by, "{fields:?}");
    }
    assert_eq!(jar.get("aff").map(str::to_owned), before);
}

/// A client that was answered by this side once, and so has its cookie.
fn client_of(splitter: &Splitter, side: &str) -> Jar {
    let mut jar = Jar::new();
    let force = match side {
        "main" => "X-Force: never\r\n",
        _ => "X-Force: always\r\n",
    };
    assert_eq!(who(splitter, &mut jar, force), side);
    assert!(jar.get("aff").is_some());
    jar
}

const BY_HEADER: (&str, &str) = ("canary-by-header", "X-Force");
const BY_COOKIE: (&str, &str) = ("canary-by-cookie", "force");
const LEGACY: (&str, &str) = ("affinity-canary-behavior", "legacy");

#[test]
fn without_a_cookie_the_rules_decide_and_whoever_answers_gives_one() {
    for behavior in [None, Some(("affinity-canary-behavior", "sticky"))] {
        let rules: Vec<_> = [BY_HEADER].into_iter().chain(behavior).collect();
        let (_cast, splitter) = Cast::serve(&rules);
        let main = client_of(&splitter, "main");
        let canary = client_of(&splitter, "canary");
        assert_ne!(main.get("aff"), canary.get("aff"));
    }
}

#[test]
fn a_cookie_of_another_location_is_none() {
    let (_cast, splitter) = Cast::serve(&[BY_HEADER, ("canary-weight", "100")]);
    for junk in ["x", "|", &"0".repeat(32), &"f".repeat(32)] {
        let mut jar = Jar::new().with("aff", junk);
        assert_eq!(who(&splitter, &mut jar, ""), "canary", "{junk}");
        assert_ne!(jar.get("aff"), Some(junk));
    }
}

#[test]
fn a_cookie_of_main_keeps_the_client_there_whatever_the_rules_say() {
    let rules = [BY_HEADER, BY_COOKIE, ("canary-weight", "100")];
    let (_cast, splitter) = Cast::serve(&rules);
    let mut jar = client_of(&splitter, "main");
    stays(&splitter, &mut jar, "", "main");
    stays(&splitter, &mut jar, "X-Force: always\r\n", "main");
    let mut jar = jar.with("force", "always");
    stays(&splitter, &mut jar, "", "main");
}

#[test]
fn a_cookie_of_the_canary_keeps_the_client_there_whatever_the_rules_say() {
    let rules = [BY_HEADER, BY_COOKIE, ("canary-weight", "0")];
    let (_cast, splitter) = Cast::serve(&rules);
    let mut jar = client_of(&splitter, "canary");
    stays(&splitter, &mut jar, "", "canary");
    stays(&splitter, &mut jar, "X-Force: never\r\n", "canary");
    let mut jar = jar.with("force", "never");
    stays(&splitter, &mut jar, "", "canary");
}

#[test]
fn a_legacy_canary_gives_no_cookie_and_main_does() {
    let (_cast, splitter) = Cast::serve(&[BY_HEADER, LEGACY]);
    let mut jar = Jar::new();
    assert_eq!(who(&splitter, &mut jar, "X-Force: always\r\n"), "canary");
    assert_eq!(jar.get("aff"), None);
    assert_eq!(who(&splitter, &mut jar, ""), "main");
    assert!(jar.get("aff").is_some());
}

/// Differs from ingress-nginx, where a cookie of main wins here too.
#[test]
fn with_a_legacy_canary_the_rules_win_over_a_cookie_of_main() {
    let rules = [BY_HEADER, BY_COOKIE, LEGACY, ("canary-weight", "0")];
    let (_cast, splitter) = Cast::serve(&rules);
    let mut jar = client_of(&splitter, "main");
    stays(&splitter, &mut jar, "X-Force: always\r\n", "canary");
    stays(&splitter, &mut jar, "", "main");
    let mut jar = jar.with("force", "always");
    stays(&splitter, &mut jar, "", "canary");
}

/// Differs from ingress-nginx, where returning clients would all end on main.
#[test]
fn with_a_legacy_canary_every_request_is_drawn_anew() {
    let (_cast, splitter) = Cast::serve(&[BY_HEADER, LEGACY, ("canary-weight", "50")]);
    let mut jar = client_of(&splitter, "main");
    let canary = (0..100)
        .filter(|_| who(&splitter, &mut jar, "") == "canary")
        .count();
    assert_eq!(canary, 50);
}

#[test]
fn an_old_cookie_of_a_canary_that_became_legacy_is_none() {
    let (cast, splitter) = Cast::serve(&[BY_HEADER]);
    let jar = client_of(&splitter, "canary");
    splitter.apply(&cast.manifests(&[BY_HEADER, LEGACY]));
    eventually("the canary is legacy", || {
        let mut jar = jar.clone();
        who(&splitter, &mut jar, "X-Force: never\r\n") == "main"
    });
}

#[test]
fn rolling_back_by_weight_0_keeps_clients_of_the_canary_there() {
    let (cast, splitter) = Cast::serve(&[BY_HEADER, ("canary-weight", "100")]);
    let mut old = Jar::new();
    assert_eq!(who(&splitter, &mut old, ""), "canary");
    splitter.apply(&cast.manifests(&[BY_HEADER, ("canary-weight", "0")]));
    eventually("new clients get main", || {
        who(&splitter, &mut Jar::new(), "") == "main"
    });
    stays(&splitter, &mut old, "", "canary");
}

#[test]
fn clients_of_the_canary_move_to_main_with_a_new_cookie_when_it_goes() {
    let without_endpoints = |cast: &Cast| {
        Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", AFFINITY)
            .canary("web-canary", "a.test", "/", "app-canary", &[BY_HEADER])
            .service("app", &[cast.main.addr()])
            .service("app-canary", &[])
    };
    let without_ingress = |cast: &Cast| {
        Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", AFFINITY)
            .service("app", &[cast.main.addr()])
    };
    for next in [without_endpoints as fn(&Cast) -> Manifests, without_ingress] {
        let (cast, splitter) = Cast::serve(&[BY_HEADER]);
        let mut jar = client_of(&splitter, "canary");
        let before = jar.get("aff").map(str::to_owned);
        splitter.apply(&next(&cast));
        eventually("main answers", || who(&splitter, &mut jar, "") == "main");
        assert_ne!(jar.get("aff").map(str::to_owned), before);
        stays(&splitter, &mut jar, "", "main");
    }
}

#[test]
fn raising_the_weight_moves_new_clients_only() {
    let (cast, splitter) = Cast::serve(&[BY_HEADER, ("canary-weight", "0")]);
    let mut old = Jar::new();
    assert_eq!(who(&splitter, &mut old, ""), "main");
    splitter.apply(&cast.manifests(&[BY_HEADER, ("canary-weight", "100")]));
    eventually("new clients get the canary", || {
        who(&splitter, &mut Jar::new(), "") == "canary"
    });
    stays(&splitter, &mut old, "", "main");
}

/// A canary that becomes the main Service keeps its clients.
#[test]
fn clients_of_the_canary_stay_when_it_becomes_stable() {
    let (cast, splitter) = Cast::serve(&[BY_HEADER]);
    let mut jar = client_of(&splitter, "canary");
    let next = Manifests::new()
        .ingress("web", "a.test", "/", "Prefix", "app-canary", AFFINITY)
        .service("app-canary", &[cast.canary.addr()]);
    splitter.apply(&next);
    eventually("the canary is main", || {
        who(&splitter, &mut Jar::new(), "") == "canary"
    });
    stays(&splitter, &mut jar, "", "canary");
}

/// In ingress-nginx a canary Service has one affinity configuration, the last one that was read.
#[test]
fn one_canary_service_under_two_mains_follows_each_of_them() {
    let cast = Cast::new();
    let all = &[("canary-weight", "100")];
    let splitter = Splitter::start(
        &cast
            .manifests(all)
            .main("plain", "b.test", "/", "app")
            .canary("plain-canary", "b.test", "/", "app-canary", all),
    );
    let mut jar = Jar::new();
    let answer = jar.ask(&splitter, "b.test", "/", "");
    assert_eq!((answer.text().as_str(), jar.get("aff")), ("canary", None));
    let answer = jar.ask(&splitter, "a.test", "/", "");
    assert_eq!(answer.text(), "canary");
    assert!(jar.get("aff").is_some());
}

/// In ingress-nginx the second would be kept with its Endpoint as well.
#[test]
fn of_two_mains_on_one_service_only_the_one_that_asks_has_affinity() {
    let cast = Cast::new();
    let manifests = cast.manifests(&[]).main("plain", "b.test", "/", "app");
    let splitter = Splitter::start(&manifests);
    let mut jar = Jar::new();
    jar.ask(&splitter, "a.test", "/", "");
    assert!(jar.get("aff").is_some());
    let answer = jar.ask(&splitter, "b.test", "/", "");
    assert_eq!(answer.all("set-cookie"), [""; 0]);
}

#[test]
fn the_decision_is_counted_as_the_sessions() {
    let (_cast, splitter) = Cast::serve(&[BY_HEADER]);
    let mut jar = client_of(&splitter, "canary");
    stays(&splitter, &mut jar, "", "canary");
    eventually("20 requests are counted", || {
        let labels = [("reason", "affinity"), ("variant", "app-canary")];
        splitter.metrics().sum("splitter_requests_total", &labels) == 20.0
    });
}

/// What is on the canary alone is reported, as it would not be sticky (it is not there either).
#[test]
fn affinity_on_the_canary_alone_is_reported() {
    let cast = Cast::new();
    let splitter = Splitter::start(
        &Manifests::new()
            .main("web", "a.test", "/", "app")
            .canary("web-canary", "a.test", "/", "app-canary", AFFINITY)
            .service("app", &[cast.main.addr()])
            .service("app-canary", &[cast.canary.addr()]),
    );
    let problems = splitter.problems();
    let unsupported = problems
        .iter()
        .filter(|it| *it == "web-canary: annotation-unsupported");
    assert_eq!(unsupported.count(), 2, "{problems:?}");
}
