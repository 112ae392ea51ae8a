use splitter_tests::backend::Backend;

use super::before;

#[test]
fn the_dump_has_each_policy_of_a_location() {
    let backend = Backend::named("main");
    let splitter = before(
        &backend,
        &[
            ("proxy-read-timeout", "7"),
            ("proxy-next-upstream", "error timeout http_503"),
            ("proxy-body-size", "8k"),
            ("enable-access-log", "false"),
            ("proxy-http-version", "1.0"),
        ],
    );
    let dump = splitter.dump("/config_dump");
    let policy = &dump["snapshot"]["locations"][0]["policy"];
    let expected = serde_json::json!({
        "body_max": 8192,
        "exchange": {
            "protocol": "HTTP/1.0",
            "read_timeout": 7,
            "retry": {"on": ["error", "timeout", "http_503"], "tries": 3},
        },
        "unlogged": true,
    });
    assert_eq!(*policy, expected, "{dump:#}");
}
