//! Sizes of the maps. A change of any of them is a new [`SCHEMA`].

/// Version of the maps' layout: part of the pin directory's name, so that an old program and a new
/// one never share a map that they understand differently.
pub const SCHEMA: u32 = 1;

/// Variants of one Split, the stable one among them.
pub const MAX_VARIANTS: usize = 8;

/// Weight slots: Locations that can have weights of their own at one time.
pub const MAX_SLOTS: u32 = 65_536;

/// Prefixes of one family, both buffers together.
pub const MAX_PREFIXES: u32 = 65_536;

/// Entries of a prefix index: one for each value of an address's top 16 bits, in two buffers.
pub const INDEX_ENTRIES: u32 = 2 * 65_536;

/// Different prefix lengths above 16 that one index entry can name.
pub const MAX_LENGTHS: usize = 7;

/// Own IPv4 addresses of the node that are found without a look at the prefix tables.
pub const MAX_OWN: usize = 4;

/// Interfaces that lead outside.
pub const MAX_EXTERNAL: usize = 16;

/// Addresses and ports that are ours.
pub const MAX_LISTENERS: u32 = 64;

/// Pools of one listener; see [`crate::Pool`].
pub const POOLS: u32 = 2;

/// Sockets in the pool map: one for each listener and pool.
pub const MAX_POOL_SOCKETS: u32 = MAX_LISTENERS * POOLS;

/// CPUs that one pool's packets can be moved to; a power of two.
pub const MAX_SET_CPUS: usize = 128;

/// Token buckets of single sources; the least recently used makes room.
pub const MAX_SOURCES: u32 = 65_536;

/// IPv6 extension headers that the parser walks before it passes the packet on unparsed.
pub const MAX_EXTENSIONS: usize = 6;

/// VLAN tags that the parser skips.
pub const MAX_VLAN_TAGS: usize = 2;

/// Service ports that are split where processes of the node connect to their own addresses; a power of
/// two.
pub const MAX_CONNECT_SERVICES: u32 = 4_096;

/// Addresses of these.
pub const MAX_CONNECT_ADDRESSES: u32 = 2 * MAX_CONNECT_SERVICES;

/// Endpoints of these, those of lists that are being replaced among them.
pub const MAX_CONNECT_ENDPOINTS: u32 = 262_144;

/// Service ports that XDP forwards to, twice for a moment while they change.
pub const MAX_BALANCED: u32 = 32_768;

/// Addresses and ports at which they are asked for.
pub const MAX_FRONTS: u32 = 65_536;

/// Endpoints of these.
pub const MAX_TARGETS: u32 = 65_536;

/// Parts of rings, of [`crate::RING_PART`] places each, for all Variants of all of these.
pub const MAX_RING_PARTS: u32 = 262_144;

/// Variants that are counted.
pub const MAX_TRAFFIC: u32 = 16_384;

/// Directions of flows, two for each flow, in each of both tables; the least recently used makes room.
pub const MAX_FLOWS: u32 = 131_072;

/// Datagrams in pieces whose ports are remembered; the least recently used makes room.
pub const MAX_FRAGMENTS: u32 = 16_384;

/// Entries of the map `l4_ports`: one for each [`crate::PORTS_EACH`] ports.
pub const MAX_PORTS: u32 = 65_536 / crate::PORTS_EACH as u32;

/// Longest map name that the kernel takes.
pub const MAX_MAP_NAME: usize = 15;
