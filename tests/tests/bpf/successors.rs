//! One instance after the other on the same NIC and pin directory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{TcpListener, TcpStream};

use splitter::dataplane::{KernelOptions, XdpKind, detach};
use splitter_tests::bpf::net::let_go;
use splitter_tests::bpf::{BpfFs, Nodes};

use super::load::{load, options, xdp_on_nic};

#[test]
fn kept_programs_outlive_the_process_and_are_taken_over() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let kept = KernelOptions {
        keep_attached: true,
        ..options(&pins, Some(XdpKind::Native))
    };
    let_go(load(&nodes, &kept).unwrap());
    let first = xdp_on_nic(&nodes).unwrap();
    // Without a listener, connections go where they would without us.
    let listener = nodes.node.run(|| TcpListener::bind("0.0.0.0:80")).unwrap();
    assert!(
        nodes
            .out
            .run(|| TcpStream::connect("203.0.113.1:80"))
            .is_ok()
    );
    let_go(listener);
    let kernel = load(&nodes, &kept).unwrap();
    let second = xdp_on_nic(&nodes).unwrap();
    assert_ne!(first, second);
    let_go(kernel);
    assert_eq!(xdp_on_nic(&nodes), Some(second));
    let gone = detach(&kept.pin_dir).unwrap();
    assert!(
        gone.iter().any(|path| path.ends_with("link_steer")),
        "{gone:?}"
    );
    assert_eq!(xdp_on_nic(&nodes), None);
}

/// It was killed between its answer and the moment at which its successor looked for a directory.
#[test]
fn a_former_that_is_gone_already_is_followed_in_its_own_directory() {
    for keep_attached in [false, true] {
        let (nodes, pins) = (Nodes::new(), BpfFs::mount());
        let mut options = options(&pins, Some(XdpKind::Native));
        options.keep_attached = keep_attached;
        let mut former = load(&nodes, &options).unwrap();
        let dir = former.lend().unwrap().to_owned();
        let_go(former);
        options.beside = Some(dir.clone());
        let mut next = load(&nodes, &options).unwrap();
        let report = next.report().clone();
        assert_eq!(report.pin_dir, dir);
        assert_eq!(report.interfaces, [("en0".to_owned(), "native")]);
        assert_eq!(xdp_on_nic(&nodes), Some(report.programs[1].id));
        assert_eq!(next.staged(), None);
        let faults = next.settle(false);
        assert!(faults.is_empty(), "{faults:?}");
        let_go(next);
        detach(&pins.path().join("splitter")).unwrap();
        assert_eq!(xdp_on_nic(&nodes), None);
    }
}
