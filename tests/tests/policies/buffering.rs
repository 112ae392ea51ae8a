use splitter_tests::backend::Backend;

use super::before;

#[test]
fn buffers_that_cannot_be_set_are_reported_once() {
    let backend = Backend::named("main");
    let splitter = before(
        &backend,
        &[
            ("proxy-buffering", "on"),
            ("proxy-request-buffering", "on"),
            ("proxy-buffer-size", "8k"),
            ("proxy-buffers-number", "4"),
            ("proxy-busy-buffers-size", "16k"),
            ("proxy-max-temp-file-size", "1024m"),
            ("client-body-buffer-size", "8k"),
        ],
    );
    assert_eq!(splitter.get("a.test", "/").status, 200);
    assert_eq!(splitter.problems(), ["web: buffering-unused"]);
}

#[test]
fn what_asks_for_what_happens_anyway_needs_no_word() {
    let backend = Backend::named("main");
    let notes = [
        ("proxy-buffering", "off"),
        ("proxy-request-buffering", "off"),
    ];
    let splitter = before(&backend, &notes);
    assert_eq!(splitter.problems(), [""; 0]);
}
