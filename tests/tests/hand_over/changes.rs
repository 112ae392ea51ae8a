use splitter_tests::eventually;

use super::*;

/// From one way of steering to another, with more workers and with fewer.
#[test]
fn the_successor_may_steer_otherwise() {
    let mut site = site();
    let all = [
        "--steering none --pools north-south=1",
        "--steering xdp --pools north-south=4",
        "--steering sk-lookup --pools north-south=1",
        "--steering none --workers 1",
    ];
    let http = |more: &str| format!("{more} --http 0.0.0.0:80");
    start(&mut site, &http(all[0]));
    let load = load(&site);
    for more in &all[1..] {
        load.wait_for(20);
        let args = args(&site, &http(more)).replacen("--workers 2 ", "", 1);
        let mut next = site.start_beside(&args);
        site.wait_for(&mut next);
        let mut former = site.promote(next);
        load.wait_for(20);
        eventually("the former instance ends", || former.has_ended());
        let mode = more.split(' ').nth(1).unwrap();
        assert!(site.admin("/readyz").contains(&format!("steering: {mode}")));
        // The kernel lets go of a link some time after its last user.
        eventually("XDP is where it should be", || {
            nic_has_xdp(&site) == (mode == "xdp")
        });
        let dirs = std::fs::read_dir(site.pin_dir()).unwrap().count();
        assert_eq!(dirs, usize::from(mode != "none"), "{mode}");
    }
    nothing_lost(load, 100);
    assert!(site.stop().success());
}

fn nic_has_xdp(site: &Site) -> bool {
    let all = site
        .nodes
        .node
        .run(splitter::dataplane::interfaces)
        .unwrap();
    let nic = all.into_iter().find(|nic| nic.name == "en0").unwrap();
    nic.xdp.is_some()
}

/// What is pinned under the usual name is the successor's, and a weight set there counts.
#[test]
fn the_usual_pins_are_those_of_whoever_serves() {
    let mut site = site();
    let more = "--steering xdp --http 0.0.0.0:80 --keep-attached";
    start(&mut site, more);
    let before = status(&site)["steering"]["kernel"].clone();
    let args = args(&site, &format!("{more} --after-hand-over wait"));
    for turn in 0..2 {
        let mut next = site.start_beside(&args);
        site.wait_for(&mut next);
        drop(site.promote(next));
        // One that is killed leaves its maps beside, and the one after the next takes those up.
        if turn == 0 {
            let splits = status(&site)["steering"]["kernel"]["splits_map"].clone();
            assert_ne!(splits, before["splits_map"]);
        }
    }
    let kernel = status(&site)["steering"]["kernel"].clone();
    assert_eq!(kernel["pin_dir"], before["pin_dir"]);
    assert_eq!(kernel["interfaces"], before["interfaces"]);
    let links = status(&site)["kept_links"].clone();
    assert_eq!(links.as_array().unwrap().len(), 2, "{links}");
    let set = site.output("weight set shop.test / stable=0 web-next=100");
    assert!(set.status.success(), "{set:?}");
    for _ in 0..5 {
        let answer = site.get(&site.nodes.out, "203.0.113.1:80");
        assert_eq!(answer.text(), "web-next");
    }
    site.stop();
    assert!(nic_has_xdp(&site), "it is kept");
    let detached = site.output("detach");
    assert!(detached.status.success(), "{detached:?}");
    assert!(!nic_has_xdp(&site));
}

/// A supervisor that starts again whatever ends must not have it take over from its successor.
#[test]
fn it_waits_for_the_signal_where_it_is_told_to() {
    let mut site = site();
    let more = "--steering none --http 0.0.0.0:80 --after-hand-over wait";
    let args = args(&site, more);
    let command = site.command(&args);
    site.start_as(command);
    let mut next = site.start_beside(&args);
    site.wait_for(&mut next);
    let mut former = site.promote(next);
    let mut third = site.start_beside(&args);
    site.wait_for(&mut third);
    let mut second = site.promote(third);
    assert!(!former.has_ended());
    let (ready, text) = site.probe(&second).unwrap();
    assert!(!ready && text.contains("503"), "{text}");
    for old in [&mut former, &mut second] {
        old.signal(libc::SIGTERM);
        assert!(old.wait().success());
    }
    assert_eq!(site.get(&site.nodes.out, "203.0.113.1:80").status, 200);
    assert!(site.stop().success());
}
