use std::path::Path;

use splitter_tests::eventually;

use super::*;

/// A successor that never gets as far as serving: its API server is not there.
const NEVER: &str = "--kubeconfig";

fn never(site: &Site, more: &str) -> String {
    let kubeconfig = site.dir().join("kubeconfig");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
        contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n\
        clusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\n";
    std::fs::write(&kubeconfig, text).unwrap();
    let args = args(site, more);
    let (_, rest) = args.split_once("--admin").unwrap();
    format!("run {NEVER} {} --admin{rest}", kubeconfig.display())
}

#[test]
fn when_the_successor_dies_the_former_goes_on() {
    for mode in ["xdp", "none"] {
        let mut site = site();
        let more = format!("--steering {mode} --http 0.0.0.0:80");
        start(&mut site, &more);
        let pid = site.pid();
        let before = status_of(&site, mode);
        let load = load(&site);
        load.wait_for(20);
        let args = never(&site, &more);
        let mut next = site.start_beside(&args);
        eventually("the successor has what it asked for", || {
            let ended = next.has_ended();
            assert!(!ended, "{}", next.log());
            next.log().contains("taking over")
        });
        eventually("it waits for the API", || {
            let probe = site.probe(&next);
            probe.is_some_and(|(ready, text)| !ready && text.contains("503"))
        });
        // In between everything is the running one's.
        assert_eq!(status_of(&site, mode), before);
        load.wait_for(20);
        next.signal(libc::SIGKILL);
        next.wait();
        let broken = [("result", "broken-off")];
        eventually("the running one has noticed", || {
            site.metrics().sum("splitter_hand_overs_total", &broken) == 1.0
        });
        load.wait_for(20);
        assert_eq!(status_of(&site, mode), before);
        assert_eq!(site.pid(), pid);

        // And the next one gets it.
        let args = super::args(&site, &more);
        let mut next = site.start_beside(&args);
        site.wait_for(&mut next);
        let mut former = site.promote(next);
        load.wait_for(20);
        eventually("the former instance ends", || former.has_ended());
        nothing_lost(load, 80);
        let after = status_of(&site, mode);
        assert_ne!(after, before);
        assert_eq!(after, (u64::from(site.pid()), before.1));
        assert!(site.stop().success());
    }
}

#[test]
fn a_former_that_is_killed_in_between_leaves_its_place_to_the_successor() {
    let mut site = site();
    let more = "--steering xdp --http 0.0.0.0:80";
    start(&mut site, more);
    let (_, dir) = status_of(&site, "xdp");
    let mut next = site.start_beside(&args(&site, more));
    eventually("the successor has what it asked for", || {
        next.log().contains("taking over")
    });
    // It does not get any further until the other one is gone.
    next.signal(libc::SIGSTOP);
    let mut former = site.demote();
    former.signal(libc::SIGKILL);
    former.wait();
    next.signal(libc::SIGCONT);
    site.wait_for(&mut next);
    drop(former);
    let _ = site.promote(next);
    eventually("what is pinned under the usual name is its own", || {
        status_of(&site, "xdp") == (u64::from(site.pid()), dir.clone())
    });
    let kernel = &status(&site)["steering"]["kernel"];
    assert_eq!(kernel["interfaces"][0]["xdp"], "native", "{kernel}");
    let dirs = std::fs::read_dir(Path::new(&dir).parent().unwrap()).unwrap();
    assert_eq!(dirs.count(), 1, "nothing of the former one is left");
    assert!(site.stop().success());
}

/// The process, and where its maps are.
fn status_of(site: &Site, mode: &str) -> (u64, String) {
    let steering = match mode {
        "none" => {
            let dump: serde_json::Value =
                serde_json::from_str(&site.admin("/config_dump")).unwrap();
            dump["steering"].clone()
        }
        _ => status(site)["steering"].clone(),
    };
    let dir = steering["kernel"]["pin_dir"].as_str().unwrap_or_default();
    (steering["pid"].as_u64().unwrap(), dir.to_owned())
}

#[test]
fn without_being_asked_for_a_second_one_is_refused_as_ever() {
    let mut site = site();
    start(&mut site, "--steering sk-lookup --http 0.0.0.0:80");
    let refused = site.output(&site.run_args("--steering sk-lookup --http 0.0.0.0:8080"));
    let error = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("10254"), "{error}");
}

#[test]
fn asked_to_stop_while_a_successor_starts_it_waits_for_it() {
    let mut site = site();
    let more = "--steering none --http 0.0.0.0:80";
    start(&mut site, more);
    let load = load(&site);
    let args = never(&site, more);
    let next = site.start_beside(&args);
    eventually("the successor has what it asked for", || {
        next.log().contains("taking over")
    });
    let mut former = site.demote();
    former.signal(libc::SIGTERM);
    eventually("it has heard", || {
        former.log().contains("going on until the successor serves")
    });
    load.wait_for(20);
    let (answered, failures) = load.stop();
    assert!(
        failures.is_empty() && answered >= 20,
        "{answered}: {failures:?}"
    );
    next.signal(libc::SIGKILL);
    eventually("without a successor it ends", || former.has_ended());
    assert!(former.wait().success());
}
