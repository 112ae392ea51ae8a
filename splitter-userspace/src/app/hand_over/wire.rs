//! Packets with descriptors between two processes of one node.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags,
    SocketType,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::HandOverError;

/// The longest packet, in bytes.
const MAX_PACKET: usize = 64 * 1024;

/// Descriptors in one packet; the kernel takes 253.
pub const MAX_DESCRIPTORS: usize = 200;

/// Successors that may wait at the door.
const BACKLOG: i32 = 4;

/// A connection that keeps the borders between packets.
pub struct Channel(OwnedFd);

impl Channel {
    /// To the instance that listens at `path`; none when nobody does.
    ///
    /// # Errors
    /// When there is something that cannot be connected to, or of another user.
    pub fn connect(path: &Path) -> Result<Option<Channel>, HandOverError> {
        let failed = |error: rustix::io::Errno| failed("connect to", path)(error.into());
        let socket = unix_socket().map_err(failed)?;
        let addr = SocketAddrUnix::new(path).map_err(failed)?;
        match rustix::net::connect(&socket, &addr) {
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::CONNREFUSED) => return Ok(None),
            result => result.map_err(failed)?,
        }
        let channel = Channel(socket);
        channel.check_user(path)?;
        Ok(Some(channel))
    }

    /// Holds that the other side runs as this process's user: whoever gets listening sockets of
    /// ports below 1024, or gives them, must be one that could have opened them.
    ///
    /// # Errors
    /// When it does not.
    pub fn check_user(&self, path: &Path) -> Result<(), HandOverError> {
        let peer = socket_peercred(&self.0);
        let peer = peer.map_err(|error| failed("ask about", path)(error.into()))?;
        let (other, own) = (peer.uid.as_raw(), rustix::process::geteuid().as_raw());
        match other == own {
            true => Ok(()),
            false => Err(HandOverError::Stranger {
                path: path.to_owned(),
                other,
                own,
            }),
        }
    }

    /// How long each packet may take; none: for ever.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        set_socket_timeout(&self.0, Timeout::Recv, patience)?;
        set_socket_timeout(&self.0, Timeout::Send, patience)?;
        Ok(())
    }

    /// Sends a message with descriptors, at most [`MAX_DESCRIPTORS`].
    ///
    /// # Errors
    /// The kernel's; that the other side is gone is one.
    pub fn send(&self, message: &impl Serialize, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
        let text = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !sockets.is_empty() && !control.push(SendAncillaryMessage::ScmRights(sockets)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let slices = [IoSlice::new(&text)];
        rustix::net::sendmsg(&self.0, &slices, &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next message with its descriptors; none when the other side is gone.
    ///
    /// # Errors
    /// The kernel's, or when it is no such message.
    pub fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut text = vec![0u8; MAX_PACKET];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            &self.0,
            &mut [IoSliceMut::new(&mut text)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        );
        let received = match received {
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            received => received?,
        };
        // Taken even from a packet that is refused, so that they are closed.
        let mut sockets = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                sockets.extend(rights);
            }
        }
        if received.bytes == 0 {
            return Ok(None);
        }
        if received
            .flags
            .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
        {
            return Err(io::Error::other(
                "a packet was cut short; look at the limit on open files",
            ));
        }
        let message = text.get(..received.bytes).unwrap_or_default();
        Ok(Some((serde_json::from_slice(message)?, sockets)))
    }
}

/// Where a successor finds the running instance.
pub struct Door {
    socket: OwnedFd,
    path: PathBuf,
}

impl Door {
    /// Listens at `path`, for this process's user only. What a former instance left there goes.
    ///
    /// # Errors
    /// When something else is there, or the kernel says no.
    pub fn open(path: &Path) -> Result<Door, HandOverError> {
        let listen = || -> io::Result<OwnedFd> {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let socket = unix_socket()?;
            rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            rustix::net::listen(&socket, BACKLOG)?;
            Ok(socket)
        };
        match fs::symlink_metadata(path) {
            Ok(there) if !there.file_type().is_socket() => {
                return Err(HandOverError::NoSocket(path.to_owned()));
            }
            Ok(_) => fs::remove_file(path).map_err(failed("replace", path))?,
            Err(_) => {}
        }
        let socket = listen().map_err(failed("listen on", path))?;
        Ok(Door {
            socket,
            path: path.to_owned(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next successor.
    ///
    /// # Errors
    /// The kernel's: the door was shut, for one.
    pub fn accept(&self) -> io::Result<Channel> {
        let accepted = rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC)?;
        Ok(Channel(accepted))
    }

    /// Lets nobody in any more, and whoever waits in [`Self::accept`] out.
    pub fn shut(&self) {
        // It is shut already, then.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}

fn unix_socket() -> rustix::io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)
}

pub(super) fn failed(
    what: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> HandOverError + use<> {
    let path = path.to_owned();
    move |error| HandOverError::Socket { what, path, error }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd as _;

    use super::*;

    fn pair(dir: &Path) -> (Door, Channel, Channel) {
        let door = Door::open(&dir.join("deep/door")).unwrap();
        let to = Channel::connect(door.path()).unwrap().unwrap();
        let from = door.accept().unwrap();
        (door, to, from)
    }

    #[test]
    fn packets_keep_their_borders_and_their_descriptors() {
        let dir = tempfile::tempdir().unwrap();
        let (_door, to, from) = pair(dir.path());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        to.send(&"first", &[listener.as_fd(); MAX_DESCRIPTORS])
            .unwrap();
        to.send(&"second", &[]).unwrap();
        let (text, sockets) = from.receive::<String>().unwrap().unwrap();
        assert_eq!((text.as_str(), sockets.len()), ("first", MAX_DESCRIPTORS));
        let again = TcpListener::from(sockets.into_iter().next().unwrap());
        assert_eq!(again.local_addr().unwrap(), listener.local_addr().unwrap());
        let (text, sockets) = from.receive::<String>().unwrap().unwrap();
        assert_eq!((text.as_str(), sockets.len()), ("second", 0));
        drop(to);
        assert!(from.receive::<String>().unwrap().is_none());
    }

    #[test]
    fn nobody_there_is_no_error_and_a_file_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("door");
        assert!(Channel::connect(&path).unwrap().is_none());
        drop(Door::open(&path).unwrap());
        assert!(Channel::connect(&path).unwrap().is_none(), "left behind");
        Door::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "text").unwrap();
        let error = Door::open(&path).err().unwrap().to_string();
        assert!(error.contains("is no socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (_door, to, from) = pair(dir.path());
        to.send(&7, &[]).unwrap();
        assert!(from.receive::<String>().is_err());
        from.set_patience(Some(Duration::from_millis(10))).unwrap();
        assert!(from.receive::<String>().is_err(), "nothing comes");
    }

    #[test]
    fn a_door_that_is_shut_lets_its_keeper_go() {
        let dir = tempfile::tempdir().unwrap();
        let door = std::sync::Arc::new(Door::open(&dir.path().join("door")).unwrap());
        let waiting = door.clone();
        let keeper = std::thread::spawn(move || waiting.accept().is_err());
        door.shut();
        assert!(keeper.join().unwrap());
    }
}
