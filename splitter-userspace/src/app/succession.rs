//! One instance after the other: what is taken from a running one at the start, and given to the
//! next at the end.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::UnixListener;
use tokio::sync::watch;

use super::hand_over::{Event, Giver, HandOverError, Listener, Shelf, Taken};
use super::privileges;
use super::steering::Steering;
use crate::admin::{self, AdminState, Readiness};
use crate::config::{AfterHandOver, HandOver};
use crate::telemetry::{Counter, HAND_OVERS, Registry};

/// For which idle client connections are kept after everything was handed over, in case a request
/// is on its way on them; at most half of the drain time.
pub const IDLE_GRACE: Duration = Duration::from_secs(10);

/// Asks a running instance for what it has; none when there is none, or none is asked for.
///
/// # Errors
/// When there is one that does not hand over.
pub async fn take_over(settings: &HandOver) -> anyhow::Result<Option<Taken>> {
    let Some(path) = settings.path.clone() else {
        return Ok(None);
    };
    let taken = blocking(move || Taken::ask(&path)).await?;
    if taken.is_some() {
        tracing::info!("taking over from a running instance, which goes on meanwhile");
    }
    Ok(taken)
}

/// Says that this instance serves, and takes what is left of the other one's.
pub async fn settle(taken: Taken, steering: &mut Steering, readiness: &Readiness) {
    let staged = steering.staged();
    let moved = match blocking(move || taken.settle(staged)).await {
        Ok(moved) => {
            tracing::info!("the former instance finishes what it has in hand");
            moved
        }
        Err(error) => {
            // It is gone, or hangs: what it had is served here all the same.
            tracing::warn!(
                error = format!("{error:#}"),
                "the former instance says nothing"
            );
            false
        }
    };
    steering.settle(moved, readiness);
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HandOverError> + Send + 'static,
) -> anyhow::Result<T> {
    Ok(tokio::task::spawn_blocking(work).await??)
}

/// Waits for a successor, and for what becomes of it.
pub struct Succession {
    giver: Option<Giver>,
    /// Whether one is starting.
    asked: bool,
    after: AfterHandOver,
    /// Has the admin address be left.
    leave_admin: watch::Sender<bool>,
    results: [Counter; 2],
}

impl Succession {
    /// Waits at the path, if there is one. `leave_admin` gets `true` when the admin address is the
    /// successor's.
    ///
    /// # Errors
    /// When it cannot be waited there.
    pub fn start(
        settings: &HandOver,
        admin: (SocketAddr, Option<OwnedFd>),
        listeners: Vec<(Listener, Vec<OwnedFd>)>,
        leave_admin: watch::Sender<bool>,
        registry: &Registry,
    ) -> anyhow::Result<Self> {
        let giver = match (&settings.path, admin) {
            (Some(path), (asked, Some(socket))) => {
                let admin = (asked, socket);
                let shelf = Shelf { admin, listeners };
                // Its thread passes on what is open already.
                Some(privileges::without(|| Giver::start(path, shelf))?)
            }
            _ => None,
        };
        Ok(Succession {
            giver,
            asked: false,
            after: settings.after,
            leave_admin,
            results: ["given", "broken-off"]
                .map(|result| registry.counter(&HAND_OVERS, &[("result", result)])),
        })
    }

    /// What happens next. Never, where nobody is waited for.
    pub async fn next(&mut self) -> Event {
        match &mut self.giver {
            Some(giver) => giver.next().await,
            None => std::future::pending().await,
        }
    }

    /// Whether a successor is starting.
    pub fn is_expected(&self) -> bool {
        self.asked
    }

    /// Does what an event asks for. Gives whether a successor serves.
    pub fn meet(&mut self, event: Event, steering: &mut Steering) -> bool {
        match event {
            Event::Asked(answer) => {
                tracing::info!("a successor is starting");
                self.asked = true;
                // It may be gone already; then that comes next.
                let _ = answer.send(steering.lend());
                false
            }
            Event::Gone => {
                if std::mem::take(&mut self.asked) {
                    self.results[1].inc();
                    steering.take_back();
                }
                false
            }
            Event::Ready(pin_dir, answer) => {
                tracing::info!("a successor serves; finishing what is in hand");
                self.results[0].inc();
                self.leave_admin.send_replace(true);
                let moved = steering.supersede(pin_dir.as_deref());
                let _ = answer.send(moved);
                true
            }
        }
    }

    /// Lets go of the copies of the listening sockets.
    pub fn close(&mut self) {
        if let Some(giver) = self.giver.take() {
            giver.close();
        }
    }

    /// Whether the process stays when everything was handed over.
    pub fn stays(&self) -> bool {
        self.after == AfterHandOver::Wait
    }
}

/// The admin listener, as it was given or anew.
///
/// # Errors
/// When the address cannot be had.
pub fn admin_listener(asked: SocketAddr, taken: Option<&mut Taken>) -> anyhow::Result<TcpListener> {
    let given = taken.and_then(|taken| taken.admin(asked));
    let listener = match given {
        Some(given) => Ok(given),
        None => TcpListener::bind(asked),
    };
    let listener = listener
        .with_context(|| format!("cannot listen on --admin {asked}; free it or choose another"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Answers as the admin listener does on a path of this instance's own, for as long as the sender
/// lives. What a former instance left there goes.
///
/// # Errors
/// When it cannot be listened there.
pub fn answer_probes(
    path: Option<&PathBuf>,
    state: AdminState,
) -> anyhow::Result<watch::Sender<bool>> {
    let (sender, stop) = watch::channel(false);
    if let Some(path) = path {
        let listener = probe_listener(path);
        let listener = listener
            .with_context(|| format!("cannot listen on --probe-socket {}", path.display()))?;
        tokio::spawn(admin::serve(admin::Listener::Unix(listener), state, stop));
    }
    Ok(sender)
}

fn probe_listener(path: &Path) -> std::io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt as _;
    match std::fs::symlink_metadata(path) {
        Ok(there) if there.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => return Err(std::io::ErrorKind::AlreadyExists.into()),
        Err(_) => {}
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    UnixListener::bind(path)
}
