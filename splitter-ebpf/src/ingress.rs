//! What XDP does with a packet from the wire.

use splitter_common::{
    BucketKind, Class, DropReason, Limit, NO_CLASS, Note, PassReason, Peer, Pool, Settings, Spoof,
    SpoofAction, Tables, classify,
};

use crate::bucket::{Bucket, take};
use crate::parse::{Network, Packet, Parsed, ipv4, ipv6, link, usual};

/// What [`judge`] reads and writes beside the packet.
pub trait Node: Tables {
    /// A token bucket.
    type Bucket: Bucket;
    /// The settings in force.
    fn settings(&self) -> &Settings;
    /// The monotonic clock, in nanoseconds.
    fn now(&self) -> u64;
    /// Counts what was noticed of a packet of this class without ending its way.
    fn note(&self, class: Class, note: Note, bytes: u64);
    /// The bucket of a class.
    fn class_bucket(&self, class: Class, kind: BucketKind) -> Option<Self::Bucket>;
    /// The bucket of a source's prefix, made if there is none.
    fn source_bucket(&self, source: Peer, kind: BucketKind) -> Option<Self::Bucket>;
}

/// What becomes of a packet, and why.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Goes on to the kernel.
    Pass(PassReason),
    /// Ends here.
    Drop(DropReason),
    /// Goes on to the kernel on this CPU.
    Move(u32),
}

impl Verdict {
    /// Where it is counted.
    #[inline(always)]
    pub fn code(self) -> u32 {
        match self {
            Verdict::Pass(reason) => reason.code(),
            Verdict::Drop(reason) => reason.code(),
            Verdict::Move(_) => PassReason::Moved.code(),
        }
    }
}

/// A verdict, and whose packet it is about.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// A [`Class`] code, or [`NO_CLASS`].
    pub class: u32,
    /// What becomes of the packet.
    pub verdict: Verdict,
    /// Its length, from the Ethernet header on.
    pub bytes: u64,
}

impl Judged {
    /// Something that has no class passes.
    #[inline(always)]
    pub fn without_class(reason: PassReason, bytes: u64) -> Judged {
        Judged {
            class: NO_CLASS,
            verdict: Verdict::Pass(reason),
            bytes,
        }
    }
}

/// Judges one packet that came in by the interface `ifindex`.
///
/// The families part at the first branch and do not meet again: what is known of one need not be
/// asked again.
#[inline(always)]
pub fn judge(node: &impl Node, packet: &impl Packet, ifindex: u32) -> Judged {
    if let Some((parsed, bytes)) = usual(packet) {
        return from_source(node, parsed, bytes, ifindex);
    }
    let bytes = packet.size();
    let parsed = match link(packet) {
        Ok(Network::V4(at)) => match ipv4(packet, at) {
            Ok(parsed) => return from_source(node, parsed, bytes, ifindex),
            Err(reason) => Err(reason),
        },
        Ok(Network::V6(at)) => ipv6(packet, at),
        Err(reason) => Err(reason),
    };
    match parsed {
        Ok(parsed) => from_source(node, parsed, bytes, ifindex),
        Err(reason) => Judged::without_class(reason, bytes),
    }
}

/// Judges a packet whose source is known.
#[inline(always)]
fn from_source(node: &impl Node, parsed: Parsed, bytes: u64, ifindex: u32) -> Judged {
    let origin = classify(node, parsed.source, ifindex);
    let class = origin.class;
    if let Some(spoof) = origin.spoof {
        if parsed.source.is_unspecified() && !parsed.tcp {
            return Judged::without_class(PassReason::Unspecified, bytes);
        }
        if let Some(reason) = act_on(node, class, spoof, bytes) {
            return Judged {
                class: class.code(),
                verdict: Verdict::Drop(reason),
                bytes,
            };
        }
    }
    let verdict = match node.settings().special {
        0 => Verdict::Pass(parsed.reason),
        _ => match over_limit(node, &parsed, class) {
            Some(reason) => Verdict::Drop(reason),
            None => onward(node.settings(), &parsed, class),
        },
    };
    Judged {
        class: class.code(),
        verdict,
        bytes,
    }
}

/// Where a packet that nothing speaks against goes on: on a CPU of its pool, if that has some.
#[inline(always)]
fn onward(settings: &Settings, parsed: &Parsed, class: Class) -> Verdict {
    let pool = Pool::from_code(settings.pool[class as usize]);
    let cpus = &settings.cpus[pool as usize];
    if cpus.count == 0 {
        return Verdict::Pass(parsed.reason);
    }
    Verdict::Move(cpus.of_flow(flow(parsed)))
}

/// A number that all packets of a flow have in common, and few others.
#[inline(always)]
fn flow(parsed: &Parsed) -> u32 {
    let Peer { high, low } = parsed.source;
    let mixed = low ^ high.rotate_left(31) ^ (u64::from(parsed.ports) << 16);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// Counts or drops a source that cannot be real, as the settings say.
#[inline(always)]
fn act_on(node: &impl Node, class: Class, spoof: Spoof, bytes: u64) -> Option<DropReason> {
    let (drop, note) = match spoof {
        Spoof::OwnAddress => (DropReason::OwnAddress, Note::OwnAddress),
        Spoof::OwnPods => (DropReason::OwnPods, Note::OwnPods),
        Spoof::Loopback => (DropReason::Loopback, Note::Loopback),
        Spoof::Martian => (DropReason::Martian, Note::Martian),
        Spoof::Cluster => (DropReason::Cluster, Note::Cluster),
    };
    match SpoofAction::from_code(node.settings().spoof[spoof as usize]) {
        SpoofAction::Off => None,
        SpoofAction::Count => {
            node.note(class, note, bytes);
            None
        }
        SpoofAction::Drop => Some(drop),
    }
}

/// The limit that the packet exceeds, if any. The source's own come first, so that a flooder is
/// stopped before it takes from its class.
#[inline(always)]
fn over_limit(node: &impl Node, parsed: &Parsed, class: Class) -> Option<DropReason> {
    let settings = node.settings();
    let class_packets = settings.class_packets[class as usize];
    let class_syn = settings.class_syn[class as usize];
    let syn = parsed.syn;
    if !of_source(
        node,
        settings.source_packets,
        parsed.source,
        BucketKind::Packets,
    ) {
        return Some(DropReason::SourcePackets);
    }
    if syn && !of_source(node, settings.source_syn, parsed.source, BucketKind::Syn) {
        return Some(DropReason::SourceSyn);
    }
    if !of_class(node, class_packets, class, BucketKind::Packets) {
        return Some(DropReason::ClassPackets);
    }
    if syn && !of_class(node, class_syn, class, BucketKind::Syn) {
        return Some(DropReason::ClassSyn);
    }
    None
}

#[inline(always)]
fn of_source(node: &impl Node, limit: Limit, source: Peer, kind: BucketKind) -> bool {
    if limit.rate == 0 {
        return true;
    }
    // Without memory for a bucket there is no limit: the class's own still holds.
    match node.source_bucket(source, kind) {
        Some(bucket) => take(&bucket, limit, node.now()),
        None => true,
    }
}

#[inline(always)]
fn of_class(node: &impl Node, limit: Limit, class: Class, kind: BucketKind) -> bool {
    if limit.rate == 0 {
        return true;
    }
    match node.class_bucket(class, kind) {
        Some(bucket) => take(&bucket, limit, node.now()),
        None => true,
    }
}

#[cfg(test)]
#[path = "ingress_tests.rs"]
mod tests;
