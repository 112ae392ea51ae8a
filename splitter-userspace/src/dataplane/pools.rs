//! Listeners and the sockets of their pools.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, BorrowedFd};

use aya::Pod;
use aya::maps::{Array, HashMap, MapData};
use socket2::{Domain, Socket, Type};
use splitter_common::{
    AddressKey, Fallback, ListenerValue, MAX_LISTENERS, Pool, PoolInfo, PoolState, PortKey,
};

use super::error::DataplaneError;
use super::maps::{Maps, map_error};
use super::sys;
use super::tables::reason;

const TCP: u8 = 6;

/// The listener table and the socket map.
pub struct Pools {
    ports: HashMap<MapData, PortKey, ListenerValue>,
    addresses: HashMap<MapData, AddressKey, ListenerValue>,
    sockets: MapData,
    info: Array<MapData, PoolInfo>,
    /// Number and policy of each listener.
    known: BTreeMap<SocketAddr, (u32, Fallback)>,
}

impl Pools {
    /// Takes the maps; what a former process left in them is removed.
    pub(super) fn new(maps: &mut Maps<'_>) -> Result<Self, DataplaneError> {
        let mut pools = Pools {
            ports: maps.take("listeners")?,
            addresses: maps.take("listener_addrs")?,
            sockets: maps.take_data("pools")?,
            info: maps.take("pool_info")?,
            known: BTreeMap::new(),
        };
        empty(&mut pools.ports, "listeners")?;
        empty(&mut pools.addresses, "listener_addrs")?;
        for listener in 0..MAX_LISTENERS {
            for pool in Pool::ALL {
                pools.clear(listener, pool)?;
            }
        }
        Ok(pools)
    }

    /// Gives connections to `addr` to these sockets, one for each pool. A pool that is left out
    /// has none: `fallback` says what becomes of its connections. Called again for the same
    /// address, it swaps the sockets; connections that were accepted are not touched.
    ///
    /// The sockets listen already, on any address, in this network namespace; one of a
    /// SO_REUSEPORT group stands for all of them. The map keeps no socket alive.
    ///
    /// # Errors
    /// When a socket does not do, there is no place left, or a map cannot be written.
    pub fn publish(
        &mut self,
        addr: SocketAddr,
        fallback: Fallback,
        sockets: &[(Pool, BorrowedFd<'_>)],
    ) -> Result<(), DataplaneError> {
        for (_, socket) in sockets {
            check(addr, *socket)?;
        }
        let listener = self.number(addr)?;
        // Sockets before the entry that leads to them.
        for pool in Pool::ALL {
            match sockets.iter().find(|(other, _)| *other == pool) {
                Some((_, socket)) => self.set(addr, listener, pool, *socket)?,
                None => self.clear(listener, pool)?,
            }
        }
        self.known.insert(addr, (listener, fallback));
        self.write_port(addr)
    }

    /// Leaves connections to `addr` to the kernel again.
    ///
    /// # Errors
    /// When a map cannot be written.
    pub fn withdraw(&mut self, addr: SocketAddr) -> Result<(), DataplaneError> {
        let Some((listener, _)) = self.known.remove(&addr) else {
            return Ok(());
        };
        self.write_port(addr)?;
        for pool in Pool::ALL {
            self.clear(listener, pool)?;
        }
        Ok(())
    }

    fn number(&self, addr: SocketAddr) -> Result<u32, DataplaneError> {
        if let Some((number, _)) = self.known.get(&addr) {
            return Ok(*number);
        }
        let free = |number: &u32| self.known.values().all(|(taken, _)| taken != number);
        let full = DataplaneError::TooManyListeners {
            addr,
            limit: MAX_LISTENERS,
        };
        (0..MAX_LISTENERS).find(free).ok_or(full)
    }

    /// Writes the entries of an address and of its port, which says whether addresses have some.
    fn write_port(&mut self, addr: SocketAddr) -> Result<(), DataplaneError> {
        let every = every(addr);
        let is_exact = |other: &SocketAddr| *other != every && self::every(*other) == every;
        let exact = self.known.keys().any(is_exact);
        // The address first: the port leads to it.
        if addr != every {
            let entry = self
                .known
                .get(&addr)
                .map(|known| value(Some(*known), false));
            put(&mut self.addresses, "listener_addrs", key(addr), entry)?;
        }
        let wildcard = self.known.get(&every).copied();
        let needed = wildcard.is_some() || exact;
        let entry = needed.then(|| value(wildcard, exact));
        put(&mut self.ports, "listeners", key(every).port, entry)
    }

    fn set(
        &mut self,
        addr: SocketAddr,
        listener: u32,
        pool: Pool,
        socket: BorrowedFd<'_>,
    ) -> Result<(), DataplaneError> {
        let index = pool.socket_index(listener);
        let failed = |what| {
            move |source| DataplaneError::Map {
                what,
                map: "pools",
                source,
            }
        };
        let cookie = sys::socket_cookie(socket).map_err(failed("read"))?;
        let before = self
            .info
            .get(&index, 0)
            .map_err(map_error("read", "pool_info"))?;
        sys::set_socket(self.sockets.fd().as_fd(), index, socket).map_err(failed("write"))?;
        let key = key(addr);
        let info = PoolInfo {
            cookie,
            pool: pool.code(),
            pid: std::process::id(),
            generation: before.generation.wrapping_add(1),
            state: PoolState::Listening as u32,
            addr: key.addr,
            port: key.port.port,
            protocol: key.port.protocol,
            family: key.port.family,
            pad: [0; 4],
        };
        self.info
            .set(index, info, 0)
            .map_err(map_error("write", "pool_info"))
    }

    fn clear(&mut self, listener: u32, pool: Pool) -> Result<(), DataplaneError> {
        let index = pool.socket_index(listener);
        sys::clear_socket(self.sockets.fd().as_fd(), index).map_err(|source| {
            DataplaneError::Map {
                what: "write",
                map: "pools",
                source,
            }
        })?;
        let before = self
            .info
            .get(&index, 0)
            .map_err(map_error("read", "pool_info"))?;
        let empty = PoolInfo {
            generation: before.generation,
            ..PoolInfo::default()
        };
        self.info
            .set(index, empty, 0)
            .map_err(map_error("write", "pool_info"))
    }
}

/// The wildcard address of an address's family and port.
fn every(addr: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match addr {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, addr.port())
}

fn key(addr: SocketAddr) -> AddressKey {
    let mut key = AddressKey::default();
    (key.port.port, key.port.protocol) = (addr.port(), TCP);
    match addr.ip() {
        IpAddr::V4(ip) => {
            key.port.family = 4;
            key.addr[..4].copy_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            key.port.family = 6;
            key.addr = ip.octets();
        }
    }
    key
}

/// Removes all entries.
fn empty<K: Pod, V: Pod>(
    map: &mut HashMap<MapData, K, V>,
    name: &'static str,
) -> Result<(), DataplaneError> {
    let keys: Result<Vec<_>, _> = map.keys().collect();
    for key in keys.map_err(map_error("read", name))? {
        map.remove(&key).map_err(map_error("write", name))?;
    }
    Ok(())
}

/// Writes or removes an entry; one that is not there is removed already.
fn put<K: Pod, V: Pod>(
    map: &mut HashMap<MapData, K, V>,
    name: &'static str,
    key: K,
    entry: Option<V>,
) -> Result<(), DataplaneError> {
    let result = match entry {
        Some(value) => map.insert(key, value, 0),
        None => map.remove(&key),
    };
    match result.map_err(reason) {
        Err(error) if entry.is_none() && error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        result => result.map_err(|source| DataplaneError::Map {
            what: "write",
            map: name,
            source,
        }),
    }
}

fn value(known: Option<(u32, Fallback)>, exact: bool) -> ListenerValue {
    let (listener, fallback) = known.unwrap_or((ListenerValue::NONE, Fallback::Kernel));
    ListenerValue {
        listener,
        fallback: fallback as u32,
        exact: u32::from(exact),
    }
}

/// Whether the kernel would give connections to the socket: what it does not like it only shows by
/// connections that time out.
fn check(addr: SocketAddr, socket: BorrowedFd<'_>) -> Result<(), DataplaneError> {
    let wrong = |why| Err(DataplaneError::Socket { addr, why });
    if !sys::is_listening(socket).unwrap_or(false) {
        return wrong("it does not listen");
    }
    let local = socket2::SockRef::from(&socket).local_addr();
    let family = local.ok().and_then(|local| local.as_socket());
    if family.is_none_or(|local| local.is_ipv4() != addr.is_ipv4()) {
        return wrong("it is of the other address family");
    }
    // A socket of another network namespace would answer from there.
    let here = Socket::new(Domain::IPV4, Type::STREAM, None);
    let here = here.and_then(|socket| sys::netns_cookie(socket.as_fd()));
    match (here, sys::netns_cookie(socket)) {
        (Ok(here), Ok(there)) if here == there => Ok(()),
        _ => wrong("it is in another network namespace"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_address_bytes() {
        let found = key("203.0.113.1:80".parse().unwrap());
        assert_eq!(found.addr[..5], [203, 0, 113, 1, 0]);
        let port = found.port;
        assert_eq!((port.port, port.protocol, port.family), (80, 6, 4));
        let found = key("[2001:db8::1]:443".parse().unwrap());
        assert_eq!(
            (found.addr[0], found.addr[15], found.port.family),
            (0x20, 1, 6)
        );
    }

    #[test]
    fn a_wildcard_keeps_family_and_port() {
        let of = |text: &str| every(text.parse().unwrap()).to_string();
        assert_eq!(of("203.0.113.1:80"), "0.0.0.0:80");
        assert_eq!(of("[2001:db8::1]:443"), "[::]:443");
    }

    #[test]
    fn sockets_that_cannot_take_connections_are_refused() {
        let addr: SocketAddr = "0.0.0.0:80".parse().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(check(addr, listener.as_fd()).is_ok());
        let idle = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let why = |socket: BorrowedFd<'_>, addr| check(addr, socket).unwrap_err().to_string();
        assert!(why(idle.as_fd(), addr).contains("does not listen"));
        let other = "[::]:80".parse().unwrap();
        assert!(why(listener.as_fd(), other).contains("other address family"));
    }
}
