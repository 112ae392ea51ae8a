//! The running instance's side: a thread at the door, and what it asks of the control thread.

use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::wire::{Channel, Door, MAX_DESCRIPTORS, failed};
use super::{HandOverError, Hello, Listener, Offer, PROTOCOL, Ready, Shelf, Sockets, Yielded};

/// How long a successor may take for its first word and for taking the sockets.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two tries to let a successor in.
const RETRY: Duration = Duration::from_secs(1);

/// What happens at the door.
pub enum Event {
    /// A successor is there. The answer is the pin directory with everything in it that it needs.
    Asked(oneshot::Sender<Option<PathBuf>>),
    /// It serves. Its pin directory, if that is to change places with ours; the answer is whether
    /// it has.
    Ready(Option<PathBuf>, oneshot::Sender<bool>),
    /// It is gone without serving.
    Gone,
}

/// Gives this instance's sockets to its successor.
pub struct Giver {
    events: mpsc::UnboundedReceiver<Event>,
    door: Arc<Door>,
    shelf: Arc<Mutex<Option<Shelf>>>,
    /// Whether the path leads to the successor's door by now.
    given: bool,
}

impl Giver {
    /// Listens at `path`.
    ///
    /// # Errors
    /// When it cannot be listened there.
    pub fn start(path: &Path, shelf: Shelf) -> Result<Giver, HandOverError> {
        let door = Arc::new(Door::open(path)?);
        let shelf = Arc::new(Mutex::new(Some(shelf)));
        let (sender, events) = mpsc::unbounded_channel();
        let keeper = Keeper {
            door: door.clone(),
            shelf: shelf.clone(),
            events: sender,
        };
        std::thread::Builder::new()
            .name("hand-over".to_owned())
            .spawn(move || keeper.run())
            .map_err(failed("wait at", path))?;
        Ok(Giver {
            events,
            door,
            shelf,
            given: false,
        })
    }

    /// What happens next at the door. Never, when the door is shut.
    pub async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => {
                self.given |= matches!(event, Event::Ready(..));
                event
            }
            None => std::future::pending().await,
        }
    }

    /// Lets go of the sockets: one that nobody accepts from would keep its callers waiting.
    pub fn close(self) {
        self.door.shut();
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        drop(shelf.take());
        if !self.given {
            // Somebody has tidied up, then.
            let _ = fs::remove_file(self.door.path());
        }
    }
}

/// The thread at the door.
struct Keeper {
    door: Arc<Door>,
    shelf: Arc<Mutex<Option<Shelf>>>,
    events: mpsc::UnboundedSender<Event>,
}

impl Keeper {
    fn run(self) {
        loop {
            let channel = match self.door.accept() {
                Ok(channel) => channel,
                Err(error) => match After::of(&error) {
                    After::Again => continue,
                    After::Later => {
                        tracing::warn!(%error, "a successor cannot be let in, trying again");
                        std::thread::sleep(RETRY);
                        continue;
                    }
                    After::Shut => {
                        tracing::debug!(%error, "the door for successors is shut");
                        return;
                    }
                },
            };
            match self.serve(&channel) {
                Ok(true) => return,
                Ok(false) => tracing::warn!("a successor is gone before it served; going on"),
                Err(error) => {
                    tracing::warn!(error = format!("{error:#}"), "nothing was handed over");
                }
            }
            if self.events.send(Event::Gone).is_err() {
                return;
            }
        }
    }

    /// Deals with one successor to its end. Gives whether it serves now.
    fn serve(&self, channel: &Channel) -> anyhow::Result<bool> {
        channel.check_user(self.door.path())?;
        channel.set_patience(Some(PATIENCE))?;
        let Some((hello, _)) = channel.receive::<Hello>()? else {
            return Ok(false);
        };
        anyhow::ensure!(
            hello.protocol == PROTOCOL,
            "the successor speaks version {} of the hand-over, this instance {PROTOCOL}",
            hello.protocol
        );
        let Some(pin_dir) = self.ask(Event::Asked) else {
            return Ok(false);
        };
        self.offer(channel, pin_dir)?;
        // It reads the objects now, for which an API server that is away can take long.
        channel.set_patience(None)?;
        let Some((ready, _)) = channel.receive::<Ready>()? else {
            return Ok(false);
        };
        let moved = self.ask(|answer| Event::Ready(ready.pin_dir, answer));
        let yielded = Yielded {
            moved: moved.unwrap_or(false),
        };
        // It serves, whether it hears of it or not.
        if let Err(error) = channel.send(&yielded, &[]) {
            tracing::warn!(%error, "the successor does not hear that it is alone");
        }
        Ok(true)
    }

    /// Has the control thread do something; none when it is stopping.
    fn ask<T>(&self, event: impl FnOnce(oneshot::Sender<T>) -> Event) -> Option<T> {
        let (sender, answer) = oneshot::channel();
        self.events.send(event(sender)).ok()?;
        answer.blocking_recv().ok()
    }

    fn offer(&self, channel: &Channel, pin_dir: Option<PathBuf>) -> anyhow::Result<()> {
        let shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        let shelf = shelf.as_ref();
        let shelf = shelf.ok_or_else(|| anyhow::anyhow!("this instance is stopping"))?;
        let listeners: Vec<Listener> = shelf.listeners.iter().map(|(it, _)| *it).collect();
        let (admin, socket) = &shelf.admin;
        let offer = Offer {
            protocol: PROTOCOL,
            pin_dir,
            admin: *admin,
            listeners,
        };
        channel.send(&offer, &[])?;
        channel.send(&Sockets::Admin, &[socket.as_fd()])?;
        for (index, (_, sockets)) in shelf.listeners.iter().enumerate() {
            for some in sockets.chunks(MAX_DESCRIPTORS) {
                let some: Vec<_> = some.iter().map(|socket| socket.as_fd()).collect();
                channel.send(&Sockets::Of(index), &some)?;
            }
        }
        Ok(())
    }
}

/// What follows when nobody could be let in.
#[derive(Debug, PartialEq, Eq)]
enum After {
    /// The next one is waited for.
    Again,
    /// The same after a pause: what is lacking (descriptors, memory) may be there then.
    Later,
    /// The door was shut from this side: a socket that is shut down does not listen any more.
    Shut,
}

impl After {
    fn of(error: &io::Error) -> After {
        match error.kind() {
            io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => After::Again,
            io::ErrorKind::InvalidInput => After::Shut,
            _ => After::Later,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_for_a_moment_does_not_shut_the_door() {
        let after = |number| After::of(&io::Error::from_raw_os_error(number));
        for number in [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS] {
            assert_eq!(after(number), After::Later);
        }
        assert_eq!(after(libc::EINTR), After::Again);
        assert_eq!(after(libc::EINVAL), After::Shut);
    }
}
