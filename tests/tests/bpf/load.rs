//! Loading, checking, attaching and detaching the kernel programs, and every error of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the verifier's figures are for people")]

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use splitter::dataplane::{DataplaneError, Kernel, KernelOptions, XdpKind, detach};
use splitter_tests::bpf::net::{command, let_go};
use splitter_tests::bpf::{BpfFs, Nodes};

fn options(pins: &BpfFs, xdp: Option<XdpKind>) -> KernelOptions {
    KernelOptions {
        xdp,
        interfaces: vec!["en0".to_owned()],
        pin_dir: pins.path().join("splitter"),
        keep_attached: false,
    }
}

fn load(nodes: &Nodes, options: &KernelOptions) -> Result<Kernel, DataplaneError> {
    nodes.node.run(|| Kernel::load(options))
}

fn refused(nodes: &Nodes, options: &KernelOptions) -> String {
    match load(nodes, options) {
        Ok(_) => panic!("loaded, but must not"),
        Err(error) => error.to_string(),
    }
}

/// The XDP program on the node's NIC, if any.
fn xdp_on_nic(nodes: &Nodes) -> Option<u32> {
    let all = nodes.node.run(splitter::dataplane::interfaces).unwrap();
    all.into_iter().find(|nic| nic.name == "en0").unwrap().xdp
}

#[test]
fn programs_load_attach_and_leave_nothing_behind() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let kernel = load(&nodes, &options(&pins, Some(XdpKind::Native))).unwrap();
    let report = kernel.report().clone();
    assert_eq!(report.interfaces, [("en0".to_owned(), "native")]);
    let names: Vec<_> = report.programs.iter().map(|program| program.name).collect();
    assert_eq!(names, ["steer", "ingress"]);
    for program in &report.programs {
        assert!(program.id > 0 && program.verified > 100, "{program:?}");
        println!(
            "{}: the verifier went through {} instructions",
            program.name, program.verified
        );
    }
    assert_eq!(xdp_on_nic(&nodes), Some(report.programs[1].id));
    let_go(kernel);
    assert_eq!(xdp_on_nic(&nodes), None);
    // The maps stay for whoever wants to read them, until they are removed.
    assert!(report.pin_dir.join("splits").exists());
    detach(&pins.path().join("splitter")).unwrap();
    assert!(!report.pin_dir.exists());
}

#[test]
fn pinned_maps_are_taken_over() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let options = options(&pins, None);
    let id = |kernel: &Kernel| {
        let path = kernel.report().pin_dir.join("splits");
        command(
            "bpftool",
            &["map", "show", "pinned", &path.to_string_lossy()],
        )
    };
    let kernel = load(&nodes, &options).unwrap();
    let first = id(&kernel);
    let_go(kernel);
    let kernel = load(&nodes, &options).unwrap();
    assert_eq!(id(&kernel), first);
}

#[test]
fn maps_of_another_layout_are_left_alone() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let options = options(&pins, None);
    let other = options.pin_dir.join("v1");
    fs::create_dir_all(&other).unwrap();
    let splits = other.join("splits");
    let splits = splits.to_string_lossy();
    let name = [
        "type", "array", "key", "4", "value", "16", "entries", "4", "name", "splits",
    ];
    let args = [&["map", "create", &splits], &name[..]].concat();
    command("bpftool", &args);
    let kernel = load(&nodes, &options).unwrap();
    assert_eq!(kernel.report().pin_dir, options.pin_dir.join("v1-2"));
    let text = command("bpftool", &["map", "show", "pinned", &splits]);
    assert!(text.contains("value 16B"), "{text}");
}

#[test]
fn a_second_process_is_refused_by_the_name_of_the_first() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let options = options(&pins, None);
    let mut kernel = load(&nodes, &options).unwrap();
    kernel
        .set_ranges(&Default::default(), &Default::default())
        .unwrap();
    let text = refused(&nodes, &options);
    assert!(
        text.contains(&format!("running process {}", std::process::id())),
        "{text}"
    );
    assert!(text.contains("--pin-dir"), "{text}");
    let text = detach(&options.pin_dir).unwrap_err().to_string();
    assert!(text.contains("running process"), "{text}");
}

#[test]
fn a_program_of_another_owner_is_named_and_left_alone() {
    let (nodes, pins, others) = (Nodes::new(), BpfFs::mount(), BpfFs::mount());
    let native = Some(XdpKind::Native);
    let other = load(&nodes, &options(&others, native)).unwrap();
    let id = xdp_on_nic(&nodes).unwrap();
    let text = refused(&nodes, &options(&pins, native));
    assert!(
        text.contains(&format!("already has the XDP program {id}")),
        "{text}"
    );
    assert_eq!(xdp_on_nic(&nodes), Some(id));
    let_go(other);
    // The same with a program that hangs there without a link.
    let object = pins.path().join("object");
    fs::create_dir(&object).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), splitter::dataplane::object().unwrap()).unwrap();
    let paths = [file.path().to_string_lossy(), object.to_string_lossy()];
    command("bpftool", &["prog", "loadall", &paths[0], &paths[1]]);
    let pinned = object.join("ingress");
    nodes.node.ip(&format!(
        "link set dev en0 xdpdrv pinned {}",
        pinned.display()
    ));
    let id = xdp_on_nic(&nodes).unwrap();
    let text = refused(&nodes, &options(&pins, native));
    assert!(
        text.contains(&format!("already has the XDP program {id}")),
        "{text}"
    );
    assert_eq!(xdp_on_nic(&nodes), Some(id));
}

#[test]
fn what_is_missing_is_said_with_its_remedy() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let plain = options(&pins, Some(XdpKind::Native));
    let elsewhere = KernelOptions {
        pin_dir: Path::new("/tmp/splitter-is-not-here").to_owned(),
        ..plain.clone()
    };
    let text = refused(&nodes, &elsewhere);
    assert!(text.contains("mount -t bpf bpf /sys/fs/bpf"), "{text}");
    let no_nic = KernelOptions {
        interfaces: vec!["en7".to_owned()],
        ..plain.clone()
    };
    assert!(refused(&nodes, &no_nic).contains("\"en7\""));
    let no_route = KernelOptions {
        interfaces: Vec::new(),
        ..plain.clone()
    };
    assert!(refused(&nodes, &no_route).contains("--interface"));
    // A bridge has no driver that could run XDP.
    let bridge = KernelOptions {
        interfaces: vec!["cni0".to_owned()],
        ..plain.clone()
    };
    let text = refused(&nodes, &bridge);
    assert!(
        text.contains("cni0") && text.contains("--steering sk-lookup"),
        "{text}"
    );
    assert!(
        detach(&pins.path().join("nothing"))
            .unwrap_err()
            .to_string()
            .contains("nothing")
    );
    // Nothing of all that is left attached.
    assert_eq!(xdp_on_nic(&nodes), None);
    load(&nodes, &plain).unwrap();
}

#[test]
fn the_default_route_names_the_nic() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    nodes.node.ip("route add default via 203.0.113.2");
    let any = KernelOptions {
        interfaces: Vec::new(),
        ..options(&pins, Some(XdpKind::Native))
    };
    let kernel = load(&nodes, &any).unwrap();
    assert_eq!(kernel.report().interfaces, [("en0".to_owned(), "native")]);
}

#[test]
fn generic_mode_is_used_when_asked_for() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let mut generic = options(&pins, Some(XdpKind::Generic));
    generic.interfaces = vec!["cni0".to_owned()];
    let kernel = load(&nodes, &generic).unwrap();
    assert_eq!(kernel.report().interfaces, [("cni0".to_owned(), "generic")]);
}

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

#[test]
fn another_listener_of_the_node_is_unharmed() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let listener = nodes.node.run(|| TcpListener::bind("0.0.0.0:22")).unwrap();
    let mut open = nodes
        .out
        .run(|| TcpStream::connect("203.0.113.1:22"))
        .unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    let kernel = load(&nodes, &options(&pins, Some(XdpKind::Native))).unwrap();
    // A connection from before, and one that begins now.
    std::io::Write::write_all(&mut accepted, b"old").unwrap();
    let mut bytes = [0; 3];
    open.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"old");
    let during = nodes
        .out
        .run(|| TcpStream::connect("203.0.113.1:22"))
        .unwrap();
    listener.accept().unwrap();
    let_go(kernel);
    nodes
        .out
        .run(|| TcpStream::connect("203.0.113.1:22"))
        .unwrap();
    listener.accept().unwrap();
    drop(during);
}
