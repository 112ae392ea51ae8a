//! Handing the listening sockets of a running instance over to its successor on the same node.
//!
//! Both run for a while. The successor is given the very sockets, so what waits in them (half-open
//! connections, the kernel's SYN cookies, connections that nobody has accepted yet) belongs to both,
//! and no connection is lost whoever takes it. Nothing changes for the old instance until the
//! successor serves by the state of the objects and says so; if it dies before, the old one just
//! goes on.
//!
//! ```text
//! successor                        running instance
//!   Hello ─────────────────────►
//!         ◄───────────────────── Offer, then its sockets
//!   reads the objects, starts its workers: both accept now
//!   Ready ─────────────────────►  gives up its pin directory, stops accepting, drains
//!         ◄───────────────────── Yielded
//! ```

mod give;
mod take;
mod wire;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use give::{Event, Giver};
pub use take::Taken;

/// The version of what is said. Another one is refused: the old instance goes on.
const PROTOCOL: u32 = 1;

/// Why nothing was handed over.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// The socket cannot be used.
    #[error("cannot {what} the hand-over socket {path}: {error}; see --take-over")]
    Socket {
        /// What was being done.
        what: &'static str,
        /// Where it is.
        path: PathBuf,
        /// The kernel's reason.
        error: std::io::Error,
    },
    /// Something else than a socket is there.
    #[error("{0} is there and is no socket; remove it, or name another path with --take-over")]
    NoSocket(PathBuf),
    /// The other side runs as another user.
    #[error("the instance behind {path} runs as user {other}, this one as {own}; run both as one")]
    Stranger {
        /// Where the socket is.
        path: PathBuf,
        /// The other side's user.
        other: u32,
        /// This process's user.
        own: u32,
    },
    /// The other side said what has no meaning here.
    #[error("the instance behind {path} does not hand over: {why}; stop it first")]
    Refused {
        /// Where the socket is.
        path: PathBuf,
        /// What it said.
        why: String,
    },
}

/// The first word of a successor.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    protocol: u32,
}

/// What the running instance gives.
#[derive(Debug, Serialize, Deserialize)]
struct Offer {
    protocol: u32,
    /// Where its maps and links are pinned.
    pin_dir: Option<PathBuf>,
    /// What was asked for as `--admin`.
    admin: SocketAddr,
    listeners: Vec<Listener>,
}

/// Sockets that share an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// The address that was asked for, which may leave the port open.
    pub asked: SocketAddr,
    /// Whether TLS is spoken there.
    pub tls: bool,
    /// Where they listen.
    pub place: Place,
    /// How many there are.
    sockets: usize,
}

/// Where sockets listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// On the address itself.
    Ordinary,
    /// On loopback, for connections that are steered to them.
    Behind,
}

/// The descriptors of one kind that follow an [`Offer`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Sockets {
    /// The admin listener.
    Admin,
    /// Of the listener at this place of the list.
    Of(usize),
}

/// The successor serves.
#[derive(Debug, Serialize, Deserialize)]
struct Ready {
    /// Where its maps are, if they are to change places with the other's.
    pin_dir: Option<PathBuf>,
}

/// The other one has stopped accepting.
#[derive(Debug, Serialize, Deserialize)]
struct Yielded {
    /// Whether the pin directories have changed places.
    moved: bool,
}

/// What an instance can hand over: copies of its listening sockets.
pub struct Shelf {
    /// What was asked for as `--admin`, and the listener.
    pub admin: (SocketAddr, OwnedFd),
    /// The others.
    pub listeners: Vec<(Listener, Vec<OwnedFd>)>,
}

impl Listener {
    /// Says what some sockets are.
    pub fn new(asked: SocketAddr, tls: bool, place: Place, sockets: usize) -> Self {
        Listener {
            asked,
            tls,
            place,
            sockets,
        }
    }
}
