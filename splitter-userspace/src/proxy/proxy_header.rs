//! The PROXY protocol, versions 1 and 2: what a balancer in front writes before anything else, as
//! described by HAProxy's doc/proxy-protocol.txt. The parser is pure; [`read`] takes exactly the
//! header from a connection and leaves what follows unread.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::clock::TICK;

/// What a header of version 2 begins with.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes of version 2 before the addresses.
const FIXED: usize = 16;

/// The longest line of version 1, its CRLF included.
const LINE_MAX: usize = 107;

/// The longest header of version 2 that is taken, in bytes. Addresses need 52; the rest is for
/// extensions, which are passed over.
const HEADER_MAX: usize = 4096;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The connection is the balancer's own (a health check), or it does not know: the connection's
    /// own addresses count.
    Own,
    /// A client's connection that is passed on.
    Proxied {
        /// The client.
        source: SocketAddr,
        /// What the client connected to.
        destination: SocketAddr,
    },
}

/// Why there is no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHeader {
    /// What came is none.
    Malformed,
    /// It was not there in time.
    Late,
    /// The peer left, or the worker stops, before it was there.
    Gone,
}

/// How far a header has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It needs more bytes.
    Partial,
    /// It is so many bytes long.
    Whole(usize, Claim),
}

/// Reads a header from `stream`, which must be non-blocking, within `timeout`. Every byte behind it
/// stays unread. `stopping` is asked now and then whether to give up.
pub async fn read(
    stream: TcpStream,
    timeout: Duration,
    stopping: impl Fn() -> bool,
) -> Result<(TcpStream, Claim), NoHeader> {
    let deadline = Instant::now() + timeout;
    let stream = tokio::net::TcpStream::from_std(stream).map_err(|_| NoHeader::Gone)?;
    let mut header = Vec::with_capacity(LINE_MAX);
    let mut buf = [0; HEADER_MAX];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(NoHeader::Late);
        }
        if stopping() {
            return Err(NoHeader::Gone);
        }
        let room = buf.len() - header.len();
        let peek = stream.peek(buf.get_mut(..room).unwrap_or_default());
        let seen = match tokio::time::timeout(left.min(TICK), peek).await {
            Err(_) => continue,
            Ok(Ok(0) | Err(_)) => return Err(NoHeader::Gone),
            Ok(Ok(seen)) => seen,
        };
        let before = header.len();
        header.extend_from_slice(buf.get(..seen).unwrap_or_default());
        let (taken, claim) = match parse(&header)? {
            Progress::Whole(length, claim) => (length.saturating_sub(before), Some(claim)),
            Progress::Partial => (seen, None),
        };
        // These bytes are there: they were just seen.
        match stream.try_read(buf.get_mut(..taken).unwrap_or_default()) {
            Ok(read) if read == taken => {}
            _ => return Err(NoHeader::Gone),
        }
        if let Some(claim) = claim {
            return Ok((stream.into_std().map_err(gone)?, claim));
        }
    }
}

fn gone(_: io::Error) -> NoHeader {
    NoHeader::Gone
}

/// A header's length and the addresses that it names, if all of it is there.
pub type Parsed = Option<(usize, Option<[SocketAddr; 2]>)>;

/// Reads what is there of a header.
pub fn parsed(data: &[u8]) -> Result<Parsed, NoHeader> {
    Ok(match parse(data)? {
        Progress::Partial => None,
        Progress::Whole(length, Claim::Own) => Some((length, None)),
        Progress::Whole(
            length,
            Claim::Proxied {
                source,
                destination,
            },
        ) => Some((length, Some([source, destination]))),
    })
}

/// Reads what is there of a header. Bytes behind it do not matter.
fn parse(data: &[u8]) -> Result<Progress, NoHeader> {
    let version2 = data.len().min(SIGNATURE.len());
    if data.get(..version2) == SIGNATURE.get(..version2) {
        return binary(data);
    }
    const PREFIX: &[u8] = b"PROXY ";
    let version1 = data.len().min(PREFIX.len());
    if data.get(..version1) == PREFIX.get(..version1) {
        return line(data);
    }
    Err(NoHeader::Malformed)
}

fn line(data: &[u8]) -> Result<Progress, NoHeader> {
    let within = data.get(..data.len().min(LINE_MAX)).unwrap_or_default();
    let Some(end) = within.windows(2).position(|two| two == b"\r\n") else {
        return match data.len() < LINE_MAX {
            true => Ok(Progress::Partial),
            false => Err(NoHeader::Malformed),
        };
    };
    let text = data.get(..end).unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| NoHeader::Malformed)?;
    let words: Vec<&str> = text.split(' ').collect();
    let claim = match *words.as_slice() {
        [_, "UNKNOWN", ..] => Claim::Own,
        [_, "TCP4", source, destination, from, to] => Claim::Proxied {
            source: SocketAddr::new(IpAddr::V4(ip(source)?), port(from)?),
            destination: SocketAddr::new(IpAddr::V4(ip(destination)?), port(to)?),
        },
        [_, "TCP6", source, destination, from, to] => Claim::Proxied {
            source: SocketAddr::new(IpAddr::V6(ip(source)?), port(from)?),
            destination: SocketAddr::new(IpAddr::V6(ip(destination)?), port(to)?),
        },
        _ => return Err(NoHeader::Malformed),
    };
    Ok(Progress::Whole(end + 2, claim))
}

fn ip<T: std::str::FromStr>(text: &str) -> Result<T, NoHeader> {
    text.parse().map_err(|_| NoHeader::Malformed)
}

/// Decimal digits only, without a needless zero in front.
fn port(text: &str) -> Result<u16, NoHeader> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = plain && (text.len() == 1 || !text.starts_with('0'));
    match text.parse() {
        Ok(port) if plain => Ok(port),
        _ => Err(NoHeader::Malformed),
    }
}

fn binary(data: &[u8]) -> Result<Progress, NoHeader> {
    let Some(&[command, family, high, low]) = data.get(SIGNATURE.len()..FIXED) else {
        return Ok(Progress::Partial);
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let whole = FIXED + length;
    if whole > HEADER_MAX || !matches!(command, 0x20 | 0x21) {
        return Err(NoHeader::Malformed);
    }
    let Some(rest) = data.get(FIXED..whole) else {
        return Ok(Progress::Partial);
    };
    let claim = match (command, family) {
        // LOCAL; or PROXY of an unspecified family, or of a Unix socket: no address to take.
        (0x20, _) | (_, 0x00 | 0x31 | 0x32) => Claim::Own,
        (_, 0x11) => addresses_v4(rest)?,
        (_, 0x21) => addresses_v6(rest)?,
        // Datagrams do not come over a connection; other families do not exist.
        _ => return Err(NoHeader::Malformed),
    };
    Ok(Progress::Whole(whole, claim))
}

fn addresses_v4(data: &[u8]) -> Result<Claim, NoHeader> {
    let Some((&[a, b, c, d, e, f, g, h, from, from_low, to, to_low], _)) = data.split_first_chunk()
    else {
        return Err(NoHeader::Malformed);
    };
    let source = Ipv4Addr::new(a, b, c, d);
    let destination = Ipv4Addr::new(e, f, g, h);
    Ok(Claim::Proxied {
        source: SocketAddr::new(source.into(), u16::from_be_bytes([from, from_low])),
        destination: SocketAddr::new(destination.into(), u16::from_be_bytes([to, to_low])),
    })
}

fn addresses_v6(data: &[u8]) -> Result<Claim, NoHeader> {
    let parts = data.split_first_chunk::<16>().and_then(|(source, rest)| {
        let (destination, rest) = rest.split_first_chunk::<16>()?;
        let (ports, _) = rest.split_first_chunk::<4>()?;
        Some((*source, *destination, *ports))
    });
    let Some((source, destination, [from, from_low, to, to_low])) = parts else {
        return Err(NoHeader::Malformed);
    };
    let (source, destination) = (Ipv6Addr::from(source), Ipv6Addr::from(destination));
    Ok(Claim::Proxied {
        source: SocketAddr::new(source.into(), u16::from_be_bytes([from, from_low])),
        destination: SocketAddr::new(destination.into(), u16::from_be_bytes([to, to_low])),
    })
}

#[cfg(test)]
#[path = "proxy_header_tests.rs"]
mod tests;
