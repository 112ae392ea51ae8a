//! The hooks of a cgroup: attached beside others, never in their place, and only as long as the process
//! lives. Without it the Endpoints would grow stale, and the cluster's own answer is always there.

use std::collections::BTreeSet;
use std::fmt;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use aya::Ebpf;
use aya::programs::cgroup_sock_addr::CgroupSockAddrLink;
use aya::programs::{CgroupAttachMode, CgroupSockAddr, Program, ProgramError};

use super::super::error::DataplaneError;
use super::super::sys;
use super::Cgroup;

/// The programs with the kernel's numbers of their hooks, in the order of attaching: who translates what
/// comes back is there before anything is sent elsewhere.
pub const PROGRAMS: [(&str, u32); 8] = [
    ("recvmsg4", 19),
    ("recvmsg6", 20),
    ("getpeername4", 29),
    ("getpeername6", 30),
    ("sendmsg4", 14),
    ("sendmsg6", 15),
    ("connect4", 10),
    ("connect6", 11),
];

/// Whether connections of processes are split (`--connect-hooks`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookMode {
    /// As long as a Service asks for it and nobody else has programs there.
    #[default]
    Auto,
    /// Always, also beside programs of others.
    On,
    /// Never.
    Off,
}

impl HookMode {
    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            HookMode::Auto => "auto",
            HookMode::On => "on",
            HookMode::Off => "off",
        }
    }
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookState {
    /// Told not to.
    Off,
    /// No Service asks for it.
    Waiting,
    /// The programs run.
    Attached {
        /// For the processes below this cgroup.
        cgroup: PathBuf,
        /// Programs of others on the same hooks, by their numbers.
        beside: Vec<u32>,
    },
    /// They do not, though a Service asks for it.
    Aside {
        /// Why, and what to do.
        why: String,
    },
}

impl HookState {
    /// The name in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            HookState::Off => "off",
            HookState::Waiting => "waiting",
            HookState::Attached { .. } => "attached",
            HookState::Aside { .. } => "aside",
        }
    }

    /// Every name.
    pub const NAMES: [&str; 4] = ["off", "waiting", "attached", "aside"];
}

impl fmt::Display for HookState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HookState::Off => f.write_str("off"),
            HookState::Waiting => f.write_str("not attached, as no Service is split there"),
            HookState::Attached { cgroup, beside } => {
                write!(f, "attached to {}", cgroup.display())?;
                match beside.is_empty() {
                    true => Ok(()),
                    false => write!(f, " beside programs of others ({})", list(beside)),
                }
            }
            HookState::Aside { why } => write!(f, "standing aside: {why}"),
        }
    }
}

/// The hooks of one process.
pub struct Hooks {
    mode: HookMode,
    /// Where, or why not.
    cgroup: Result<Cgroup, String>,
    /// Why the programs cannot be used, if so.
    refused: Option<String>,
    /// The numbers of our programs.
    own: BTreeSet<u32>,
    links: Vec<CgroupSockAddrLink>,
    state: HookState,
}

impl Hooks {
    /// Not attached yet. `loaded` has the numbers of the programs, or why there are none.
    pub fn new(mode: HookMode, cgroup: Option<&Path>, loaded: Result<Vec<u32>, String>) -> Self {
        let (own, refused) = match loaded {
            Ok(own) => (own.into_iter().collect(), None),
            Err(why) => (BTreeSet::new(), Some(why)),
        };
        Hooks {
            mode,
            cgroup: match mode {
                HookMode::Off => Err("off".to_owned()),
                HookMode::Auto | HookMode::On => Cgroup::open(cgroup),
            },
            refused,
            own,
            links: Vec::new(),
            state: match mode {
                HookMode::Off => HookState::Off,
                HookMode::Auto | HookMode::On => HookState::Waiting,
            },
        }
    }

    /// What is.
    pub fn state(&self) -> &HookState {
        &self.state
    }

    /// The numbers of the programs that are attached.
    pub fn attached(&self) -> Vec<u32> {
        match self.links.is_empty() {
            true => Vec::new(),
            false => self.own.iter().copied().collect(),
        }
    }

    /// Attaches or detaches as it should be now. `wanted`: a Service is split; `kin`: programs of other
    /// instances of ours, which make way for this one. Gives whether anything has changed.
    pub fn follow(&mut self, ebpf: &mut Ebpf, wanted: bool, kin: &[u32]) -> bool {
        let next = self.next(ebpf, wanted, kin);
        let changed = self.state != next;
        self.state = next;
        changed
    }

    /// Detaches for good.
    pub fn release(&mut self) {
        self.mode = HookMode::Off;
        self.detach();
        self.state = HookState::Off;
    }

    fn next(&mut self, ebpf: &mut Ebpf, wanted: bool, kin: &[u32]) -> HookState {
        if self.mode == HookMode::Off {
            return HookState::Off;
        }
        if !wanted && self.mode == HookMode::Auto {
            self.detach();
            return HookState::Waiting;
        }
        let beside = match self.beside(kin) {
            Ok(beside) => beside,
            Err(why) => {
                self.detach();
                return HookState::Aside { why };
            }
        };
        if let Err(why) = self.attach(ebpf) {
            return HookState::Aside { why };
        }
        HookState::Attached {
            cgroup: self
                .cgroup
                .as_ref()
                .map_or(PathBuf::new(), |it| it.path.clone()),
            beside,
        }
    }

    /// The programs of others that there may be.
    fn beside(&self, kin: &[u32]) -> Result<Vec<u32>, String> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        let cgroup = self.cgroup.as_ref().map_err(Clone::clone)?;
        let mut all = others(cgroup)?;
        all.retain(|id| !self.own.contains(id) && !kin.contains(id));
        match self.mode {
            HookMode::Auto if !all.is_empty() => Err(occupied(&cgroup.path, &all)),
            _ => Ok(all),
        }
    }

    fn attach(&mut self, ebpf: &mut Ebpf) -> Result<(), String> {
        if !self.links.is_empty() {
            return Ok(());
        }
        let cgroup = self.cgroup.as_ref().map_err(Clone::clone)?;
        for (name, _) in PROGRAMS {
            match attach(ebpf, name, cgroup) {
                Ok(link) => self.links.push(link),
                Err(error) => {
                    let path = cgroup.path.display();
                    let why = format!("the hook {name} of {path} takes no program: {error}");
                    self.detach();
                    return Err(why);
                }
            }
        }
        Ok(())
    }

    /// In the opposite order.
    fn detach(&mut self) {
        while self.links.pop().is_some() {}
    }
}

fn attach(
    ebpf: &mut Ebpf,
    name: &'static str,
    cgroup: &Cgroup,
) -> Result<CgroupSockAddrLink, DataplaneError> {
    let missing = || DataplaneError::Mismatch(format!("there is no program {name}"));
    let program = ebpf.program_mut(name).ok_or_else(missing)?;
    let Program::CgroupSockAddr(program) = program else {
        return Err(missing());
    };
    let attached = link(program, cgroup);
    attached.map_err(|error| {
        DataplaneError::NoHook(match error {
            ProgramError::SyscallError(error) => error.io_error.to_string(),
            error => error.to_string(),
        })
    })
}

fn link(program: &mut CgroupSockAddr, cgroup: &Cgroup) -> Result<CgroupSockAddrLink, ProgramError> {
    // No flag: programs that are attached by links are beside each other always.
    let id = program.attach(cgroup.dir.as_fd(), CgroupAttachMode::Single)?;
    program.take_link(id)
}

/// The programs that run on our hooks for processes of a cgroup, by their numbers.
pub fn others(cgroup: &Cgroup) -> Result<Vec<u32>, String> {
    let mut found = BTreeSet::new();
    for (name, hook) in PROGRAMS {
        let there = sys::programs_on(cgroup.dir.as_fd(), hook);
        let path = cgroup.path.display();
        let failed = |error| format!("cannot see who has the hook {name} of {path}: {error}");
        found.extend(there.map_err(failed)?);
    }
    Ok(found.into_iter().collect())
}

fn occupied(cgroup: &Path, all: &[u32]) -> String {
    format!(
        "another owner has programs on the hooks of {} ({}; `bpftool prog show id {}`), which are left \
         alone; --connect-hooks on attaches beside them",
        cgroup.display(),
        list(all),
        all.first().copied().unwrap_or_default()
    )
}

fn list(ids: &[u32]) -> String {
    let ids: Vec<_> = ids.iter().map(u32::to_string).collect();
    ids.join(", ")
}
