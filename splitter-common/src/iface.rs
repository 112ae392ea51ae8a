use crate::layout::layout;

/// What an interface is to the node, in the map `ifaces`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Iface {
    /// A [`Role`] code.
    pub role: u32,
}

layout!(Iface, size 4, align 4, { role: 0 });

/// The roles of interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Role {
    /// Not in the table: a pod's veth, a bridge, a tunnel.
    Inner = 0,
    /// A NIC: leads out of the cluster.
    External = 1,
    /// Nothing is known of the interface: user space without steering.
    Unseen = 2,
}

impl Role {
    /// The number in maps.
    #[inline(always)]
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The role of a number in a map; a number that means nothing is [`Role::External`], which is
    /// trusted least.
    #[inline(always)]
    pub const fn from_code(code: u32) -> Role {
        match code {
            0 => Role::Inner,
            2 => Role::Unseen,
            _ => Role::External,
        }
    }
}
