use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use splitter_tests::backend::Backend;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;
use splitter_tests::tls::{Authority, Pair, connect, shown};

use super::secure;

fn manifests(backend: &Backend, pair: &Pair) -> Manifests {
    Manifests::new()
        .tls("a", &["a.test"])
        .main("main", "a.test", "/", "main")
        .service("main", &[backend.addr()])
        .raw(&pair.secret("a"))
}

#[test]
fn a_new_secret_is_shown_without_cutting_anybody() {
    let backend = Backend::reflecting();
    let authority = Authority::new("root");
    let mut pair = authority.issue(&["a.test"]);
    let splitter = Splitter::start_with(&manifests(&backend, &pair), secure);
    let config = Arc::new(authority.client());
    let mut old = connect(splitter.https(), "a.test", &config);
    assert_eq!(old.get("a.test", "/before").text(), "/before");

    let (stop, served) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut kept = connect(splitter.https(), "a.test", &config);
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(kept.get("a.test", "/kept").text(), "/kept");
                    let mut fresh = connect(splitter.https(), "a.test", &config);
                    assert_eq!(fresh.get("a.test", "/fresh").text(), "/fresh");
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..5 {
            pair = authority.issue(&["a.test"]);
            splitter.apply(&manifests(&backend, &pair));
            eventually("the new certificate is shown", || {
                shown(splitter.https(), Some("a.test")) == pair.der()
            });
        }
        let before = served.load(Ordering::Relaxed);
        eventually("it goes on", || served.load(Ordering::Relaxed) > before + 2);
        stop.store(true, Ordering::Relaxed);
    });
    // The connection of the first certificate is the same one.
    assert_eq!(old.get("a.test", "/after").text(), "/after");
}

#[test]
fn a_secret_that_turns_bad_keeps_the_last_good_certificate() {
    let backend = Backend::reflecting();
    let authority = Authority::new("root");
    let good = authority.issue(&["a.test"]);
    let splitter = Splitter::start_with(&manifests(&backend, &good), secure);
    assert_eq!(shown(splitter.https(), Some("a.test")), good.der());
    let bad = Pair {
        chain: good.chain.clone(),
        key: authority.issue(&["a.test"]).key,
    };
    splitter.apply(&manifests(&backend, &bad));
    eventually("it is reported", || {
        splitter.problems() == ["main: secret-invalid"]
    });
    assert_eq!(shown(splitter.https(), Some("a.test")), good.der());
    let new = authority.issue(&["a.test"]);
    splitter.apply(&manifests(&backend, &new));
    eventually("the next good one is shown", || {
        shown(splitter.https(), Some("a.test")) == new.der()
    });
    assert_eq!(splitter.problems(), Vec::<String>::new());
}
