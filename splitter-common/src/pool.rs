use crate::class::Class;
use crate::layout::layout;
use crate::limits::POOLS;

/// The pools that a listener has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Pool {
    /// For everything that is not trusted more.
    NorthSouth = 0,
    /// For pods and this node.
    EastWest = 1,
}

impl Pool {
    /// Every pool, in the order of the codes.
    pub const ALL: [Pool; POOLS as usize] = [Pool::NorthSouth, Pool::EastWest];

    /// The number in maps.
    #[inline(always)]
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The pool of a number in a map; a number that means nothing is [`Pool::NorthSouth`].
    #[inline(always)]
    pub const fn from_code(code: u32) -> Pool {
        match code {
            1 => Pool::EastWest,
            _ => Pool::NorthSouth,
        }
    }

    /// The pool that takes over when this one has no socket.
    #[inline(always)]
    pub const fn other(self) -> Pool {
        match self {
            Pool::NorthSouth => Pool::EastWest,
            Pool::EastWest => Pool::NorthSouth,
        }
    }

    /// The pool of a class where nothing else is configured.
    pub const fn of(class: Class) -> Pool {
        match class {
            Class::EastWest | Class::Local | Class::Node => Pool::EastWest,
            Class::NorthSouth | Class::Unknown => Pool::NorthSouth,
        }
    }

    /// Where the pool's socket of a listener lies in the map `pools` and its companion.
    #[inline(always)]
    pub const fn socket_index(self, listener: u32) -> u32 {
        listener.wrapping_mul(POOLS).wrapping_add(self.code())
    }

    /// The name in logs, metrics and options.
    pub const fn name(self) -> &'static str {
        match self {
            Pool::NorthSouth => "north-south",
            Pool::EastWest => "east-west",
        }
    }
}

/// Entry of the map `pool_info`: says in words what the socket at the same index of `pools` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PoolInfo {
    /// The socket's cookie, as `pools` prints it.
    pub cookie: u64,
    /// A [`Pool`] code.
    pub pool: u32,
    /// Process that listens.
    pub pid: u32,
    /// Counts the sockets that took this place.
    pub generation: u32,
    /// A [`PoolState`] code.
    pub state: u32,
    /// Local address; IPv4 in the first four bytes.
    pub addr: [u8; 16],
    /// Local port.
    pub port: u16,
    /// Protocol number: 6 is TCP.
    pub protocol: u8,
    /// 4 or 6.
    pub family: u8,
    /// Zero.
    pub pad: [u8; 4],
}

/// Whether a place of the map `pools` is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PoolState {
    /// No socket.
    Empty = 0,
    /// A socket takes connections.
    Listening = 1,
}

layout!(PoolInfo, size 48, align 8, {
    cookie: 0, pool: 8, pid: 12, generation: 16, state: 20,
    addr: 24, port: 40, protocol: 42, family: 43, pad: 44,
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::bytes_of;

    #[test]
    fn places_do_not_overlap() {
        assert_eq!(Pool::NorthSouth.socket_index(0), 0);
        assert_eq!(Pool::EastWest.socket_index(0), 1);
        assert_eq!(Pool::NorthSouth.socket_index(1), 2);
        for pool in Pool::ALL {
            assert_eq!(Pool::from_code(pool.code()), pool);
            assert_ne!(pool.other(), pool);
        }
    }

    #[test]
    fn info_bytes() {
        let info = PoolInfo {
            cookie: 0x1122,
            pool: 1,
            pid: 2,
            generation: 3,
            state: 1,
            port: 80,
            protocol: 6,
            family: 4,
            ..PoolInfo::default()
        };
        let mut golden = [0u8; 48];
        golden[..2].copy_from_slice(&[0x22, 0x11]);
        (golden[8], golden[12], golden[16], golden[20]) = (1, 2, 3, 1);
        golden[40..44].copy_from_slice(&[80, 0, 6, 4]);
        assert_eq!(bytes_of(&info), golden);
    }
}
