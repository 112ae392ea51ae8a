//! UDP sockets that say which of the node's addresses a datagram was for, and answer from it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use socket2::{MaybeUninitSlice, MsgHdr, MsgHdrMut, SockAddr, SockRef};

/// The longest datagram, in bytes.
const MOST: usize = 65_535;

/// Room for what the kernel says beside a datagram: one address, and something to spare.
const CONTROL: usize = 128;

/// The head of each thing that it says: length, level, type.
const HEAD: usize = size_of::<libc::cmsghdr>();

/// Where datagrams are received.
pub struct Buffer {
    data: Box<[MaybeUninit<u8>]>,
    control: [MaybeUninit<u8>; CONTROL],
}

/// What was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes at the beginning of the buffer.
    pub length: usize,
    /// From whom.
    pub from: SocketAddr,
    /// The address of the node that it was for.
    pub to: IpAddr,
}

impl Buffer {
    /// One for any datagram. All of it is initialised.
    pub fn new() -> Self {
        Buffer {
            data: vec![MaybeUninit::new(0); MOST].into(),
            control: [MaybeUninit::new(0); CONTROL],
        }
    }

    /// The first bytes of it.
    pub fn bytes(&self, length: usize) -> &[u8] {
        init(self.data.get(..length).unwrap_or_default())
    }
}

/// The bytes of a part of a [`Buffer`].
#[allow(unsafe_code, reason = "a buffer is initialised when it is made")]
fn init(part: &[MaybeUninit<u8>]) -> &[u8] {
    // SAFETY: only parts of a `Buffer` come here. Each byte of one was initialised by `Buffer::new`, and
    // nothing makes a byte uninitialised again: the kernel only writes to them.
    unsafe { part.assume_init_ref() }
}

/// Has the socket say what datagrams were for.
///
/// # Errors
/// The kernel's.
pub fn tell_destinations(socket: &socket2::Socket, v4: bool) -> io::Result<()> {
    let (level, option) = match v4 {
        true => (libc::IPPROTO_IP, libc::IP_PKTINFO),
        false => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    };
    super::super::listen::set_option(socket, level, option, 1)
}

/// The next datagram of a socket that [tells destinations](tell_destinations).
///
/// # Errors
/// `WouldBlock` when there is none; `InvalidData` for one whose destination is not said.
pub fn receive(socket: &impl AsFd, buffer: &mut Buffer) -> io::Result<Received> {
    let mut from = SockAddr::from(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)));
    let mut data = [MaybeUninitSlice::new(&mut buffer.data)];
    let mut head = MsgHdrMut::new()
        .with_addr(&mut from)
        .with_buffers(&mut data)
        .with_control(&mut buffer.control);
    let length = SockRef::from(socket).recvmsg(&mut head, 0)?;
    let said = head.control_len().min(CONTROL);
    let said = init(buffer.control.get(..said).unwrap_or_default());
    let unknown = || io::Error::from(io::ErrorKind::InvalidData);
    Ok(Received {
        length,
        from: from.as_socket().ok_or_else(unknown)?,
        to: destination(said).ok_or_else(unknown)?,
    })
}

/// Answers a client from the address that it has asked.
///
/// # Errors
/// The kernel's; `WouldBlock` when its queue is full.
pub fn answer(
    socket: &impl AsFd,
    data: &[u8],
    client: SocketAddr,
    own: IpAddr,
) -> io::Result<usize> {
    let control = source(own);
    let (to, data) = (SockAddr::from(client), [IoSlice::new(data)]);
    let head = MsgHdr::new()
        .with_addr(&to)
        .with_buffers(&data)
        .with_control(&control);
    SockRef::from(socket).sendmsg(&head, 0)
}

/// Looks for the destination in what the kernel says (cmsg(3), ip(7), ipv6(7)).
fn destination(mut said: &[u8]) -> Option<IpAddr> {
    while let Some((length, rest)) = said.split_first_chunk::<{ size_of::<usize>() }>() {
        let length = usize::from_ne_bytes(*length);
        let (level, kind) = (number(rest, 0)?, number(rest, 4)?);
        let data = said.get(HEAD..length)?;
        match (level, kind) {
            // The interface, the local address for answers, the address in the header.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let octets: [u8; 4] = data.get(8..12)?.try_into().ok()?;
                return Some(Ipv4Addr::from(octets).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let octets: [u8; 16] = data.get(..16)?.try_into().ok()?;
                return Some(Ipv6Addr::from(octets).into());
            }
            _ => {}
        }
        said = said.get(length.next_multiple_of(size_of::<usize>())..)?;
    }
    None
}

fn number(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(i32::from_ne_bytes(bytes.try_into().ok()?))
}

/// What has the kernel send from an address.
fn source(own: IpAddr) -> Vec<u8> {
    let (level, kind, data) = match own {
        IpAddr::V4(own) => {
            let mut data = [0; 12];
            data[4..8].copy_from_slice(&own.octets());
            (libc::IPPROTO_IP, libc::IP_PKTINFO, data.to_vec())
        }
        IpAddr::V6(own) => {
            let mut data = [0; 20];
            data[..16].copy_from_slice(&own.octets());
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, data.to_vec())
        }
    };
    let mut all = Vec::with_capacity(HEAD + 24);
    all.extend((HEAD + data.len()).to_ne_bytes());
    all.extend(level.to_ne_bytes());
    all.extend(kind.to_ne_bytes());
    all.resize(HEAD, 0);
    all.extend(data);
    all.resize(all.len().next_multiple_of(size_of::<usize>()), 0);
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn what_is_said_is_read_whatever_stands_before_it() {
        let own: IpAddr = "2001:db8::7".parse().unwrap();
        let mut said = Vec::new();
        // Something else first, of a length that is filled up.
        said.extend((HEAD + 3).to_ne_bytes());
        said.extend([1i32, 2].iter().flat_map(|it| it.to_ne_bytes()));
        said.resize(HEAD + 8, 9);
        said.extend(source(own));
        assert_eq!(destination(&said), Some(own));
        for end in 0..said.len() {
            // Cut short it says nothing, and nothing panics.
            assert_ne!(destination(&said[..end]), Some("::".parse().unwrap()));
        }
        assert_eq!(destination(&[0xff; 64]), None);
        assert_eq!(destination(&[0; 64]), None);
    }

    #[test]
    fn answers_come_from_the_address_that_was_asked() {
        let any: SocketAddr = "0.0.0.0:0".parse().unwrap();
        let server = UdpSocket::bind(any).unwrap();
        let port = server.local_addr().unwrap().port();
        tell_destinations(&SockRef::from(&server), true).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let asked: SocketAddr = ([127, 0, 0, 9], port).into();
        client.send_to(b"who", asked).unwrap();
        let mut buffer = Buffer::new();
        let received = receive(&server, &mut buffer).unwrap();
        assert_eq!(buffer.bytes(received.length), b"who");
        assert_eq!(
            (received.from, received.to),
            (client.local_addr().unwrap(), asked.ip())
        );
        answer(&server, b"me", received.from, received.to).unwrap();
        let mut data = [0; 8];
        assert_eq!(client.recv_from(&mut data).unwrap(), (2, asked));
    }
}
