//! Loading the kernel programs and their maps.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aya::programs::{Program, ProgramError};
use aya::{Ebpf, EbpfError, EbpfLoader};

use splitter_common::MAX_EXTERNAL;

use super::attach::{Attached, XdpKind, attach_lookup, attach_xdp};
use super::caps;
use super::counters::Counters;
use super::error::DataplaneError;
use super::maps::Maps;
use super::netlink::{self, Interface};
use super::object::object;
use super::pin::{PinDir, pin_error};
use super::policy::Policy;
use super::pools::Pools;
use super::prefixes::{LeftOut, Prefixes, Ranges};
use super::spec::MAPS;
use super::splits::Splits;
use super::tables::ClassTables;

/// What to load and where to attach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelOptions {
    /// XDP on the NICs; none: sk_lookup only.
    pub xdp: Option<XdpKind>,
    /// The NICs; empty: those of the default routes.
    pub interfaces: Vec<String>,
    /// Where maps are pinned, default `/sys/fs/bpf/splitter`.
    pub pin_dir: PathBuf,
    /// Leave the programs attached when the process ends.
    pub keep_attached: bool,
}

/// What loading did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Kernel release.
    pub kernel: String,
    /// The directory with the pinned maps.
    pub pin_dir: PathBuf,
    /// The programs in use.
    pub programs: Vec<ProgramReport>,
    /// The NICs, with the way in which XDP runs on them (`none` where it does not).
    pub interfaces: Vec<(String, &'static str)>,
}

/// One loaded program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramReport {
    /// Its name.
    pub name: &'static str,
    /// Its number, as `bpftool prog show id` takes it.
    pub id: u32,
    /// Instructions that the verifier went through; 0 where the kernel does not say (before 5.16).
    pub verified: u32,
}

/// The loaded programs and their maps. Detached on drop, unless they are kept.
pub struct Kernel {
    /// The sockets.
    pub pools: Pools,
    /// What the programs counted.
    pub counters: Arc<Counters>,
    splits: Splits,
    tables: ClassTables,
    report: Report,
    external: Vec<Interface>,
    ebpf: Ebpf,
    _attached: Vec<Attached>,
    // Last, so that the directory is held until everything else is gone.
    dir: PinDir,
}

impl Kernel {
    /// Loads, checks and attaches the programs. Until [`Self::set_ranges`] and `pools.publish` were
    /// called they let everything pass.
    ///
    /// # Errors
    /// Says what is missing and what to do about it; nothing stays attached then.
    pub fn load(options: &KernelOptions) -> Result<Kernel, DataplaneError> {
        let object = object().map_err(DataplaneError::NoPrograms)?;
        caps::check()?;
        let external = external(&options.interfaces)?;
        let dir = PinDir::take(&options.pin_dir)?;
        let mut ebpf = open(object, dir.path())?;
        check(&Maps(&mut ebpf), dir.path())?;
        // Before any map is taken: the code names maps by descriptors, which must be open still.
        let mut programs = vec![load(&mut ebpf, "steer")?];
        if options.xdp.is_some() {
            programs.push(load(&mut ebpf, "ingress")?);
        }
        let mut maps = Maps(&mut ebpf);
        let splits = Splits::of_maps(&mut maps)?;
        let tables = ClassTables::new(&mut maps)?;
        let pools = Pools::new(&mut maps)?;
        let counters = Arc::new(Counters::new(&mut maps)?);
        splits.clear();
        let attached = attach(&mut ebpf, options, &external, dir.path())?;
        let mode = options.xdp.map_or("none", XdpKind::name);
        let interfaces = external.iter().map(|nic| (nic.name.clone(), mode));
        let report = Report {
            kernel: release(),
            pin_dir: dir.path().to_owned(),
            programs,
            interfaces: interfaces.collect(),
        };
        Ok(Kernel {
            splits,
            pools,
            counters,
            tables,
            report,
            external,
            ebpf,
            _attached: attached,
            dir,
        })
    }

    /// The weights and the decisions, which outlive this.
    pub fn splits(&self) -> Splits {
        self.splits.clone()
    }

    /// What loading did.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Leaves word of the instance's admin address in the pin directory, for as long as this lives.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn announce(&self, admin: SocketAddr) -> Result<(), DataplaneError> {
        self.dir.announce(admin)
    }

    /// The NICs.
    pub fn external(&self) -> &[Interface] {
        &self.external
    }

    /// Puts what is known of the addresses around the node into force, for all programs at once.
    /// Gives the ranges that found no place. The interfaces that lead outside are those that were
    /// named when loading.
    ///
    /// # Errors
    /// When a map cannot be written; then what was in force stays so.
    pub fn set_ranges(
        &mut self,
        ranges: &Ranges,
        policy: &Policy,
    ) -> Result<Vec<LeftOut>, DataplaneError> {
        let external: Vec<_> = self.external.iter().map(|nic| nic.index).collect();
        self.set_ranges_on(ranges, policy, &external)
    }

    /// The same with other interfaces that lead outside, by their numbers. XDP is not attached to
    /// them by this.
    ///
    /// # Errors
    /// As [`Self::set_ranges`].
    pub fn set_ranges_on(
        &mut self,
        ranges: &Ranges,
        policy: &Policy,
        external: &[u32],
    ) -> Result<Vec<LeftOut>, DataplaneError> {
        let (prefixes, left_out) = Prefixes::new(ranges);
        self.tables.replace(&prefixes, &policy.settings(external))?;
        Ok(left_out)
    }

    /// A loaded program by its name, for test runs.
    pub fn program(&self, name: &str) -> Option<&Program> {
        self.ebpf.program(name)
    }
}

/// Attaches everything; nothing stays attached when a part cannot be.
fn attach(
    ebpf: &mut Ebpf,
    options: &KernelOptions,
    nics: &[Interface],
    dir: &Path,
) -> Result<Vec<Attached>, DataplaneError> {
    let mut attached = Vec::new();
    if let Some(kind) = options.xdp {
        for nic in nics {
            attached.push(attach_xdp(ebpf, nic, kind, dir)?);
        }
    }
    attached.push(attach_lookup(ebpf, dir)?);
    match options.keep_attached {
        true => attached.into_iter().map(Attached::keep).collect(),
        false => Ok(attached),
    }
}

/// The NICs of these names, or those of the default routes.
fn external(names: &[String]) -> Result<Vec<Interface>, DataplaneError> {
    let all = netlink::interfaces()?;
    if names.is_empty() {
        let defaults = netlink::default_interfaces()?;
        let found: Vec<_> = all
            .into_iter()
            .filter(|nic| defaults.contains(&nic.index))
            .collect();
        return match found.is_empty() {
            true => Err(DataplaneError::NoDefaultRoute),
            false => Ok(found),
        };
    }
    let find = |name: &String| {
        let found = all.iter().find(|nic| nic.name == *name);
        found
            .cloned()
            .ok_or_else(|| DataplaneError::NoInterface(name.clone()))
    };
    let found: Vec<_> = names.iter().map(find).collect::<Result<_, _>>()?;
    match found.len() > MAX_EXTERNAL {
        true => Err(DataplaneError::TooManyInterfaces {
            found: found.len(),
            limit: MAX_EXTERNAL,
        }),
        false => Ok(found),
    }
}

/// Parses the object, and makes or opens its maps below `dir`.
fn open(object: &[u8], dir: &Path) -> Result<Ebpf, DataplaneError> {
    let mut loader = EbpfLoader::new();
    for spec in &MAPS {
        loader.map_pin_path(spec.name, dir.join(spec.name));
    }
    // The kernel makes no map of more CPUs than it could have. It is not pinned: its entries are
    // threads that serve this process's programs.
    loader.map_max_entries("cpus", possible_cpus());
    loader
        .load(object)
        .map_err(|error| DataplaneError::Refused {
            program: "object with the",
            reason: chain(&error),
            kernel: release(),
        })
}

/// How many CPUs this machine can have.
fn possible_cpus() -> u32 {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit(['-', ',']).next();
    let last: Option<u32> = last.and_then(|number| number.parse().ok());
    last.map_or(1, |last| last.saturating_add(1))
}

/// An error of aya with its causes.
fn chain(error: &EbpfError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Checks the maps; those that were just made and do not fit are not left pinned.
fn check(maps: &Maps<'_>, dir: &Path) -> Result<(), DataplaneError> {
    let result = maps.check();
    if result.is_err() {
        for spec in &MAPS {
            if !matches!(spec.pinned_difference(dir), Ok(None)) {
                let path = dir.join(spec.name);
                fs::remove_file(&path).map_err(pin_error("cannot remove", &path))?;
            }
        }
    }
    result
}

fn load(ebpf: &mut Ebpf, name: &'static str) -> Result<ProgramReport, DataplaneError> {
    let missing = || DataplaneError::Mismatch(format!("there is no program {name}"));
    let program = ebpf.program_mut(name).ok_or_else(missing)?;
    let loaded = match program {
        Program::Xdp(program) => program.load(),
        Program::SkLookup(program) => program.load(),
        _ => return Err(missing()),
    };
    loaded.map_err(|error| DataplaneError::Refused {
        program: name,
        reason: refusal(&error),
        kernel: release(),
    })?;
    let info = program.info().ok();
    Ok(ProgramReport {
        name,
        id: info.as_ref().map_or(0, aya::programs::ProgramInfo::id),
        verified: info
            .and_then(|info| info.verified_instruction_count())
            .unwrap_or(0),
    })
}

/// The kernel's reason, with the end of the verifier's log, where it says what it did not like.
fn refusal(error: &ProgramError) -> String {
    let ProgramError::LoadError {
        io_error,
        verifier_log,
    } = error
    else {
        return error.to_string();
    };
    let log = verifier_log.to_string();
    let lines: Vec<_> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = lines[lines.len().saturating_sub(6)..].join("\n  ");
    match tail.is_empty() {
        true => io_error.to_string(),
        false => format!("{io_error}; the verifier's last words:\n  {tail}\n"),
    }
}

fn release() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_owned()
}
