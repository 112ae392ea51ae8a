//! The successor's side.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::wire::{Channel, failed};
use super::{HandOverError, Hello, Listener, Offer, PROTOCOL, Place, Ready, Sockets, Yielded};

/// How long the running instance may take for each answer. It may be translating meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a running instance has given; it goes on until [`Self::settle`].
pub struct Taken {
    channel: Channel,
    path: PathBuf,
    pin_dir: Option<PathBuf>,
    admin: Option<(SocketAddr, TcpListener)>,
    listeners: Vec<(Listener, Vec<TcpListener>)>,
}

impl Taken {
    /// Asks the instance behind `path` for its sockets; none when there is no instance.
    ///
    /// # Errors
    /// When there is one that does not hand over.
    pub fn ask(path: &Path) -> Result<Option<Taken>, HandOverError> {
        let Some(channel) = Channel::connect(path)? else {
            return Ok(None);
        };
        let io = |what| failed(what, path);
        channel.set_patience(Some(PATIENCE)).map_err(io("set up"))?;
        let hello = Hello { protocol: PROTOCOL };
        channel.send(&hello, &[]).map_err(io("write to"))?;
        let refused = |why: &str| HandOverError::Refused {
            path: path.to_owned(),
            why: why.to_owned(),
        };
        let offer: Option<(Offer, _)> = channel.receive().map_err(io("read from"))?;
        let (offer, _) = offer.ok_or_else(|| refused("it has closed the connection"))?;
        if offer.protocol != PROTOCOL {
            return Err(refused("it is of another version"));
        }
        let mut taken = Taken {
            channel,
            path: path.to_owned(),
            pin_dir: offer.pin_dir,
            admin: None,
            listeners: offer
                .listeners
                .into_iter()
                .map(|it| (it, Vec::new()))
                .collect(),
        };
        while taken.is_waiting() {
            let packet = taken.channel.receive().map_err(io("read from"))?;
            let (what, sockets) = packet.ok_or_else(|| refused("it has broken off"))?;
            if !taken.put(&what, offer.admin, sockets) {
                return Err(refused("it gives what it has not offered"));
            }
        }
        Ok(Some(taken))
    }

    fn is_waiting(&self) -> bool {
        let mut listeners = self.listeners.iter();
        self.admin.is_none() || listeners.any(|(it, sockets)| sockets.len() < it.sockets)
    }

    /// Puts sockets where they belong; false when they belong nowhere.
    fn put(&mut self, what: &Sockets, admin: SocketAddr, sockets: Vec<OwnedFd>) -> bool {
        let mut sockets = sockets.into_iter().map(TcpListener::from).peekable();
        if sockets.peek().is_none() {
            return false;
        }
        match what {
            Sockets::Admin => {
                self.admin = sockets.next().map(|listener| (admin, listener));
                true
            }
            Sockets::Of(index) => match self.listeners.get_mut(*index) {
                Some((_, all)) => {
                    all.extend(sockets);
                    true
                }
                None => false,
            },
        }
    }

    /// Where the running instance has its maps.
    pub fn pin_dir(&self) -> Option<&Path> {
        self.pin_dir.as_deref()
    }

    /// The admin listener, if it is what was asked for.
    pub fn admin(&mut self, asked: SocketAddr) -> Option<TcpListener> {
        self.admin.take_if(|(of, _)| *of == asked).map(|it| it.1)
    }

    /// The sockets of an address; empty when it is new.
    pub fn listeners(&mut self, asked: SocketAddr, tls: bool, place: Place) -> Vec<TcpListener> {
        let mut all = self.listeners.iter_mut();
        let is_it = |it: &Listener| it.asked == asked && it.tls == tls && it.place == place;
        let found = all.find(|(it, _)| is_it(it));
        found.map_or(Vec::new(), |(_, sockets)| std::mem::take(sockets))
    }

    /// Says that this instance serves, and waits until the other one has stopped accepting. Gives
    /// whether the pin directories have changed places. Blocks for [`PATIENCE`] at most.
    ///
    /// # Errors
    /// When the other one is gone or does not answer. This one serves all the same.
    pub fn settle(self, pin_dir: Option<PathBuf>) -> Result<bool, HandOverError> {
        let io = |what| failed(what, &self.path);
        let ready = Ready { pin_dir };
        self.channel.send(&ready, &[]).map_err(io("write to"))?;
        let yielded: Option<(Yielded, _)> = self.channel.receive().map_err(io("read from"))?;
        let gone = || HandOverError::Refused {
            path: self.path.clone(),
            why: "it is gone".to_owned(),
        };
        yielded.map(|(it, _)| it.moved).ok_or_else(gone)
    }
}
