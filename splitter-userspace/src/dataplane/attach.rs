//! Attaching the programs by links, and keeping the links.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use aya::Ebpf;
use aya::programs::links::{FdLink, LinkError, PinnedLink};
use aya::programs::sk_lookup::SkLookupLink;
use aya::programs::tc::{SchedClassifierLink, TcAttachOptions};
use aya::programs::xdp::XdpLink;
use aya::programs::{
    LinkOrder, ProgramError, SchedClassifier, SkLookup, TcAttachType, Xdp, XdpError, XdpMode,
};

use super::error::{DataplaneError, XDP_MTU};
use super::netlink::{self, Interface};
use super::pin::pin_error;
use super::sys;
use super::xdp_features::xdp_features;

/// What the pins of links begin with.
pub(super) const LINK_PREFIX: &str = "link_";

/// How XDP runs on a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpKind {
    /// In the driver.
    Native,
    /// In the kernel's stack, on any interface, much slower: only where it is asked for by name.
    Generic,
}

impl XdpKind {
    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            XdpKind::Native => "native",
            XdpKind::Generic => "generic",
        }
    }

    fn mode(self) -> XdpMode {
        match self {
            XdpKind::Native => XdpMode::Driver,
            XdpKind::Generic => XdpMode::Skb,
        }
    }
}

/// A program that stays attached as long as this lives, or longer where it is kept.
pub(super) struct Attached {
    link: Link,
    /// Where the link is pinned if it is kept.
    pin: PathBuf,
}

enum Link {
    Lookup(SkLookupLink),
    Xdp(XdpLink),
    Out(SchedClassifierLink),
    Pinned,
}

impl Attached {
    /// Removes what lies where the link is to be pinned. A pin that fails costs the link, so that
    /// what can be known before is found out before.
    pub(super) fn make_room(&self) -> Result<(), DataplaneError> {
        if matches!(self.link, Link::Pinned) {
            return Ok(());
        }
        match fs::remove_file(&self.pin) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(pin_error("cannot make room at", &self.pin)(error))
            }
            _ => Ok(()),
        }
    }

    /// Pins the link, so that it outlives this process.
    pub(super) fn keep(self) -> Result<Attached, DataplaneError> {
        let failed = pin_error("cannot pin a link at", &self.pin);
        let link: FdLink = match self.link {
            Link::Lookup(link) => link.into(),
            Link::Xdp(link) => match link.try_into() {
                Ok(link) => link,
                // Attached without a link, as very old drivers need it.
                Err(error) => return Err(failed(io::Error::other(LinkError::to_string(&error)))),
            },
            Link::Out(link) => match link.try_into() {
                Ok(link) => link,
                Err(error) => return Err(failed(io::Error::other(LinkError::to_string(&error)))),
            },
            Link::Pinned => return Ok(self),
        };
        match link.pin(&self.pin) {
            Ok(_) => Ok(Attached {
                link: Link::Pinned,
                pin: self.pin,
            }),
            Err(error) => Err(failed(io::Error::other(error.to_string()))),
        }
    }
}

impl Attached {
    /// Has the pin, if there is to be one, lie in another directory from now on. One that is
    /// pinned already has moved with its directory, or stays.
    pub(super) fn move_to(&mut self, dir: &Path) {
        if let Some(name) = self.pin.file_name() {
            self.pin = dir.join(name);
        }
    }

    /// Takes the pin away, so that the link ends with this process.
    pub(super) fn unkeep(self) -> Result<Attached, DataplaneError> {
        let failed = pin_error("cannot use the link", &self.pin);
        let link = match self.link {
            Link::Pinned => unpinned(&self.pin)?.map(XdpLink::try_from),
            Link::Lookup(_) | Link::Xdp(_) | Link::Out(_) => return Ok(self),
        };
        match link {
            Some(Ok(link)) => Ok(Attached {
                link: Link::Xdp(link),
                pin: self.pin,
            }),
            Some(Err(error)) => Err(failed(io::Error::other(error.to_string()))),
            None => Err(failed(io::ErrorKind::NotFound.into())),
        }
    }

    /// Detaches, whether it is kept or not.
    pub(super) fn release(self) -> Result<(), DataplaneError> {
        match self.link {
            Link::Pinned => detached(&self.pin),
            Link::Lookup(_) | Link::Xdp(_) | Link::Out(_) => Ok(()),
        }
    }
}

/// Detaches XDP from NICs on which a former process left it and that are not among `nics`.
pub(super) fn release_others(dir: &Path, nics: &[Interface]) -> Result<(), DataplaneError> {
    let entries = fs::read_dir(dir).map_err(pin_error("cannot read", dir))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let wanted: Vec<_> = nics.iter().map(|nic| xdp_pin(dir, nic)).collect();
    let prefix = format!("{LINK_PREFIX}xdp_");
    let is_link = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with(&prefix))
    };
    for path in paths.filter(|path| is_link(path) && !wanted.contains(path)) {
        detached(&path)?;
    }
    Ok(())
}

/// Where the link of a NIC is pinned.
fn xdp_pin(dir: &Path, nic: &Interface) -> PathBuf {
    dir.join(format!("{LINK_PREFIX}xdp_{}", nic.index))
}

/// The numbers of the NICs whose links are pinned below `dir`.
pub(super) fn kept_on(dir: &Path) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let prefix = format!("{LINK_PREFIX}xdp_");
    let number = |name: &str| name.strip_prefix(&prefix)?.parse().ok();
    entries
        .filter_map(|entry| number(&entry.file_name().to_string_lossy()))
        .collect()
}

/// The link by which a running instance has XDP on a NIC, if it has left it below `dir`. It stays
/// pinned there.
pub(super) fn lent(dir: &Path, nic: &Interface) -> Result<Option<FdLink>, DataplaneError> {
    let pin = xdp_pin(dir, nic);
    match pin.exists() {
        true => opened(&pin).map(|link| Some(link.into())),
        false => Ok(None),
    }
}

/// Puts our program in the place of the one that runs by `link` on a NIC, in one step.
pub(super) fn replace_xdp(
    ebpf: &mut Ebpf,
    nic: &Interface,
    link: FdLink,
    dir: &Path,
) -> Result<Attached, DataplaneError> {
    let program = program(ebpf)?;
    let link = XdpLink::try_from(link).map_err(|error| refused_because(nic, error.to_string()))?;
    let link = program
        .attach_to_link(link)
        .and_then(|id| program.take_link(id));
    Ok(Attached {
        link: Link::Xdp(link.map_err(|error| refused_because(nic, text(&error)))?),
        pin: xdp_pin(dir, nic),
    })
}

/// Attaches the XDP program to a NIC. A link that a former process left pinned is taken over, so
/// that no packet passes unseen.
pub(super) fn attach_xdp(
    ebpf: &mut Ebpf,
    nic: &Interface,
    kind: XdpKind,
    dir: &Path,
) -> Result<Attached, DataplaneError> {
    let pin = xdp_pin(dir, nic);
    let program = program(ebpf)?;
    let old = unpinned(&pin)?.and_then(|link| XdpLink::try_from(link).ok());
    let attached = match old {
        Some(link) => program.attach_to_link(link),
        None => match nic.xdp {
            Some(id) => return Err(occupied(nic, id)),
            None => program.attach_to_if_index(nic.index, kind.mode()),
        },
    };
    let link = attached.and_then(|id| program.take_link(id));
    let link = link.map_err(|error| refused(nic, &error))?;
    Ok(Attached {
        link: Link::Xdp(link),
        pin,
    })
}

/// Attaches the sk_lookup program to the network namespace of the calling thread. The link of a
/// former process goes only when the new one is there.
pub(super) fn attach_lookup(ebpf: &mut Ebpf, dir: &Path) -> Result<Attached, DataplaneError> {
    let reason = |error: String| DataplaneError::NoLookup { reason: error };
    let namespace = Path::new("/proc/thread-self/ns/net");
    let namespace = File::open(namespace).map_err(pin_error("cannot open", namespace))?;
    let program: &mut SkLookup = ebpf
        .program_mut("steer")
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| DataplaneError::Mismatch("there is no program steer".to_owned()))?;
    let link = program
        .attach(namespace)
        .and_then(|id| program.take_link(id));
    let link = link.map_err(|error| reason(text(&error)))?;
    let pin = dir.join(format!("{LINK_PREFIX}steer"));
    detached(&pin)?;
    Ok(Attached {
        link: Link::Lookup(link),
        pin,
    })
}

/// Attaches the program for answers to a NIC's way out, beside those of others. The link of a former
/// process goes only when the new one is there. Such links are there from kernel 6.6 on.
pub(super) fn attach_egress(
    ebpf: &mut Ebpf,
    nic: &Interface,
    dir: &Path,
) -> Result<Attached, DataplaneError> {
    let missing = || DataplaneError::Mismatch("there is no program egress".to_owned());
    let program = ebpf.program_mut("egress").ok_or_else(missing)?;
    let program: &mut SchedClassifier = program.try_into().map_err(|_| missing())?;
    let options = TcAttachOptions::TcxOrder(LinkOrder::default());
    let link = program
        .attach_with_options(&nic.name, TcAttachType::Egress, options)
        .and_then(|id| program.take_link(id));
    let link = link.map_err(|error| DataplaneError::NoHook(text(&error)))?;
    let pin = dir.join(format!("{LINK_PREFIX}egress_{}", nic.index));
    detached(&pin)?;
    Ok(Attached {
        link: Link::Out(link),
        pin,
    })
}

fn program(ebpf: &mut Ebpf) -> Result<&mut Xdp, DataplaneError> {
    ebpf.program_mut("ingress")
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| DataplaneError::Mismatch("there is no program ingress".to_owned()))
}

/// The link that is pinned at a path, if there is one; the pin is gone then.
fn unpinned(path: &Path) -> Result<Option<FdLink>, DataplaneError> {
    if !path.exists() {
        return Ok(None);
    }
    opened(path)?
        .unpin()
        .map(Some)
        .map_err(pin_error("cannot unpin", path))
}

/// Detaches the link that is pinned at a path, if there is one, and removes the pin. The program does
/// not run any more when this returns; without the explicit order, the kernel lets go of a link some
/// time after its last pin is gone, and a NIC would seem occupied until then.
fn detached(path: &Path) -> Result<(), DataplaneError> {
    if !path.exists() {
        return Ok(());
    }
    sys::detach_link(path).map_err(pin_error("cannot detach", path))?;
    fs::remove_file(path).map_err(pin_error("cannot unpin", path))
}

fn opened(path: &Path) -> Result<PinnedLink, DataplaneError> {
    PinnedLink::from_pin(path).map_err(|error| match error {
        LinkError::SyscallError(error) => pin_error("cannot open the link", path)(error.io_error),
        error => pin_error("cannot open the link", path)(io::Error::other(error.to_string())),
    })
}

fn occupied(nic: &Interface, id: u32) -> DataplaneError {
    DataplaneError::Occupied {
        interface: nic.name.clone(),
        id,
    }
}

/// Why an interface does not take the program. Somebody may have been quicker.
fn refused(nic: &Interface, error: &ProgramError) -> DataplaneError {
    let now = netlink::interfaces().unwrap_or_default();
    let now = now.into_iter().find(|other| other.index == nic.index);
    match now.and_then(|nic| nic.xdp) {
        Some(id) => occupied(nic, id),
        None => refused_because(nic, text(error)),
    }
}

fn refused_because(nic: &Interface, reason: String) -> DataplaneError {
    let driver = fs::read_link(format!("/sys/class/net/{}/device/driver", nic.name));
    let driver = driver
        .ok()
        .and_then(|path| path.file_name().map(|name| name.to_owned()));
    // Our program takes packets in pieces; not every driver has that for XDP. One that has no XDP at
    // all would not have it with smaller packets either.
    let features = xdp_features(nic.index).ok().flatten();
    if nic.mtu > XDP_MTU && features.is_none_or(|it| it.basic) {
        return DataplaneError::MtuTooLarge {
            interface: nic.name.clone(),
            mtu: nic.mtu,
            limit: XDP_MTU,
            reason,
        };
    }
    DataplaneError::NoNativeXdp {
        interface: nic.name.clone(),
        driver: driver.map_or("unknown".to_owned(), |name| {
            name.to_string_lossy().into_owned()
        }),
        mtu: nic.mtu,
        reason,
    }
}

/// The kernel's own reason in an error of aya.
fn text(error: &ProgramError) -> String {
    match error {
        ProgramError::SyscallError(error) => error.io_error.to_string(),
        ProgramError::XdpError(XdpError::NetlinkError(error)) => error.to_string(),
        error => error.to_string(),
    }
}
