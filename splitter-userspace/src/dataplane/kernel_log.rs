//! What the kernel programs say, which is rare, into the log of the process.

use aya::Ebpf;
use aya_log::{EbpfLogger, Level};

use super::error::DataplaneError;

/// The level to load the programs with, for [`aya_log::LEVEL`]. What the log would not show is not
/// in the loaded programs at all.
pub(super) fn level() -> u8 {
    let wanted = tracing::enabled!(target: "splitter::kernel", tracing::Level::WARN);
    if wanted { Level::Warn as u8 } else { 0 }
}

/// The reader of the ring. As long as it lives the programs have somewhere to write to.
pub(super) struct KernelLog(Box<dyn FnMut() + Send>);

impl KernelLog {
    /// Takes the ring; call it when the programs are loaded.
    pub(super) fn new(ebpf: &mut Ebpf) -> Result<Self, DataplaneError> {
        let logger = EbpfLogger::init(ebpf);
        let mut logger = logger.map_err(|error| DataplaneError::Mismatch(error.to_string()))?;
        Ok(KernelLog(Box::new(move || logger.flush())))
    }

    /// Moves what was said since the last time to the log. Does not wait.
    pub(super) fn flush(&mut self) {
        (self.0)();
    }
}

impl Drop for KernelLog {
    fn drop(&mut self) {
        self.flush();
    }
}
