//! Loading the kernel programs and their maps.

mod balance;
mod hooks;

pub use balance::Forwarding;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aya::maps::MapError;
use aya::programs::{Program, ProgramError};
use aya::{Ebpf, EbpfError, EbpfLoader};

use splitter_common::Settings;

use super::attach::{Attached, XdpKind, attach_lookup};
use super::balance::{BalanceOptions, BalanceTables, Egress, TrafficReader};
use super::caps;
use super::connect::{ConnectCounter, ConnectTables, HookMode, Hooks, PROGRAMS, share_asked};
use super::counters::Counters;
use super::error::DataplaneError;
use super::kernel_log::{self, KernelLog};
use super::maps::Maps;
use super::nics::{self, NicChange, Nics};
use super::object::object;
use super::pin::{self, Inherited, PinDir, pin_error};
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
    /// The pin directory of a running instance that is being taken over. Until [`Kernel::settle`]
    /// everything of it stays as it is.
    pub beside: Option<PathBuf>,
    /// Whether connections of processes to Services' own addresses are split.
    pub hooks: HookMode,
    /// For the processes below this cgroup; none: of the whole node.
    pub cgroup: Option<PathBuf>,
    /// Whether and how XDP forwards what needs no user space.
    pub balance: BalanceOptions,
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
    /// Number of the map with the weights, by which the kernel tells it from all others.
    pub splits: u32,
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
    /// What the programs for connections of processes counted.
    pub connects: Arc<ConnectCounter>,
    splits: Splits,
    tables: ClassTables,
    services: ConnectTables,
    hooks: Hooks,
    /// What XDP has forwarded.
    pub forwarded: Arc<TrafficReader>,
    balanced: BalanceTables,
    balance: BalanceOptions,
    /// Why the programs cannot forward, if so.
    unable: Option<String>,
    egress: Egress,
    /// Whether any Service is split where processes connect.
    split: bool,
    report: Report,
    nics: Nics,
    log: KernelLog,
    ebpf: Ebpf,
    keep: bool,
    /// None only when it could not be kept.
    lookup: Option<Attached>,
    /// The directory that this one's changes places with, once that is settled.
    beside: Option<PathBuf>,
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
        Kernel::load_object(object().map_err(DataplaneError::NoPrograms)?, options)
    }

    /// The same with programs of the caller's: what the checks say about others than ours.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_object(object: &[u8], options: &KernelOptions) -> Result<Kernel, DataplaneError> {
        caps::check()?;
        let external = nics::external(&options.interfaces)?;
        let dir = PinDir::take(&options.pin_dir, options.beside.as_deref())?;
        // Nobody is beside it any more whose directory could be taken.
        let beside = options.beside.clone().filter(|it| it != dir.path());
        if let Some(beside) = &beside
            && let Err(error) = share_asked(beside, dir.path())
        {
            tracing::warn!(%error, "open sockets will see who they were given, and not whom they asked");
        }
        balance::share(beside.as_deref(), dir.path());
        // Before any map is taken: the code names maps by descriptors, which must be open still.
        let (mut ebpf, mut programs, unable) = balance::police(object, options, dir.path())?;
        let hooks = hooks::load(&mut ebpf, options, &mut programs);
        let egress = balance::load(&mut ebpf, options, &mut programs, unable.is_none());
        let mut maps = Maps(&mut ebpf);
        let splits_id = maps.id("splits")?;
        let splits = Splits::of_maps(&mut maps)?;
        let tables = ClassTables::new(&mut maps)?;
        let pools = Pools::new(&mut maps)?;
        let counters = Arc::new(Counters::new(&mut maps)?);
        let connects = Arc::new(ConnectCounter::new(&mut maps)?);
        let services = ConnectTables::new(&mut maps)?;
        let balanced = balance::tables(&mut maps, beside.as_deref())?;
        splits.clear();
        let log = KernelLog::new(&mut ebpf)?;
        let mut lookup = attach_lookup(&mut ebpf, dir.path())?;
        let nics = Nics::attach(&mut ebpf, options, beside.as_deref(), external, dir.path())?;
        if options.keep_attached && beside.is_none() {
            lookup = match lookup.keep() {
                Ok(lookup) => lookup,
                Err(error) => {
                    nics.release();
                    return Err(error);
                }
            };
        }
        let report = Report {
            kernel: release(),
            pin_dir: dir.path().to_owned(),
            programs,
            interfaces: nics.modes(),
            splits: splits_id,
        };
        Ok(Kernel {
            splits,
            pools,
            counters,
            connects,
            tables,
            services,
            hooks,
            forwarded: Arc::clone(&balanced.traffic),
            balanced,
            balance: options.balance,
            unable,
            egress,
            split: false,
            report,
            nics,
            log,
            ebpf,
            keep: options.keep_attached,
            lookup: Some(lookup),
            beside,
            dir,
        })
    }

    /// Pins what a successor needs. Gives the pin directory.
    ///
    /// # Errors
    /// When a link cannot be pinned; XDP has ended on its NIC then.
    pub fn lend(&mut self) -> Result<&Path, DataplaneError> {
        self.nics.lend()?;
        Ok(self.dir.path())
    }

    /// The opposite: the successor is gone, and nothing has changed.
    ///
    /// # Errors
    /// When a link cannot be unpinned.
    pub fn take_back(&mut self) -> Result<(), DataplaneError> {
        self.nics.take_back()
    }

    /// Leaves the place to a successor that serves: what is pinned goes with this value. With a
    /// directory of its own the two change places.
    ///
    /// # Errors
    /// When they cannot.
    pub fn supersede(&mut self, successor: Option<&Path>) -> Result<(), DataplaneError> {
        self.dir.supersede(successor)
    }

    /// Where the maps are, if they are to take the place of those of a running instance.
    pub fn staged(&self) -> Option<&Path> {
        let base = self.dir.path().parent()?;
        let beside = self.beside.as_deref()?;
        pin::is_of(base, beside).then(|| self.dir.path())
    }

    /// Ends the taking over, when the other instance has stopped accepting, or is gone: its XDP
    /// programs make room for ours. `moved`: the pin directories have changed places; where they
    /// have not, and nobody holds the other one any more, they do now. Gives what went wrong.
    pub fn settle(&mut self, moved: bool) -> Vec<DataplaneError> {
        let staged = self.staged().is_some();
        let Some(beside) = self.beside.take() else {
            return Vec::new();
        };
        let mut faults = Vec::new();
        let mut inherited = None;
        match moved {
            true => self.dir.moved_to(&beside),
            false if staged => match self.dir.inherit(&beside) {
                Ok(left) => inherited = left,
                Err(error) => faults.push(error),
            },
            false => {}
        }
        self.report.pin_dir = self.dir.path().to_owned();
        faults.extend(self.nics.settle(&mut self.ebpf, self.dir.path()));
        // Last: by its links the XDP programs are replaced.
        if let Some(Err(error)) = inherited.map(Inherited::remove) {
            faults.push(error);
        }
        if self.keep
            && let Some(mut lookup) = self.lookup.take()
        {
            lookup.move_to(self.dir.path());
            match lookup.keep() {
                Ok(lookup) => self.lookup = Some(lookup),
                Err(error) => faults.push(error),
            }
        }
        self.report.interfaces = self.nics.modes();
        faults
    }

    /// The weights and the decisions, which outlive this.
    pub fn splits(&self) -> Splits {
        self.splits.clone()
    }

    /// Puts what the programs said into the log. Does not wait.
    pub fn flush_log(&mut self) {
        self.log.flush();
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

    /// The numbers of the NICs that lead outside.
    pub fn external(&self) -> Vec<u32> {
        self.nics.indexes()
    }

    /// Moves to the NICs that lead outside now, where they are others than before: those of the
    /// default routes, or of the names that were given. Where none can be found the former ones
    /// stay. The caller puts the ranges into force again, by which all programs learn it.
    ///
    /// # Errors
    /// The kernel's, when it does not say which NICs there are. One that does not take XDP is no
    /// error: its packets are not policed, and its callers are steered all the same.
    pub fn follow_nics(&mut self) -> Result<Option<NicChange>, DataplaneError> {
        let change = self.nics.follow(&mut self.ebpf, self.dir.path())?;
        self.report.interfaces = self.nics.modes();
        Ok(change)
    }

    /// Puts what is known of the addresses around the node into force, for all programs at once.
    /// Gives the ranges that found no place.
    ///
    /// # Errors
    /// When a map cannot be written; then what was in force stays so.
    pub fn set_ranges(
        &mut self,
        ranges: &Ranges,
        policy: &Policy,
    ) -> Result<Vec<LeftOut>, DataplaneError> {
        self.set_ranges_on(ranges, policy, &self.external())
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
        let settings = Settings {
            own4: prefixes.own4(),
            ..policy.settings(external)
        };
        self.tables.replace(&prefixes, &settings)?;
        Ok(left_out)
    }

    /// A loaded program by its name, for test runs.
    pub fn program(&self, name: &str) -> Option<&Program> {
        self.ebpf.program(name)
    }
}

/// Programs, if the kernel takes all of them.
type Verified = Result<Vec<ProgramReport>, DataplaneError>;

/// Has the kernel make the maps and verify the programs, and lets go of both: nothing is pinned or
/// attached. Takes some 20 MiB and a second meanwhile. The programs for connections of processes are one
/// by themselves, as the others do without them.
pub(super) fn rehearse() -> Result<(Vec<ProgramReport>, Verified), DataplaneError> {
    let object = object().map_err(DataplaneError::NoPrograms)?;
    let attempt = |forwards| {
        let mut ebpf = open(object, None, forwards)?;
        Maps(&mut ebpf).check()?;
        let programs = ["steer", "ingress"].map(|name| load(&mut ebpf, name));
        let programs: Result<Vec<_>, DataplaneError> = programs.into_iter().collect();
        programs.map(|programs| (ebpf, programs))
    };
    let loaded = match balance::is_new_enough(&release()) {
        true => attempt(true).or_else(|_| attempt(false)),
        false => attempt(false),
    };
    let (mut ebpf, programs) = loaded?;
    let hooks = PROGRAMS.iter().map(|(name, _)| load(&mut ebpf, name));
    let hooks = hooks.collect();
    Ok((programs, hooks))
}

/// Parses the object, and makes its maps, or opens them below `dir`. With `forwards` the programs can
/// forward.
fn open(object: &[u8], dir: Option<&Path>, forwards: bool) -> Result<Ebpf, DataplaneError> {
    let (level, forwards) = (kernel_log::level(), u8::from(forwards));
    let mut loader = EbpfLoader::new();
    loader.override_global(aya_log::LEVEL, &level, true);
    loader.override_global("L4_FORWARDS", &forwards, true);
    for (spec, dir) in MAPS.iter().zip(dir.iter().cycle()) {
        loader.map_pin_path(spec.name, dir.join(spec.name));
    }
    // The kernel makes no map of more CPUs than it could have. It is not pinned: its entries are
    // threads that serve this process's programs.
    loader.map_max_entries("cpus", possible_cpus());
    loader
        .load(object)
        .map_err(|error| match without_btf(&error) {
            Some(map) => DataplaneError::NoBtf { map },
            None => DataplaneError::Refused {
                program: "object with the",
                reason: chain(&error),
                kernel: release(),
            },
        })
}

/// The map that the kernel would not make for want of type information. When it has taken none of
/// the object's, aya asks for the map all the same, with types of nothing, and the kernel says
/// that this makes no sense. Nothing else of a map of ours does not.
fn without_btf(error: &EbpfError) -> Option<&'static str> {
    let EbpfError::MapError(MapError::CreateError { name, io_error }) = error else {
        return None;
    };
    let invalid = io_error.raw_os_error() == Some(libc::EINVAL);
    let spec = MAPS.iter().find(|spec| spec.name == *name);
    spec.filter(|spec| invalid && spec.needs_btf())
        .map(|spec| spec.name)
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
        Program::CgroupSockAddr(program) => program.load(),
        Program::SchedClassifier(program) => program.load(),
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

pub(super) fn release() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_owned()
}
