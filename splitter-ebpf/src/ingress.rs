//! What XDP does with a packet from the wire.

use splitter_common::{
    BucketKind, Class, DropReason, Limit, NO_CLASS, Note, PassReason, Peer, Settings, Spoof,
    SpoofAction, Tables, classify,
};

use crate::bucket::{Bucket, take};
use crate::parse::{Packet, Parsed, parse};

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
}

impl Verdict {
    /// Where it is counted.
    #[inline(always)]
    pub fn code(self) -> u32 {
        match self {
            Verdict::Pass(reason) => reason.code(),
            Verdict::Drop(reason) => reason.code(),
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
}

impl Judged {
    /// Something that has no class passes.
    #[inline(always)]
    pub fn without_class(reason: PassReason) -> Judged {
        Judged {
            class: NO_CLASS,
            verdict: Verdict::Pass(reason),
        }
    }
}

/// Judges one packet that came in by the interface `ifindex`.
#[inline(always)]
pub fn judge(node: &impl Node, packet: &impl Packet, ifindex: u32) -> Judged {
    match parse(packet) {
        Ok(parsed) => from_source(node, packet, parsed, ifindex),
        Err(reason) => Judged::without_class(reason),
    }
}

/// Judges a packet whose source is known.
#[inline(always)]
fn from_source(node: &impl Node, packet: &impl Packet, parsed: Parsed, ifindex: u32) -> Judged {
    if parsed.source.is_unspecified() && !parsed.tcp {
        return Judged::without_class(PassReason::Unspecified);
    }
    let origin = classify(node, parsed.source, ifindex);
    let class = origin.class;
    let spoofed = origin
        .spoof
        .and_then(|spoof| act_on(node, class, spoof, packet.size()));
    let dropped = match spoofed {
        None if node.settings().limited != 0 => over_limit(node, &parsed, class),
        spoofed => spoofed,
    };
    Judged {
        class: class.code(),
        verdict: dropped.map_or(Verdict::Pass(parsed.reason), Verdict::Drop),
    }
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
