//! Composition.

use crate::config::Settings;

/// Serves until told to stop.
///
/// # Errors
/// Always, on this branch: the proxy that it composes is not part of it.
pub fn run(settings: Settings) -> anyhow::Result<()> {
    anyhow::bail!(
        "nothing serves {} yet: this build has no proxy",
        settings.manifests.display()
    )
}
