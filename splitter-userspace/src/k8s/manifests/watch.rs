//! When to read the manifests again.

use std::hash::{BuildHasher, Hash};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::scan;

/// How long nothing may change before a burst of changes counts as over.
pub const QUIET: Duration = Duration::from_millis(25);

/// How long a burst that does not end may hold back what it has changed so far.
pub const BURST_LIMIT: Duration = Duration::from_secs(1);

/// How often the directory is compared with its last state without being told: for network file
/// systems, links to files elsewhere, a directory that was deleted and made again, and systems
/// that have no watches left.
pub const POLL: Duration = Duration::from_secs(2);

/// Why a directory cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the thread that watches the manifests: {0}")]
pub struct WatchError(#[from] std::io::Error);

/// Tells when something below a directory has changed and come to rest.
///
/// Start it before the first [`super::Manifests::reload`], so that no change falls in between.
pub struct ManifestWatcher {
    changed: Arc<Notify>,
    signals: SyncSender<Signal>,
}

enum Signal {
    Changed,
    Stop,
}

impl ManifestWatcher {
    /// Watches `directory`, which need not exist yet, from a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started. That the system refuses to watch is none: the directory
    /// is then compared every [`POLL`], and a warning is logged.
    pub fn start(directory: impl Into<PathBuf>) -> Result<Self, WatchError> {
        let changed = Arc::new(Notify::new());
        let (signals, inbox) = sync_channel(1);
        let mut watch = Watch {
            directory: directory.into(),
            signals: signals.clone(),
            changed: Arc::clone(&changed),
            watcher: None,
            watched: None,
            fingerprint: None,
        };
        // Before the thread starts: what changes after this call is seen.
        watch.arm();
        watch.fingerprint = Some(fingerprint(&watch.directory));
        thread::Builder::new()
            .name("manifests".to_owned())
            .spawn(move || watch.run(&inbox))?;
        Ok(ManifestWatcher { changed, signals })
    }

    /// Waits until something has changed since the last call returned and [`QUIET`] has passed
    /// without a further change, or [`BURST_LIMIT`] since the first. May be cancelled: no change
    /// is lost.
    pub async fn changed(&mut self) {
        self.changed.notified().await;
    }
}

impl Drop for ManifestWatcher {
    fn drop(&mut self) {
        // A full channel wakes the thread too, which then sees that it is the last holder.
        let _ = self.signals.try_send(Signal::Stop);
    }
}

struct Watch {
    directory: PathBuf,
    signals: SyncSender<Signal>,
    changed: Arc<Notify>,
    watcher: Option<RecommendedWatcher>,
    /// Which directory the watcher looks at: a new one of the same name needs a new watcher.
    watched: Option<u64>,
    fingerprint: Option<u64>,
}

impl Watch {
    fn run(&mut self, inbox: &Receiver<Signal>) {
        loop {
            let told = match inbox.recv_timeout(POLL) {
                Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Signal::Changed) => true,
                Err(RecvTimeoutError::Timeout) => false,
            };
            if Arc::strong_count(&self.changed) == 1 || (told && !settle(inbox)) {
                return;
            }
            self.arm();
            let now = fingerprint(&self.directory);
            if self.fingerprint.replace(now) != Some(now) || told {
                self.changed.notify_one();
            }
        }
    }

    /// Sees to it that the directory that now has this name is watched.
    fn arm(&mut self) {
        let now = identity(&self.directory);
        if now == self.watched {
            return;
        }
        self.watcher = None;
        self.watched = now;
        if now.is_none() {
            return;
        }
        match watcher(&self.directory, self.signals.clone()) {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => tracing::warn!(
                directory = %self.directory.display(), %error,
                "cannot watch the manifests, comparing them every {POLL:?} instead"
            ),
        }
    }
}

/// Waits for the end of a burst. False when the watch is to stop.
fn settle(inbox: &Receiver<Signal>) -> bool {
    let start = Instant::now();
    while start.elapsed() < BURST_LIMIT {
        match inbox.recv_timeout(QUIET) {
            Ok(Signal::Changed) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

fn watcher(directory: &Path, signals: SyncSender<Signal>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // An error may stand for lost events.
        if event.map_or(true, |event| is_change(&event)) {
            match signals.try_send(Signal::Changed) {
                // Full: one is waiting already. Disconnected: nobody is interested any more.
                Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
            }
        }
    })?;
    watcher.watch(directory, RecursiveMode::Recursive)?;
    Ok(watcher)
}

/// Reading is reported too, ours included; only what can change the content counts.
fn is_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => event.need_rescan(),
        _ => true,
    }
}

/// Which directory has this name now.
fn identity(directory: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(directory).ok()?;
    // A new directory may get the number of a deleted one, but not its birth.
    let born = metadata.created().ok();
    Some(hash(&(metadata.dev(), metadata.ino(), born)))
}

/// Differs when a file came, went or was written, and once more when it was then left alone: a
/// file that looked unfinished is looked at again.
fn fingerprint(directory: &Path) -> u64 {
    let scan = scan::scan(directory);
    let files = scan.files.iter();
    let files: Vec<_> = files
        .map(|(name, (_, stamp))| (name, stamp, stamp.is_settled()))
        .collect();
    let faults: Vec<_> = scan.faults.iter().map(|(name, _)| name).collect();
    hash(&(files, faults))
}

fn hash(value: &impl Hash) -> u64 {
    foldhash::fast::FixedState::default().hash_one(value)
}
