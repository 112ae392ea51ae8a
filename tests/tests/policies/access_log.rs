use splitter::config::AccessLog;
use splitter_tests::backend::Backend;
use splitter_tests::instance::Splitter;
use splitter_tests::manifests::Manifests;

#[test]
fn requests_of_a_location_without_a_log_are_counted_and_not_logged() {
    let backend = Backend::named("main");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let off = [("enable-access-log", "false")];
    let splitter = Splitter::start_with(
        &Manifests::new()
            .ingress("quiet", "a.test", "/quiet", "Prefix", "app", &off)
            .main("loud", "a.test", "/", "app")
            .service("app", &[backend.addr()]),
        |settings| settings.access_log = AccessLog::File(path.clone()),
    );
    for target in ["/quiet/1", "/loud/2", "/quiet/3", "/loud/4"] {
        assert_eq!(splitter.get("a.test", target).status, 200);
    }
    let of = |ingress| {
        let name = "nginx_ingress_controller_requests";
        splitter.metrics().sum(name, &[("ingress", ingress)])
    };
    splitter_tests::eventually("all are counted", || {
        of("quiet") == 2.0 && of("loud") == 2.0
    });
    splitter.stop();
    let log = std::fs::read_to_string(path).unwrap();
    assert_eq!(log.lines().count(), 2, "{log}");
    assert!(log.contains("/loud/2") && log.contains("/loud/4"), "{log}");
}
