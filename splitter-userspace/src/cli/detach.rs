//! `splitter detach`: takes away what instances left in the kernel.

use std::io::Write as _;

use clap::Args;

use super::steer_args::PinArgs;
use crate::dataplane;

/// Arguments of `splitter detach`.
#[derive(Args, Clone, Debug)]
pub struct DetachArgs {
    /// Which pin directory.
    #[command(flatten)]
    pub pin: PinArgs,
}

impl DetachArgs {
    /// Removes the programs, maps and directories of ours, and says which.
    ///
    /// # Errors
    /// When there is nothing, an instance still runs, or the kernel says no.
    pub fn run(self) -> anyhow::Result<()> {
        let base = &self.pin.pin_dir;
        let gone = dataplane::detach(base)?;
        let mut out = std::io::stdout().lock();
        for path in gone {
            writeln!(out, "removed {}", path.display())?;
        }
        // What is left in it is somebody else's; then it stays.
        if std::fs::remove_dir(base).is_ok() {
            writeln!(out, "removed {}", base.display())?;
        }
        Ok(())
    }
}
