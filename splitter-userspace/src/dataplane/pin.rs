//! The pin directory: finding one that fits, and holding it against a second process.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use aya::maps::{Array, Map, MapData};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use splitter_common::{Config, SCHEMA};

use super::attach::LINK_PREFIX;
use super::error::DataplaneError;
use super::spec::MAPS;
use super::sys;

/// Directories of one schema that are looked at: the plain one, then those that took its place
/// because something else lay there.
const TRIES: u32 = 16;

/// The symbolic link whose target is the instance's admin address.
const ADMIN: &str = "admin";

/// The symbolic link whose target has the numbers of the programs that the instance has on hooks of a
/// cgroup, so that no other instance of ours takes them for somebody else's.
const HOOKS: &str = "hooks";

/// A pin directory that this process holds. Given up on drop; what is pinned in it stays, unless
/// a successor has taken over.
#[derive(Debug)]
pub struct PinDir {
    path: PathBuf,
    /// Whether a successor serves, so that nobody needs what is here any more.
    superseded: bool,
    /// Its lock is what says that the directory is in use; the kernel drops it with the process.
    _lock: File,
}

impl PinDir {
    /// Takes the directory of this schema below `base`; makes it if need be.
    ///
    /// Maps that are there are checked first. A directory with any map that does not fit is left
    /// alone and the next name is taken: `v1`, `v1-2`, and so on.
    ///
    /// With the directory of an instance that is being taken over, those that processes hold are
    /// left alone too, for the next name. One that is gone already has left its directory, with the
    /// links in it, to whoever takes it.
    ///
    /// # Errors
    /// When `base` is not on a BPF file system, another process holds the directory, or the kernel
    /// says no.
    pub fn take(base: &Path, beside: Option<&Path>) -> Result<PinDir, DataplaneError> {
        on_bpffs(base)?;
        let beside = beside.filter(|beside| is_of(base, beside));
        for path in candidates(base) {
            fs::create_dir_all(&path).map_err(pin_error("cannot make the directory", &path))?;
            let lock = match lock(&path) {
                Err(DataplaneError::InUse { .. }) if beside.is_some() => continue,
                lock => lock?,
            };
            if beside.is_some_and(|beside| *beside != path) {
                forget_links(&path)?;
            }
            match misfit(&path)? {
                None => {
                    return Ok(PinDir {
                        path,
                        superseded: false,
                        _lock: lock,
                    });
                }
                Some(why) => {
                    let dir = path.display();
                    tracing::warn!(%dir, %why, "pinned maps do not fit, taking another directory");
                }
            }
        }
        Err(DataplaneError::Mismatch(format!(
            "{TRIES} directories below {} hold maps of other layouts; remove those that nobody uses",
            base.display()
        )))
    }

    /// Leaves word of where the instance answers for `splitter status` and the like. A BPF file
    /// system holds no text but the target of a symbolic link, so that is what it is.
    ///
    /// # Errors
    /// When the link cannot be made.
    pub fn announce(&self, admin: SocketAddr) -> Result<(), DataplaneError> {
        self.leave_word(ADMIN, &admin.to_string())
    }

    /// Leaves word of the programs that are on hooks of a cgroup.
    ///
    /// # Errors
    /// When the link cannot be made.
    pub fn announce_hooks(&self, programs: &[u32]) -> Result<(), DataplaneError> {
        if programs.is_empty() {
            let _there_may_be_none = fs::remove_file(self.path.join(HOOKS));
            return Ok(());
        }
        let ids: Vec<_> = programs.iter().map(u32::to_string).collect();
        self.leave_word(HOOKS, &ids.join(","))
    }

    fn leave_word(&self, name: &str, text: &str) -> Result<(), DataplaneError> {
        // Made aside and moved, so that there is never none.
        let (new, link) = (self.path.join(format!("{name}_new")), self.path.join(name));
        let _ = fs::remove_file(&new);
        let made = symlink(text, &new).and_then(|()| fs::rename(&new, &link));
        made.map_err(pin_error("cannot make the link", &link))
    }

    /// Where things are pinned.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that a successor serves. With the directory that it has beside this one, the two
    /// change places in one step, so that what is pinned under the usual name is always whole, and
    /// that of the instance which serves.
    ///
    /// # Errors
    /// When they cannot change places. Both stay where they are then.
    pub fn supersede(&mut self, successor: Option<&Path>) -> Result<(), DataplaneError> {
        self.superseded = true;
        let Some(successor) = successor else {
            return Ok(());
        };
        renameat_with(CWD, &self.path, CWD, successor, RenameFlags::EXCHANGE)
            .map_err(|error| pin_error("cannot change places with", successor)(error.into()))?;
        self.path = successor.to_owned();
        // The successor has left word of the same address.
        let _ = fs::remove_file(self.path.join(ADMIN));
        Ok(())
    }

    /// Takes the usual name from a former instance that is gone without leaving it to this one, as
    /// when it was killed. Gives where its directory is now; none when it holds it still.
    ///
    /// # Errors
    /// When the two cannot change places. Both stay where they are then.
    pub fn inherit(&mut self, former: &Path) -> Result<Option<Inherited>, DataplaneError> {
        let lock = match lock(former) {
            Err(DataplaneError::InUse { .. }) => return Ok(None),
            lock => lock?,
        };
        renameat_with(CWD, &self.path, CWD, former, RenameFlags::EXCHANGE)
            .map_err(|error| pin_error("cannot change places with", former)(error.into()))?;
        let path = std::mem::replace(&mut self.path, former.to_owned());
        Ok(Some(Inherited { path, _lock: lock }))
    }

    /// Notes that the directory has taken the place of the former instance's.
    pub fn moved_to(&mut self, path: &Path) {
        self.path = path.to_owned();
    }
}

impl Drop for PinDir {
    fn drop(&mut self) {
        // Nobody answers there any more, and no program of this process is anywhere.
        for word in [ADMIN, HOOKS] {
            let _ = fs::remove_file(self.path.join(word));
        }
        if self.superseded
            && let Err(error) = remove(&self.path, false)
        {
            tracing::warn!(%error, "the maps of this instance stay pinned");
        }
    }
}

/// What a former instance left that is gone.
#[derive(Debug)]
pub struct Inherited {
    path: PathBuf,
    _lock: File,
}

impl Inherited {
    /// Removes it. Links live on where somebody else has them.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn remove(self) -> Result<(), DataplaneError> {
        remove(&self.path, false).map(|_| ())
    }
}

/// Removes the pins of links that an instance left here which gave way and then crashed. Nothing is
/// detached by it: the running instance has the same links.
fn forget_links(dir: &Path) -> Result<(), DataplaneError> {
    let entries = fs::read_dir(dir).map_err(pin_error("cannot read", dir))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().map(|name| name.to_string_lossy());
        if name.is_some_and(|name| name.starts_with(LINK_PREFIX)) {
            fs::remove_file(&path).map_err(pin_error("cannot remove", &path))?;
        }
    }
    Ok(())
}

/// Whether `dir` is one of the directories of this schema below `base`.
pub(super) fn is_of(base: &Path, dir: &Path) -> bool {
    candidates(base).any(|path| path == *dir)
}

/// Where the instance that holds the pin directory `path` says that it answers.
pub fn admin(path: &Path) -> Option<SocketAddr> {
    let target = fs::read_link(path.join(ADMIN)).ok()?;
    target.to_str()?.parse().ok()
}

/// The programs that instances below `base` say they have on hooks of a cgroup.
pub(super) fn hooks(base: &Path) -> Vec<u32> {
    let targets = candidates(base).filter_map(|path| fs::read_link(path.join(HOOKS)).ok());
    let ids = targets.flat_map(|target| {
        let text = target.to_string_lossy().into_owned();
        let ids = text.split(',').filter_map(|id| id.parse().ok());
        ids.collect::<Vec<u32>>()
    });
    ids.collect()
}

/// The directories below `base` that hold a data plane, in use or not.
///
/// # Errors
/// When there is none.
pub fn existing(base: &Path) -> Result<Vec<PathBuf>, DataplaneError> {
    let found: Vec<_> = candidates(base).filter(|path| path.is_dir()).collect();
    if found.is_empty() {
        return Err(DataplaneError::Nothing {
            dir: base.to_owned(),
        });
    }
    Ok(found)
}

/// Removes everything of ours below `base`: links (which detaches the programs), maps and the
/// directories. Gives the paths that are gone.
///
/// # Errors
/// When there is nothing, a process still uses it, or the kernel says no.
pub fn detach(base: &Path) -> Result<Vec<PathBuf>, DataplaneError> {
    let mut gone = Vec::new();
    for dir in existing(base)? {
        let held = lock(&dir)?;
        gone.append(&mut remove(&dir, true)?);
        drop(held);
    }
    gone.sort();
    Ok(gone)
}

/// Removes a directory with what is ours in it. Gives what is gone. A link is detached by force
/// where `detaching`; else it lives as long as somebody else has it.
fn remove(dir: &Path, detaching: bool) -> Result<Vec<PathBuf>, DataplaneError> {
    let mut gone = Vec::new();
    for entry in fs::read_dir(dir).map_err(pin_error("cannot read", dir))? {
        let entry = entry.map_err(pin_error("cannot read", dir))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let ours = name.starts_with(LINK_PREFIX) || name == ADMIN || name == HOOKS;
        if ours || MAPS.iter().any(|spec| spec.name == name) {
            let path = entry.path();
            if detaching && name.starts_with(LINK_PREFIX) {
                sys::detach_link(&path).map_err(pin_error("cannot detach", &path))?;
            }
            fs::remove_file(&path).map_err(pin_error("cannot remove", &path))?;
            gone.push(path);
        }
    }
    fs::remove_dir(dir).map_err(pin_error("cannot remove", dir))?;
    gone.push(dir.to_owned());
    Ok(gone)
}

fn candidates(base: &Path) -> impl Iterator<Item = PathBuf> {
    (1..=TRIES).map(move |n| match n {
        1 => base.join(format!("v{SCHEMA}")),
        n => base.join(format!("v{SCHEMA}-{n}")),
    })
}

pub(super) fn lock(path: &Path) -> Result<File, DataplaneError> {
    let dir = File::open(path).map_err(pin_error("cannot open", path))?;
    match dir.try_lock() {
        Ok(()) => Ok(dir),
        Err(TryLockError::WouldBlock) => Err(DataplaneError::InUse {
            dir: path.to_owned(),
            pid: owner(path).unwrap_or(0),
        }),
        Err(TryLockError::Error(error)) => Err(pin_error("cannot lock", path)(error)),
    }
}

/// The process that a pinned data plane says it belongs to.
pub fn owner(path: &Path) -> Option<u32> {
    let data = MapData::from_pin(path.join("config")).ok()?;
    let config = Array::<_, Config>::try_from(Map::Array(data)).ok()?;
    config.get(&0, 0).ok().map(|config| config.pid)
}

/// Why the maps that are pinned in a directory cannot be taken over, if so.
fn misfit(path: &Path) -> Result<Option<String>, DataplaneError> {
    for spec in &MAPS {
        let file = path.join(spec.name);
        let difference = spec.pinned_difference(path);
        if let Some(why) = difference.map_err(pin_error("cannot open", &file))? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// Checks the kind of file system that a path is or would be on.
pub(super) fn on_bpffs(base: &Path) -> Result<(), DataplaneError> {
    let mounts = Path::new("/proc/thread-self/mountinfo");
    let text = fs::read_to_string(mounts).map_err(pin_error("cannot read", mounts))?;
    let base = std::path::absolute(base).map_err(pin_error("not a path:", base))?;
    match file_system(&text, &base) {
        Some("bpf") => Ok(()),
        other => Err(DataplaneError::NotBpffs {
            found: other.unwrap_or("nothing is mounted").to_owned(),
            dir: base,
        }),
    }
}

/// The kind of file system at a path, of the mounts that `mountinfo` lists.
fn file_system<'a>(mountinfo: &'a str, path: &Path) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for line in mountinfo.lines() {
        let (mount, kind) = line.split_once(" - ")?;
        let point = Path::new(mount.split(' ').nth(4)?);
        let depth = point.components().count();
        // Of two mounts at one point the later one is on top.
        if path.starts_with(point) && best.is_none_or(|(deepest, _)| depth >= deepest) {
            best = Some((depth, kind.split(' ').next()?));
        }
    }
    best.map(|(_, kind)| kind)
}

pub(super) fn pin_error(
    what: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> DataplaneError + use<> {
    let path = path.to_owned();
    move |source| DataplaneError::Pin { what, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 0:1 / / rw - ext4 /dev/vda rw
25 22 0:22 / /sys rw,nosuid - sysfs sysfs rw
30 25 0:27 / /sys/fs/bpf rw,nosuid shared:9 - bpf bpf rw,mode=700
31 22 0:28 / /mnt rw - tmpfs tmpfs rw
32 22 0:29 / /mnt rw - bpf bpf rw
";

    #[test]
    fn the_deepest_and_latest_mount_counts() {
        let kind = |path| file_system(MOUNTS, Path::new(path));
        assert_eq!(kind("/sys/fs/bpf/splitter"), Some("bpf"));
        assert_eq!(kind("/sys/fs/bpffs"), Some("sysfs"));
        assert_eq!(kind("/var/splitter"), Some("ext4"));
        assert_eq!(kind("/mnt/a"), Some("bpf"));
    }

    #[test]
    fn a_directory_elsewhere_is_refused_with_the_remedy() {
        let text = match PinDir::take(Path::new("/proc/splitter"), None) {
            Err(error) => error.to_string(),
            Ok(_) => String::new(),
        };
        assert!(text.contains("mount -t bpf bpf /sys/fs/bpf"), "{text}");
        assert!(text.contains("proc"), "{text}");
    }
}
