//! The look-up that the kernel asks sk_lookup about.

use aya_ebpf::bindings::bpf_sk_lookup;
use aya_ebpf::programs::SkLookupContext;
use splitter_common::{Class, ListenerValue, Peer, Pool, PrefixTable, Role, Tables};
use splitter_ebpf::steer::{Assigned, Lookup, Sockets};

use crate::log;
use crate::maps::{InForce, Listed, POOLS, listener, listener_at};

const AF_INET6: u32 = 10;

/// Reads a field in one access of its own width: the verifier allows no other.
macro_rules! read {
    ($context:expr, $($field:tt)+) => {
        // SAFETY: the context is the one that the kernel gave the program; every field of it may be
        // read.
        unsafe { (&raw const (*$context).$($field)+).read_volatile() }
    };
}

/// Copies the kernel's question.
#[inline(always)]
pub fn read(context: &SkLookupContext) -> Lookup {
    let context: *const bpf_sk_lookup = context.lookup;
    let protocol = read!(context, protocol) as u8;
    let port = read!(context, local_port) as u16;
    let ifindex = read!(context, ingress_ifindex);
    let (family, peer) = if read!(context, family) == AF_INET6 {
        let high = join(read!(context, remote_ip6[0]), read!(context, remote_ip6[1]));
        let low = join(read!(context, remote_ip6[2]), read!(context, remote_ip6[3]));
        (6, Peer { high, low })
    } else {
        (4, Peer::v4(u32::from_be(read!(context, remote_ip4))))
    };
    Lookup {
        family,
        protocol,
        peer,
        port,
        ifindex,
    }
}

#[inline(always)]
fn join(high: u32, low: u32) -> u64 {
    u64::from(u32::from_be(high)) << 32 | u64::from(u32::from_be(low))
}

/// The maps, and the context in which a socket can be chosen.
pub struct Host<'a> {
    /// The tables.
    pub in_force: InForce<Listed>,
    /// The kernel's question.
    pub context: &'a SkLookupContext,
}

impl Sockets for Host<'_> {
    #[inline(always)]
    fn local(&self) -> [u32; 4] {
        let context: *const bpf_sk_lookup = self.context.lookup;
        if read!(context, family) == AF_INET6 {
            [
                read!(context, local_ip6[0]),
                read!(context, local_ip6[1]),
                read!(context, local_ip6[2]),
                read!(context, local_ip6[3]),
            ]
        } else {
            [read!(context, local_ip4), 0, 0, 0]
        }
    }

    #[inline(always)]
    fn listener(&self, port: u32) -> Option<ListenerValue> {
        listener(port)
    }

    #[inline(always)]
    fn listener_at(&self, key: &[u32; 5]) -> Option<ListenerValue> {
        listener_at(key)
    }

    #[inline(always)]
    fn pool(&self, class: Class) -> Pool {
        self.in_force.pool(class)
    }

    #[inline(always)]
    fn assign(&self, index: u32) -> Assigned {
        POOLS.assign(self.context, index)
    }

    #[inline(always)]
    fn no_socket(&self, pool: Pool) {
        log::no_socket(pool);
    }
}

impl Tables for Host<'_> {
    #[inline(always)]
    fn role(&self, ifindex: u32) -> Role {
        self.in_force.role(ifindex)
    }
    #[inline(always)]
    fn native_routing(&self) -> bool {
        self.in_force.native_routing()
    }
}

impl PrefixTable for Host<'_> {
    #[inline(always)]
    fn index4(&self, top: u16) -> u64 {
        self.in_force.index4(top)
    }
    #[inline(always)]
    fn index6(&self, top: u16) -> u64 {
        self.in_force.index6(top)
    }
    #[inline(always)]
    fn find4(&self, len: u32, addr: u32) -> Option<u32> {
        self.in_force.find4(len, addr)
    }
    #[inline(always)]
    fn find6(&self, len: u32, high: u64, low: u64) -> Option<u32> {
        self.in_force.find6(len, high, low)
    }
}
