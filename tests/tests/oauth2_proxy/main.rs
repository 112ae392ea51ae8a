//! A real oauth2-proxy, unmodified and built from its module, behind the annotations that people use
//! with ingress-nginx, and before a small OpenID provider. Outside of everyday tests, as it takes long
//! to build: `cargo xtask test --delivery`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]
#![allow(clippy::print_stdout, reason = "it shows what another process said")]

mod browser;
mod process;
mod provider;

use std::net::SocketAddr;
use std::sync::Arc;

use browser::Browser;
use process::Proxy;
use provider::{Provider, parameters};
use rustls::ClientConfig;
use splitter_tests::backend::{Backend, refusing};
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, Pair};

const HOST: &str = "app.test";
const URL: (&str, &str) = (
    "auth-url",
    "http://oauth2-proxy.demo.svc.cluster.local/oauth2/auth",
);
const SIGN_IN: (&str, &str) = (
    "auth-signin",
    "https://$host/oauth2/start?rd=$escaped_request_uri",
);
const TOLD: (&str, &str) = (
    "auth-response-headers",
    "X-Auth-Request-User, X-Auth-Request-Email, X-Auth-Request-Groups, Authorization",
);

/// A pod behind splitter, which asks oauth2-proxy, which asks the provider.
struct Site {
    app: Backend,
    provider: Provider,
    proxy: Proxy,
    pair: Pair,
    tls: Arc<ClientConfig>,
    splitter: Splitter,
}

impl Site {
    fn start() -> Self {
        let (app, provider) = (Backend::named("app"), Provider::start());
        let proxy = Proxy::start(&provider, "168h");
        let authority = Authority::new("tests");
        let pair = authority.issue(&[HOST]);
        let manifests = manifests(&app, proxy.addr(), &pair);
        let splitter = Splitter::start_with(&manifests, |settings| {
            settings.https = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        });
        assert_eq!(splitter.problems(), [""; 0]);
        Site {
            app,
            provider,
            proxy,
            pair,
            tls: Arc::new(authority.client()),
            splitter,
        }
    }

    fn browser(&self) -> Browser {
        Browser::new(self.splitter.https(), &self.provider, &self.tls)
    }

    /// Has another oauth2-proxy, or nobody, be asked.
    fn ask_instead(&self, proxy: SocketAddr) {
        self.splitter
            .apply(&manifests(&self.app, proxy, &self.pair));
        eventually("another one is asked", || {
            let dump = self.splitter.dump("/config_dump").to_string();
            dump.contains(&proxy.to_string())
        });
    }
}

/// As the documentation of oauth2-proxy has it: `/` and `/api` ask it, `/oauth2` leads to it.
fn manifests(app: &Backend, proxy: SocketAddr, pair: &Pair) -> Manifests {
    Manifests::new()
        .raw(&pair.secret("cert"))
        .tls("cert", &[HOST])
        .ingress("app", HOST, "/", "Prefix", "app", &[URL, SIGN_IN, TOLD])
        .ingress("api", HOST, "/api", "Prefix", "app", &[URL, TOLD])
        .main("oauth2", HOST, "/oauth2", "oauth2-proxy")
        .service("app", &[app.addr()])
        .service("oauth2-proxy", &[proxy])
}

#[test]
fn a_whole_login_from_the_first_refusal_to_the_sign_out() {
    let site = Site::start();
    let mut browser = site.browser();

    // Nobody yet: the browser is sent to sign in, a program is refused.
    let refused = browser.get("/private/a%20b?x=1&y=2", "");
    let start = "https://app.test/oauth2/start?rd=%2Fprivate%2Fa%2520b%3Fx%3D1%26y%3D2";
    assert_eq!(refused.field("location"), Some(start), "{refused:?}");
    assert_eq!(browser.get("/api/things", "").status, 401);

    // oauth2-proxy sends it to the provider, and knows by our fields where the site is.
    let to_provider = browser.follow(&refused);
    let to = to_provider.field("location").expect("a place").to_owned();
    let asked = parameters(to.split_once('?').expect("a query").1);
    assert_eq!(asked["redirect_uri"], "https://app.test/oauth2/callback");
    assert!(!browser.cookies.contains_key("_oauth2_proxy"));

    // The provider sends it back with a code, which becomes a session, and the session the page.
    let back = browser.follow(&to_provider);
    let signed_in = browser.follow(&back);
    assert!(
        browser.cookies.contains_key("_oauth2_proxy"),
        "{signed_in:?}"
    );
    assert_eq!(signed_in.field("location"), Some("/private/a%20b?x=1&y=2"));
    assert!(site.app.seen().is_empty(), "nobody came in yet");
    let page = browser.follow(&signed_in);
    assert_eq!((page.status, page.text().as_str()), (200, "app"));

    // The pod is told who it is, whatever the client says of itself.
    let spoofed = "X-Auth-Request-User: root\r\nX-Auth-Request-Groups: admins\r\n\
        Authorization: Bearer of-somebody\r\nConnection: X-Auth-Request-Email\r\n";
    for (path, fields) in [("/private", ""), ("/api/things?q=1", spoofed)] {
        assert_eq!(browser.get(path, fields).status, 200, "{path}");
        let seen = site.app.last();
        assert_eq!(seen.target(), path);
        assert_eq!(seen.all("x-auth-request-user"), ["ann-1"]);
        assert_eq!(seen.all("x-auth-request-email"), ["ann@example.com"]);
        assert_eq!(seen.all("x-auth-request-groups"), ["buyers,staff"]);
        let token = format!("Bearer {}", site.provider.last_token());
        assert_eq!(seen.all("authorization"), [token]);
    }
    assert_eq!(site.provider.asked("/token"), 1, "a session is enough");

    // The session ends with the sign-out, and so does what the pod gets.
    let served = site.app.seen().len();
    let out = browser.get("/oauth2/sign_out?rd=%2F", "");
    assert_eq!((out.status, out.field("location")), (302, Some("/")));
    assert!(!browser.cookies.contains_key("_oauth2_proxy"), "{out:?}");
    let refused = browser.get("/private", "");
    let start = "https://app.test/oauth2/start?rd=%2Fprivate";
    assert_eq!(refused.field("location"), Some(start));
    assert_eq!(browser.get("/api/things", spoofed).status, 401);
    assert_eq!(site.app.seen().len(), served);
}

#[test]
fn a_session_that_has_expired_signs_in_anew() {
    let site = Site::start();
    let mut browser = site.browser();
    assert_eq!(browser.sign_in("/private").status, 200);
    // The same session for one that lets it last a second.
    let strict = Proxy::start(&site.provider, "1s");
    site.ask_instead(strict.addr());
    let session = browser.cookies.clone();
    eventually("the session has expired", || {
        browser.cookies.clone_from(&session);
        browser.get("/private", "").status == 302
    });
    browser.cookies.clone_from(&session);
    assert_eq!(browser.get("/api/things", "").status, 401);
    site.ask_instead(site.proxy.addr());
    eventually("the former one is asked again", || {
        browser.cookies.clone_from(&session);
        browser.get("/private", "").status == 200
    });
}

#[test]
fn what_is_no_session_is_nobody() {
    let site = Site::start();
    let mut browser = site.browser();
    assert_eq!(browser.sign_in("/private").status, 200);
    let served = site.app.seen().len();
    let session = browser.cookies["_oauth2_proxy"].clone();
    let swapped: String = session.chars().rev().collect();
    for other in ["x", &session[1..], &session[..session.len() - 8], &swapped] {
        browser.cookies = [("_oauth2_proxy".to_owned(), other.to_owned())].into();
        assert_eq!(browser.get("/private", "").status, 302, "{other}");
    }
    // A code that another browser was given, without the cookie that it began with.
    let mut other = site.browser();
    let mut answer = other.get("/private", "");
    for _ in 0..2 {
        answer = other.follow(&answer);
    }
    let back = answer.field("location").expect("a place");
    let path = back.strip_prefix("https://app.test").expect("our site");
    let mut victim = site.browser();
    assert_eq!(victim.get(path, "").status, 403);
    assert!(!victim.cookies.contains_key("_oauth2_proxy"));
    assert_eq!(site.app.seen().len(), served);
}

#[test]
fn nobody_comes_in_while_it_is_away() {
    let mut site = Site::start();
    let mut browser = site.browser();
    assert_eq!(browser.sign_in("/private").status, 200);
    let served = site.app.seen().len();
    site.proxy.kill();
    for path in ["/private", "/api/things"] {
        assert_eq!(browser.get(path, "").status, 500, "{path}");
    }
    site.ask_instead(refusing());
    assert_eq!(browser.get("/private", "").status, 500);
    assert_eq!(site.app.seen().len(), served);
    // One that is started in its place knows the session.
    let again = Proxy::start(&site.provider, "168h");
    site.ask_instead(again.addr());
    eventually("it comes in again", || {
        browser.get("/private", "").status == 200
    });
}
