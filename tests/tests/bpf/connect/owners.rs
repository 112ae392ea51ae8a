//! The hooks: ours, others', those of a former instance.

use super::*;

#[test]
fn the_programs_load_and_say_how_much_they_are() {
    let mut place = Place::new(HookMode::Auto);
    let report = place.kernel().report().clone();
    let names: Vec<_> = report.programs.iter().map(|it| it.name).collect();
    for name in ["connect4", "connect6", "sendmsg4", "sendmsg6", "recvmsg6"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for program in &report.programs[1..] {
        assert!(program.id > 0 && program.verified > 20, "{program:?}");
        figures::note(&format!(
            "{}: {}: {} instructions verified",
            report.kernel, program.name, program.verified
        ));
    }
    assert_eq!(place.state(), HookState::Waiting, "nothing is split");
}

#[test]
fn programs_of_others_are_found_and_left_alone() {
    let mut place = Place::new(HookMode::Auto);
    place.answer_all();
    place.weigh([0, 1]);
    // Another owner, with the same programs and its own tables: it gives everything to stable.
    let others = BpfFs::mount();
    let other = options(&others, &place.cgroup, HookMode::On);
    let mut other = place.node.run(|| Kernel::load(&other)).unwrap();
    other.follow_hooks();
    assert_eq!(other.hooks().name(), "attached");
    place.plan(&service(|_| {}));
    let HookState::Aside { why } = place.state() else {
        panic!("{}", place.state());
    };
    assert!(
        why.contains("another owner") && why.contains("--connect-hooks on"),
        "{why}"
    );
    place.client(|| assert_eq!(ask(OWN[0]), "cluster"));
    // It goes, and its place is taken; it comes back, and is given way to.
    let_go(other);
    eventually("the hooks are free", || {
        place.kernel().follow_hooks();
        place.state().name() == "attached"
    });
    place.client(|| assert_eq!(ask(OWN[0]), "canary"));
}

#[test]
fn who_is_told_to_attaches_beside_others() {
    let mut place = Place::split([1, 0]);
    let others = BpfFs::mount();
    let other = options(&others, &place.cgroup, HookMode::On);
    let mut other = place.node.run(|| Kernel::load(&other)).unwrap();
    other.follow_hooks();
    let HookState::Attached { beside, .. } = other.hooks() else {
        panic!("{}", other.hooks());
    };
    assert_eq!(beside.len(), 8);
    // Who was there first decides.
    place.client(|| assert_eq!(ask(OWN[0]), "stable"));
    // The first one gives way, as it is to be alone; the other one has nothing to split.
    place.kernel().follow_hooks();
    assert_eq!(place.state().name(), "aside");
    eventually("the cluster answers", || {
        place.client(|| ask(OWN[0])) == "cluster"
    });
    let_go(other);
}

#[test]
fn a_successor_decides_as_soon_as_the_former_one_is_gone_and_sockets_do_not_notice() {
    let mut place = Place::split([1, 0]);
    let socket = place.client(|| {
        let socket = datagrams(OWN[0]);
        socket.connect(OWN[0]).unwrap();
        socket
    });
    let dir = place.kernel().report().pin_dir.clone();
    let next = KernelOptions {
        beside: Some(dir.clone()),
        ..options(&place.pins, &place.cgroup, HookMode::Auto)
    };
    let mut next = place.node.run(|| Kernel::load(&next)).unwrap();
    let content = SlotContent::new([(0, 0), (1, 1)]);
    next.splits()
        .apply(&[SlotOp::Write(SLOT, content)], 1)
        .unwrap();
    assert!(next.split_connects(&planned(&service(|_| {}))).is_empty());
    next.follow_hooks();
    let attached = HookState::Attached {
        cgroup: place.cgroup.path().to_owned(),
        beside: Vec::new(),
    };
    assert_eq!(
        *next.hooks(),
        attached,
        "the former one is not another owner"
    );
    place.client(|| assert_eq!(ask(OWN[0]), "stable"));
    let_go(place.kernel.take());
    eventually("the successor decides", || {
        place.client(|| ask(OWN[0])) == "canary"
    });
    assert_eq!(socket.peer_addr().unwrap(), OWN[0].parse().unwrap());
    let mut bytes = [0; 64];
    place.client(|| {
        socket.send(b"?").unwrap();
        let (length, from) = socket.recv_from(&mut bytes).unwrap();
        assert_eq!(from, OWN[0].parse().unwrap());
        assert_eq!(&bytes[..length], b"stable", "its own Endpoint still");
    });
    let_go(next);
}

#[test]
fn a_cgroup_that_is_none_and_programs_that_are_not_wanted() {
    let (pins, cgroup) = (BpfFs::mount(), Cgroup::new());
    let node = Namespace::new("node");
    let mut wrong = options(&pins, &cgroup, HookMode::Auto);
    wrong.cgroup = Some("/proc".into());
    let mut kernel = node.run(|| Kernel::load(&wrong)).unwrap();
    assert!(kernel.split_connects(&planned(&service(|_| {}))).is_empty());
    kernel.follow_hooks();
    let HookState::Aside { why } = kernel.hooks() else {
        panic!("{}", kernel.hooks());
    };
    assert!(why.contains("/proc is no cgroup"), "{why}");
    let_go(kernel);
    let off = options(&pins, &cgroup, HookMode::Off);
    let mut kernel = node.run(|| Kernel::load(&off)).unwrap();
    assert!(kernel.split_connects(&planned(&service(|_| {}))).is_empty());
    assert!(!kernel.follow_hooks());
    assert_eq!(*kernel.hooks(), HookState::Off);
    let names: Vec<_> = kernel.report().programs.iter().map(|it| it.name).collect();
    assert_eq!(names, ["steer"]);
    let_go(kernel);
}

#[test]
fn bpftool_and_pins_say_what_is_split() {
    let mut place = Place::split([90, 10]);
    let path = place.kernel().report().pin_dir.join("l4_services");
    let text = command(
        "bpftool",
        &["map", "dump", "pinned", &path.to_string_lossy()],
    );
    for part in ["\"slot\": 3", "\"family\": 4", "\"len\": 1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let pinned = splitter::dataplane::Pinned::open(&place.pins.path().join("splitter")).unwrap();
    let all = pinned.connects().unwrap();
    let one = all
        .iter()
        .find(|it| it.addr == OWN[0].parse().unwrap() && it.protocol == "UDP");
    let one = one.unwrap();
    assert_eq!(
        one.endpoints,
        [[STABLE[0].parse().unwrap()], [CANARY[0].parse().unwrap()]]
    );
    let refused = place.client(|| TcpStream::connect("10.96.0.10:7009").unwrap_err().kind());
    assert_eq!(refused, ErrorKind::ConnectionRefused, "another port");
}
