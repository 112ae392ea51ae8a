//! The NICs that lead outside: which they are, what is attached to them, and when they change.

use std::path::Path;

use aya::Ebpf;
use aya::programs::links::FdLink;
use splitter_common::MAX_EXTERNAL;

use super::attach::{Attached, XdpKind, attach_xdp, lent, release_others, replace_xdp};
use super::error::DataplaneError;
use super::kernel::KernelOptions;
use super::netlink::{self, Interface};

/// The NICs in use. XDP is detached from them on drop, unless it is kept.
pub(super) struct Nics {
    /// By name; empty: those of the default routes.
    named: Vec<String>,
    kind: Option<XdpKind>,
    keep: bool,
    all: Vec<Nic>,
}

struct Nic {
    interface: Interface,
    /// None: no XDP on it, or not ours yet.
    attached: Option<Attached>,
    /// By which the instance that is being taken over has XDP on it.
    waiting: Option<FdLink>,
}

/// What became of NICs when others took their place.
#[derive(Debug, Default)]
pub struct NicChange {
    /// Their names before.
    pub before: Vec<String>,
    /// Their names now.
    pub now: Vec<String>,
    /// Why XDP is not on one where it should be, or still on one where it should not.
    pub faults: Vec<DataplaneError>,
}

impl Nics {
    /// Attaches XDP to each of them, if it is asked for; nothing stays attached when one refuses.
    /// What an instance that still runs has lent below `beside` waits for [`Self::settle`].
    pub(super) fn attach(
        ebpf: &mut Ebpf,
        options: &KernelOptions,
        beside: Option<&Path>,
        external: Vec<Interface>,
        dir: &Path,
    ) -> Result<Nics, DataplaneError> {
        let mut nics = Nics {
            named: options.interfaces.clone(),
            kind: options.xdp,
            keep: options.keep_attached,
            all: Vec::new(),
        };
        let policed: &[Interface] = if options.xdp.is_some() {
            &external
        } else {
            &[]
        };
        release_others(dir, policed)?;
        let mut taken = Vec::new();
        for nic in policed {
            let waiting = beside.map(|dir| lent(dir, nic)).transpose()?.flatten();
            taken.push(match waiting {
                Some(link) => (None, Some(link)),
                None => (Some(nics.attach_one(ebpf, nic, dir)?), None),
            });
        }
        // Kept only when none can fail any more, and when it is settled who serves.
        let mut taken = taken.into_iter();
        for interface in external {
            let (attached, waiting) = taken.next().unwrap_or_default();
            let attached = attached.map(|attached| match beside {
                None => nics.kept(attached),
                Some(_) => Ok(attached),
            });
            nics.all.push(Nic {
                interface,
                attached: attached.transpose()?,
                waiting,
            });
        }
        Ok(nics)
    }

    /// Pins what is attached, for a successor to take over.
    pub(super) fn lend(&mut self) -> Result<(), DataplaneError> {
        for attached in self.all.iter().filter_map(|nic| nic.attached.as_ref()) {
            attached.make_room()?;
        }
        self.each(Attached::keep)
    }

    /// The opposite, as the successor is gone.
    pub(super) fn take_back(&mut self) -> Result<(), DataplaneError> {
        match self.keep {
            true => Ok(()),
            false => self.each(Attached::unkeep),
        }
    }

    fn each(
        &mut self,
        change: impl Fn(Attached) -> Result<Attached, DataplaneError>,
    ) -> Result<(), DataplaneError> {
        for nic in &mut self.all {
            nic.attached = nic.attached.take().map(&change).transpose()?;
        }
        Ok(())
    }

    /// Puts our program in the place of that of the instance which has been taken over; pins go to
    /// `dir` from now on. Gives what went wrong: there XDP ends with the other instance.
    pub(super) fn settle(&mut self, ebpf: &mut Ebpf, dir: &Path) -> Vec<DataplaneError> {
        let mut faults = Vec::new();
        let mut all = std::mem::take(&mut self.all);
        for nic in &mut all {
            let mut attached = nic.attached.take().map(Ok);
            if let Some(link) = nic.waiting.take() {
                attached = Some(replace_xdp(ebpf, &nic.interface, link, dir));
            }
            let settled = attached.map(|attached| {
                let mut attached = attached?;
                attached.move_to(dir);
                self.kept(attached)
            });
            match settled.transpose() {
                Ok(settled) => nic.attached = settled,
                Err(error) => faults.push(error),
            }
        }
        self.all = all;
        faults
    }

    /// Moves to the NICs that lead outside now; none when they are the same as before.
    pub(super) fn follow(
        &mut self,
        ebpf: &mut Ebpf,
        dir: &Path,
    ) -> Result<Option<NicChange>, DataplaneError> {
        let now = match external(&self.named) {
            // A route that is away for a moment, or for good: nothing says what would be better.
            Err(DataplaneError::NoDefaultRoute | DataplaneError::NoInterface(_)) => {
                return Ok(None);
            }
            now => now?,
        };
        let is = |nic: &Interface| (nic.index, nic.name.clone());
        if now
            .iter()
            .map(is)
            .eq(self.all.iter().map(|nic| is(&nic.interface)))
        {
            return Ok(None);
        }
        let names = |nics: &Nics| nics.modes().into_iter().map(|(name, _)| name).collect();
        let mut change = NicChange {
            before: names(self),
            ..NicChange::default()
        };
        let mut before = std::mem::take(&mut self.all);
        for interface in now {
            let known = before
                .iter()
                .position(|nic| is(&nic.interface) == is(&interface));
            let attached = match known {
                Some(place) => before.swap_remove(place).attached,
                None => self.attach_new(ebpf, &interface, dir, &mut change.faults),
            };
            self.all.push(Nic {
                interface,
                attached,
                waiting: None,
            });
        }
        // Last, so that no packet passes unseen meanwhile.
        for gone in before.into_iter().filter_map(|nic| nic.attached) {
            change.faults.extend(gone.release().err());
        }
        change.now = names(self);
        Ok(Some(change))
    }

    /// Detaches from all of them, for the sake of an error that is being told already.
    pub(super) fn release(self) {
        for attached in self.all.into_iter().filter_map(|nic| nic.attached) {
            let _ = attached.release();
        }
    }

    /// The numbers.
    pub(super) fn indexes(&self) -> Vec<u32> {
        self.all.iter().map(|nic| nic.interface.index).collect()
    }

    /// Those on which XDP runs.
    pub(super) fn policed(&self) -> Vec<Interface> {
        let policed = self
            .all
            .iter()
            .filter(|nic| nic.attached.is_some() || nic.waiting.is_some());
        policed.map(|nic| nic.interface.clone()).collect()
    }

    /// The names, with the way in which XDP runs there.
    pub(super) fn modes(&self) -> Vec<(String, &'static str)> {
        let kind = self.kind.map_or("none", XdpKind::name);
        let modes = self.all.iter().map(|nic| {
            let runs = nic.attached.is_some() || nic.waiting.is_some();
            let mode = if runs { kind } else { "none" };
            (nic.interface.name.clone(), mode)
        });
        modes.collect()
    }

    fn attach_new(
        &self,
        ebpf: &mut Ebpf,
        nic: &Interface,
        dir: &Path,
        faults: &mut Vec<DataplaneError>,
    ) -> Option<Attached> {
        self.kind?;
        let attached = self.attach_one(ebpf, nic, dir);
        match attached.and_then(|attached| self.kept(attached)) {
            Ok(attached) => Some(attached),
            Err(error) => {
                faults.push(error);
                None
            }
        }
    }

    fn attach_one(
        &self,
        ebpf: &mut Ebpf,
        nic: &Interface,
        dir: &Path,
    ) -> Result<Attached, DataplaneError> {
        attach_xdp(ebpf, nic, self.kind.unwrap_or(XdpKind::Native), dir)
    }

    fn kept(&self, attached: Attached) -> Result<Attached, DataplaneError> {
        match self.keep {
            true => attached.keep(),
            false => Ok(attached),
        }
    }
}

/// The NICs of these names, or those of the default routes.
pub(super) fn external(names: &[String]) -> Result<Vec<Interface>, DataplaneError> {
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
