//! What a driver says that it does of XDP: the kernel's generic netlink family `netdev` (6.3 on).

use std::io::{self, Read as _};

use socket2::{Domain, Protocol, Socket, Type};

use super::netlink::{Attributes, collect, short};

const NETLINK_GENERIC: libc::c_int = 16;

/// The family that names the others.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const DEV_GET: u8 = 1;
const DEV_IFINDEX: u16 = 1;
const DEV_XDP_FEATURES: u16 = 3;

/// Bits of the kernel's `netdev_xdp_act`.
const BASIC: u64 = 1;
const REDIRECT: u64 = 1 << 1;
const RX_SG: u64 = 1 << 5;

/// What a driver does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpFeatures {
    /// Native programs that drop and pass.
    pub basic: bool,
    /// Moving packets elsewhere, which `--cpu-isolation` needs.
    pub redirect: bool,
    /// Packets of more than one buffer, as large MTUs make them.
    pub fragments: bool,
}

/// What the driver of an interface does; none where the kernel is too old to say.
///
/// # Errors
/// The kernel's.
pub fn xdp_features(ifindex: u32) -> io::Result<Option<XdpFeatures>> {
    let found = ask(CONTROL, GET_FAMILY, FAMILY_NAME, b"netdev\0");
    let messages = match found {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        found => found?,
    };
    let family = attribute(&messages, FAMILY_ID).and_then(|id| short(id, 0));
    let Some(family) = family else {
        return Ok(None);
    };
    let messages = ask(family, DEV_GET, DEV_IFINDEX, &ifindex.to_ne_bytes())?;
    let bits = attribute(&messages, DEV_XDP_FEATURES);
    Ok(bits.and_then(|bits| bits.try_into().ok()).map(features))
}

fn features(bits: [u8; 8]) -> XdpFeatures {
    let bits = u64::from_ne_bytes(bits);
    let has = |bit| bits & bit != 0;
    XdpFeatures {
        basic: has(BASIC),
        redirect: has(REDIRECT),
        fragments: has(RX_SG),
    }
}

/// An attribute of the first message, behind the family's own header.
fn attribute(messages: &[Vec<u8>], wanted: u16) -> Option<&[u8]> {
    let attributes = messages.first()?.get(4..)?;
    let mut all = Attributes(attributes);
    all.find(|(kind, _)| *kind == wanted)
        .map(|(_, value)| value)
}

/// One question with one attribute, and what is answered.
fn ask(family: u16, command: u8, kind: u16, value: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let protocol = Protocol::from(NETLINK_GENERIC);
    let mut socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(protocol))?;
    socket.send(&request(family, command, kind, value))?;
    let mut buffer = vec![0; 16 * 1024];
    let len = socket.read(&mut buffer)?;
    let mut messages = Vec::new();
    collect(buffer.get(..len).unwrap_or_default(), &mut messages)?;
    Ok(messages)
}

fn request(family: u16, command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    const REQUEST: u16 = 1;
    let attribute = 4 + value.len();
    let len = 16 + 4 + attribute.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(len);
    bytes.extend((len as u32).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    // Sequence and port: the kernel answers whoever asks.
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend((attribute as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(len, 0);
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::netlink::number;
    use super::*;

    #[test]
    fn bits_are_those_of_the_kernel() {
        let all = features((BASIC | REDIRECT | RX_SG).to_ne_bytes());
        assert!(all.basic && all.redirect && all.fragments);
        assert_eq!(features([0; 8]), XdpFeatures::default());
        assert!(features(1u64.to_ne_bytes()).basic);
    }

    #[test]
    fn a_request_is_as_long_as_it_says() {
        let bytes = request(0x10, 3, 2, b"netdev\0");
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(number(&bytes, 0), Some(bytes.len() as u32));
        assert_eq!(&bytes[16..20], [3, 1, 0, 0]);
        assert_eq!(short(&bytes, 20), Some(11));
    }

    #[test]
    fn loopback_has_no_native_xdp() {
        // The kernel of this machine may be too old to say; it must not fail.
        let lo = xdp_features(1).unwrap();
        assert!(lo.is_none_or(|lo| !lo.basic));
    }
}
