//! What a node gives for steering, found without attaching or pinning anything.

use std::path::Path;

use super::attach;
use super::caps;
use super::connect::{Cgroup, others};
use super::error::DataplaneError;
use super::kernel::{self, ProgramReport};
use super::pin;

/// What was found.
#[derive(Debug)]
pub struct Examined {
    /// Kernel release.
    pub kernel: String,
    /// Whether the capabilities are there.
    pub capabilities: Result<(), DataplaneError>,
    /// Whether the pin directory is on a BPF file system.
    pub bpffs: Result<(), DataplaneError>,
    /// The process that has the pin directory.
    pub holder: Option<u32>,
    /// The numbers of the NICs on which XDP programs of ours were left attached.
    pub kept: Vec<u32>,
    /// Whether the kernel takes the maps and the programs.
    pub programs: Result<Vec<ProgramReport>, DataplaneError>,
    /// Programs of others on the hooks for connections of processes, or why ours cannot be there.
    pub hooks: Result<Vec<u32>, String>,
}

/// Looks at the kernel, at this process's rights and at the pin directory below `base`. Has the
/// kernel make the maps and verify the programs once, and lets go of them. `cgroup`: where the hooks for
/// connections of processes are, if not for the whole node.
pub fn examine(base: &Path, cgroup: Option<&Path>) -> Examined {
    let capabilities = caps::check();
    let dirs = pin::existing(base).unwrap_or_default();
    let held = dirs.iter().find_map(|dir| match pin::lock(dir) {
        Err(DataplaneError::InUse { pid, .. }) => Some(pid),
        _ => None,
    });
    let rehearsed = match &capabilities {
        Ok(()) => kernel::rehearse(),
        Err(_) => caps::check().map(|()| (Vec::new(), Ok(Vec::new()))),
    };
    let (programs, verified) = match rehearsed {
        Ok((programs, hooks)) => (Ok(programs), hooks.map_err(|error| error.to_string())),
        Err(error) => (
            Err(error),
            Err("the kernel programs are not to be had".to_owned()),
        ),
    };
    let hooks = verified.and_then(|_| {
        let mut others = others(&Cgroup::open(cgroup)?)?;
        let ours = pin::hooks(base);
        others.retain(|id| !ours.contains(id));
        Ok(others)
    });
    Examined {
        kernel: kernel::release(),
        capabilities,
        bpffs: pin::on_bpffs(base),
        holder: held,
        kept: dirs.iter().flat_map(|dir| attach::kept_on(dir)).collect(),
        programs,
        hooks,
    }
}
