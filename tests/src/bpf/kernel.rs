//! A loaded data plane for tests that run its programs directly.

use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd};

use splitter::dataplane::{
    BalanceOptions, Counts, HookMode, Kernel, KernelOptions, Policy, Ranges, XdpKind,
};
use splitter_common::Limit;

use super::{BpfFs, Nodes};

/// The programs, attached to the node of [`Nodes`], with the addresses of that node known.
pub struct Loaded {
    /// What was loaded.
    pub kernel: Kernel,
    /// Where it is attached.
    pub nodes: Nodes,
    /// Where it is pinned.
    pub pins: BpfFs,
    /// What is in force.
    in_force: (Ranges, Policy, Vec<u32>),
}

/// What the node of [`Nodes`] knows about the addresses around it.
///
/// # Panics
/// Never: the texts are right.
pub fn ranges() -> Ranges {
    let range = |text: &str| match text.parse() {
        Ok(range) => range,
        Err(error) => panic!("{text}: {error}"),
    };
    let own = ["203.0.113.1", "2001:db8::1", "10.244.0.1", "fd00:244::1"];
    Ranges {
        own: own.map(address).to_vec(),
        pods: vec![range("10.244.0.0/24"), range("fd00:244::/64")],
        cluster: vec![range("10.244.0.0/16"), range("fd00:244::/48")],
        nodes: vec![address("203.0.113.9"), address("2001:db8::9")],
    }
}

/// An address from its text.
///
/// # Panics
/// When it is none.
pub fn address(text: &str) -> IpAddr {
    match text.parse() {
        Ok(address) => address,
        Err(error) => panic!("{text}: {error}"),
    }
}

impl Loaded {
    /// Loads with XDP in the driver.
    ///
    /// # Panics
    /// When loading fails.
    pub fn new(policy: &Policy) -> Loaded {
        Loaded::on(Nodes::new(), policy)
    }

    /// The same with the wire cut, so that no packet but a test's own is counted.
    ///
    /// # Panics
    /// When loading fails.
    pub fn quiet(policy: &Policy) -> Loaded {
        let nodes = Nodes::new();
        nodes.out.ip("link set wire down");
        Loaded::on(nodes, policy)
    }

    fn on(nodes: Nodes, policy: &Policy) -> Loaded {
        let pins = BpfFs::mount();
        let options = KernelOptions {
            xdp: Some(XdpKind::Native),
            interfaces: vec!["en0".to_owned()],
            pin_dir: pins.path().join("splitter"),
            keep_attached: false,
            beside: None,
            hooks: HookMode::Off,
            cgroup: None,
            // A test begins more flows at once than a flood.
            balance: BalanceOptions {
                new_flows: Limit::default(),
                ..BalanceOptions::default()
            },
        };
        let kernel = nodes.node.run(|| Kernel::load(&options));
        let mut loaded = Loaded {
            kernel: kernel.unwrap_or_else(|error| panic!("{error}")),
            nodes,
            pins,
            in_force: Default::default(),
        };
        loaded.set(&ranges(), policy);
        loaded
    }

    /// Puts other ranges and another policy into force; the NIC leads outside.
    ///
    /// # Panics
    /// When a range finds no place or a map cannot be written.
    pub fn set(&mut self, ranges: &Ranges, policy: &Policy) {
        let nic = self.nic();
        self.put((ranges.clone(), policy.clone(), vec![nic]));
    }

    /// Makes other interfaces those that lead outside.
    ///
    /// # Panics
    /// When a map cannot be written.
    pub fn set_external(&mut self, external: &[u32]) {
        if self.in_force.2 != external {
            let (ranges, policy, _) = self.in_force.clone();
            self.put((ranges, policy, external.to_vec()));
        }
    }

    fn put(&mut self, wanted: (Ranges, Policy, Vec<u32>)) {
        let left_out = self.kernel.set_ranges_on(&wanted.0, &wanted.1, &wanted.2);
        let left_out = left_out.unwrap_or_else(|error| panic!("{error}"));
        assert!(left_out.is_empty(), "{left_out:?}");
        self.in_force = wanted;
    }

    /// A program's descriptor.
    ///
    /// # Panics
    /// When it is not loaded.
    pub fn program(&self, name: &str) -> BorrowedFd<'_> {
        let program = self
            .kernel
            .program(name)
            .and_then(|program| program.fd().ok());
        program
            .unwrap_or_else(|| panic!("{name} is not loaded"))
            .as_fd()
    }

    /// What the programs have counted.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn counts(&self) -> Counts {
        self.kernel
            .counters
            .read()
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// The number of the NIC.
    pub fn nic(&self) -> u32 {
        self.kernel.external()[0]
    }
}
