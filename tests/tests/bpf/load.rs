//! Loading, checking, attaching and detaching the kernel programs, and every error of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::Path;

use splitter::dataplane::{
    BalanceOptions, DataplaneError, HookMode, Kernel, KernelOptions, Report, XdpKind, detach,
};
use splitter_tests::bpf::net::{closing, command, let_go};
use splitter_tests::bpf::{BpfFs, Nodes, figures};
use tracing_subscriber::util::SubscriberInitExt as _;

pub fn options(pins: &BpfFs, xdp: Option<XdpKind>) -> KernelOptions {
    KernelOptions {
        xdp,
        interfaces: vec!["en0".to_owned()],
        pin_dir: pins.path().join("splitter"),
        keep_attached: false,
        beside: None,
        hooks: HookMode::Off,
        cgroup: None,
        balance: BalanceOptions::default(),
    }
}

pub fn load(nodes: &Nodes, options: &KernelOptions) -> Result<Kernel, DataplaneError> {
    nodes.node.run(|| Kernel::load(options))
}

fn refused(nodes: &Nodes, options: &KernelOptions) -> String {
    match load(nodes, options) {
        Ok(_) => panic!("loaded, but must not"),
        Err(error) => error.to_string(),
    }
}

/// The XDP program on the node's NIC, if any.
pub fn xdp_on_nic(nodes: &Nodes) -> Option<u32> {
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
    // Older kernels have no links for traffic control, and forward nothing.
    let old = report.kernel.starts_with("6.1.");
    let expected = &["steer", "ingress", "egress"][..if old { 2 } else { 3 }];
    assert_eq!(names, expected);
    for program in &report.programs {
        assert!(program.id > 0 && program.verified > 100, "{program:?}");
        figures::note(&format!(
            "{}: {}: {} instructions verified",
            report.kernel, program.name, program.verified
        ));
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
fn with_a_log_that_shows_warnings_the_programs_load_with_what_they_say() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let options = options(&pins, Some(XdpKind::Native));
    let quiet = load(&nodes, &options).unwrap();
    let of_quiet = quiet.report().clone();
    let_go(quiet);
    let kernel = nodes.node.run(|| {
        let _shown = tracing_subscriber::fmt().set_default();
        Kernel::load(&options)
    });
    let kernel = kernel.unwrap();
    for (quiet, program) in of_quiet.programs.iter().zip(&kernel.report().programs) {
        figures::note(&format!(
            "{}: {}: {} instructions verified with a log, {} without",
            of_quiet.kernel, program.name, program.verified, quiet.verified
        ));
    }
    let verified = |of: &Report| [of.programs[0].verified, of.programs[1].verified];
    let ([steer, ingress], quiet) = (verified(kernel.report()), verified(&of_quiet));
    assert!(steer > quiet[0], "what is said must be in the program then");
    assert_eq!(ingress, quiet[1], "it has nothing to say");
    let_go(kernel);
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
fn maps_without_type_information_are_an_error_and_not_left_behind() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let options = options(&pins, None);
    // A type with a name that no kernel takes: it refuses the object's type information.
    let mut object = splitter::dataplane::object().unwrap().to_vec();
    let name = b"\0PrefixValue\0";
    let places: Vec<_> = (0..object.len() - name.len())
        .filter(|at| object[*at..].starts_with(name))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        object[at + "Prefix".len() + 1] = b'-';
    }
    let loaded = nodes.node.run(|| Kernel::load_object(&object, &options));
    let text = loaded.err().unwrap().to_string();
    assert!(text.contains("has no BTF"), "{text}");
    assert!(text.contains("--steering none"), "{text}");
    let left = fs::read_dir(options.pin_dir.join("v1")).unwrap();
    let mut left = left.map(|entry| entry.unwrap().file_name());
    assert!(
        left.all(|name| name == "pools"),
        "socket maps have none anywhere"
    );
    // The right programs find nothing in their way.
    let kernel = load(&nodes, &options).unwrap();
    assert!(kernel.report().pin_dir.ends_with("v1"));
}

/// Where the sections with instructions lie in a 64-bit ELF file.
pub fn code(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let short = |at: usize| usize::from(u16::from_le_bytes([file[at], file[at + 1]]));
    let (first, size, count) = (number(0x28), short(0x3a), short(0x3c));
    let headers = (0..count).map(|n| first + n * size);
    const EXECUTABLE: usize = 4;
    let executable = headers.filter(|at| number(at + 8) & EXECUTABLE != 0);
    executable
        .map(|at| number(at + 24)..number(at + 24) + number(at + 32))
        .collect()
}

#[test]
fn programs_that_do_not_fit_are_refused_with_the_kernels_reason() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let options = options(&pins, Some(XdpKind::Native));
    let refused = |object: &[u8]| {
        let loaded = nodes.node.run(|| Kernel::load_object(object, &options));
        loaded.err().unwrap().to_string()
    };
    let text = refused(b"not an object at all");
    assert!(text.contains("the kernel refuses the object"), "{text}");
    // The instruction that leaves a program becomes one that does not exist.
    let mut object = splitter::dataplane::object().unwrap().to_vec();
    for code in code(&object) {
        for word in object[code].chunks_exact_mut(8) {
            if word == 0x95u64.to_le_bytes() {
                word[0] = 0x9d;
            }
        }
    }
    let text = refused(&object);
    for says in [
        "the kernel refuses the",
        "program: ",
        "not an exit",
        "(kernel ",
    ] {
        assert!(text.contains(says), "{says:?}: {text}");
    }
    assert_eq!(xdp_on_nic(&nodes), None);
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

/// A second NIC of the node, to another network of the client outside.
fn second_nic(nodes: &Nodes) {
    let (node, out) = (&nodes.node, &nodes.out);
    node.ip(&format!(
        "link add en1 type veth peer name wire1 netns {}",
        out.name()
    ));
    for (place, nic, addr) in [
        (node, "en1", "198.51.100.1/24"),
        (out, "wire1", "198.51.100.2/24"),
    ] {
        place.ip(&format!("link set {nic} up"));
        place.ip(&format!("addr add {addr} dev {nic}"));
    }
}

fn xdp_on(nodes: &Nodes, name: &str) -> Option<u32> {
    let all = nodes.node.run(splitter::dataplane::interfaces).unwrap();
    all.into_iter().find(|nic| nic.name == name).unwrap().xdp
}

#[test]
fn the_programs_move_with_the_default_route() {
    for keep_attached in [false, true] {
        let (nodes, pins) = (Nodes::new(), BpfFs::mount());
        second_nic(&nodes);
        nodes.node.ip("route add default via 203.0.113.2");
        let any = KernelOptions {
            interfaces: Vec::new(),
            keep_attached,
            ..options(&pins, Some(XdpKind::Native))
        };
        let mut kernel = load(&nodes, &any).unwrap();
        let mut follow = || closing(|| nodes.node.run(|| kernel.follow_nics()).unwrap());
        assert!(follow().is_none(), "nothing has changed");
        nodes.node.ip("route replace default via 198.51.100.2");
        let change = follow().unwrap();
        assert_eq!(
            (change.before, change.now),
            (vec!["en0".to_owned()], vec!["en1".to_owned()])
        );
        assert!(change.faults.is_empty(), "{:?}", change.faults);
        assert!(xdp_on(&nodes, "en0").is_none() && xdp_on(&nodes, "en1").is_some());
        // Without a route nothing says where else to go.
        nodes.node.ip("route del default");
        assert!(follow().is_none());
        // One that has a program of somebody else: callers are steered, packets are not policed.
        nodes.node.ip("route add default via 203.0.113.2");
        let pass = splitter_tests::bpf::run::pass_program().unwrap();
        let index = nodes.node.run(splitter::dataplane::interfaces).unwrap();
        let index = index
            .into_iter()
            .find(|nic| nic.name == "en0")
            .unwrap()
            .index;
        let attach = || splitter_tests::bpf::run::attach_xdp(pass.as_fd(), index).unwrap();
        let foreign = nodes.node.run(attach);
        let id = xdp_on(&nodes, "en0");
        let change = follow().unwrap();
        let fault = change.faults[0].to_string();
        assert!(fault.contains("already has the XDP program"), "{fault}");
        assert_eq!((xdp_on(&nodes, "en0"), xdp_on(&nodes, "en1")), (id, None));
        assert_eq!(kernel.external(), [index]);
        assert_eq!(kernel.report().interfaces, [("en0".to_owned(), "none")]);
        let_go((kernel, foreign));
        assert!(xdp_on(&nodes, "en0").is_none() && xdp_on(&nodes, "en1").is_none());
    }
}

#[test]
fn what_a_former_process_kept_on_another_nic_is_let_go() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    second_nic(&nodes);
    let kept = KernelOptions {
        keep_attached: true,
        ..options(&pins, Some(XdpKind::Native))
    };
    let_go(load(&nodes, &kept).unwrap());
    assert!(xdp_on(&nodes, "en0").is_some());
    let other = KernelOptions {
        interfaces: vec!["en1".to_owned()],
        ..kept
    };
    let_go(load(&nodes, &other).unwrap());
    assert!(xdp_on(&nodes, "en0").is_none() && xdp_on(&nodes, "en1").is_some());
    // And on all, where no XDP is wanted any more.
    let none = KernelOptions { xdp: None, ..other };
    let_go(load(&nodes, &none).unwrap());
    assert!(xdp_on(&nodes, "en1").is_none());
}

#[test]
fn generic_mode_is_used_when_asked_for() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    let mut generic = options(&pins, Some(XdpKind::Generic));
    generic.interfaces = vec!["cni0".to_owned()];
    let kernel = load(&nodes, &generic).unwrap();
    assert_eq!(kernel.report().interfaces, [("cni0".to_owned(), "generic")]);
}

/// The object with a program that takes packets in one piece only.
fn without_fragments(object: &[u8]) -> Vec<u8> {
    let name = b"xdp.frags\0";
    let mut object = object.to_vec();
    let is_name = |at: &usize| object[*at..].starts_with(name);
    let places: Vec<_> = (0..object.len()).filter(is_name).collect();
    assert!(!places.is_empty());
    for at in places {
        object[at + "xdp".len()] = 0;
    }
    object
}

#[test]
fn large_frames_are_taken_and_a_program_that_cannot_is_refused_by_its_name() {
    let (nodes, pins) = (Nodes::new(), BpfFs::mount());
    nodes.out.ip("link set wire mtu 9000");
    nodes.node.ip("link set en0 mtu 9000");
    let options = options(&pins, Some(XdpKind::Native));
    let kernel = load(&nodes, &options).unwrap();
    assert_eq!(kernel.report().interfaces, [("en0".to_owned(), "native")]);
    let_go(kernel);
    let object = without_fragments(splitter::dataplane::object().unwrap());
    let loaded = nodes.node.run(|| Kernel::load_object(&object, &options));
    let text = loaded.err().unwrap().to_string();
    for part in [
        "MTU 9000",
        "ip link set en0 mtu 3498",
        "--steering sk-lookup",
    ] {
        assert!(text.contains(part), "{text}");
    }
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
