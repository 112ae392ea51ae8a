use splitter_tests::backend::Backend;

use super::before;

#[test]
fn the_pods_see_the_host_that_is_written() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("upstream-vhost", "inner.test:8080")]);
    assert_eq!(splitter.get("a.test", "/").status, 200);
    let seen = backend.last();
    assert_eq!(seen.field("host"), Some("inner.test:8080"));
    assert_eq!(seen.field("x-forwarded-host"), Some("a.test"));
}

#[test]
fn what_is_no_host_is_reported_and_not_sent() {
    let backend = Backend::named("main");
    let splitter = before(&backend, &[("upstream-vhost", "in ner")]);
    assert_eq!(splitter.get("a.test", "/").status, 200);
    assert_eq!(backend.last().field("host"), Some("a.test"));
    assert_eq!(splitter.problems().len(), 1, "{:?}", splitter.problems());
}
