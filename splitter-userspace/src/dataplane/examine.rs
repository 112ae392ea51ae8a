//! What a node gives for steering, found without attaching or pinning anything.

use std::path::Path;

use super::attach;
use super::caps;
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
}

/// Looks at the kernel, at this process's rights and at the pin directory below `base`. Has the
/// kernel make the maps and verify the programs once, and lets go of them.
pub fn examine(base: &Path) -> Examined {
    let capabilities = caps::check();
    let dirs = pin::existing(base).unwrap_or_default();
    let held = dirs.iter().find_map(|dir| match pin::lock(dir) {
        Err(DataplaneError::InUse { pid, .. }) => Some(pid),
        _ => None,
    });
    let programs = match &capabilities {
        Ok(()) => kernel::rehearse(),
        Err(_) => caps::check().map(|()| Vec::new()),
    };
    Examined {
        kernel: kernel::release(),
        capabilities,
        bpffs: pin::on_bpffs(base),
        holder: held,
        kept: dirs.iter().flat_map(|dir| attach::kept_on(dir)).collect(),
        programs,
    }
}
