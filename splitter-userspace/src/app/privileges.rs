//! What the process may do: as little as it can, from its start on, and less once it serves.
//!
//! Capabilities belong to threads. Those that serve requests, write logs and read files are started
//! without any; the control thread keeps what following NICs and writing maps takes, where there is
//! steering, and opening ports where ConfigMaps do. None of them can get any back, nor can a program that they would execute.

use std::thread;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// What is needed after the start where there is steering: to attach XDP to another NIC, and, before
/// Linux 5.19, to write maps.
const STEERING: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::BPF);

/// Gives up for good what is never needed: privileges by executing something, and being read by other
/// processes of the same user or written to a core dump, keys and all. To be called before there is
/// another thread.
pub fn harden() {
    let steps = [
        ("no_new_privs", set_no_new_privs(true)),
        (
            "not dumpable",
            set_dumpable_behavior(DumpableBehavior::NotDumpable),
        ),
        (
            "no core dumps",
            setrlimit(
                Resource::Core,
                Rlimit {
                    current: Some(0),
                    maximum: Some(0),
                },
            ),
        ),
    ];
    for (step, done) in steps {
        if let Err(error) = done {
            tracing::warn!(%error, step, "a privilege could not be given up");
        }
    }
}

/// Starts what starts threads: they get no capability. What it needs itself it must be able to do
/// without any.
pub fn without<T: Send>(start: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let done = scope.spawn(|| {
            drop_all();
            start()
        });
        match done.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Takes every capability from this thread, and from those that it starts.
pub fn drop_all() {
    keep(CapabilitySet::empty());
}

/// Leaves this thread what it needs from now on: for steering, and to open ports of the node below 1024
/// whenever a ConfigMap names one.
pub fn serve(steering: bool, ports: bool) {
    let of = |wanted, set| if wanted { set } else { CapabilitySet::empty() };
    keep(of(steering, STEERING) | of(ports, CapabilitySet::NET_BIND_SERVICE));
}

fn keep(wanted: CapabilitySet) {
    if let Err(error) = try_keep(wanted) {
        tracing::warn!(%error, "capabilities that are not needed could not be given up");
    }
}

fn try_keep(wanted: CapabilitySet) -> rustix::io::Result<()> {
    let had = capabilities(None)?;
    let kept = still_needed(wanted, had.permitted);
    if had.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(kept).iter() {
            // A kernel that does not know one has none to take away.
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )
}

/// Of what is wanted, what is there. CAP_SYS_ADMIN stays where it is there in place of CAP_BPF.
fn still_needed(wanted: CapabilitySet, permitted: CapabilitySet) -> CapabilitySet {
    let kept = wanted & permitted;
    match wanted.contains(CapabilitySet::BPF) && !kept.contains(CapabilitySet::BPF) {
        true => kept | (CapabilitySet::SYS_ADMIN & permitted),
        false => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_kept_if_it_is_there() {
        let (admin, bpf) = (CapabilitySet::NET_ADMIN, CapabilitySet::BPF);
        let all = CapabilitySet::all();
        assert_eq!(still_needed(STEERING, all), admin | bpf);
        assert_eq!(still_needed(STEERING, admin), admin);
        let old = admin | CapabilitySet::SYS_ADMIN | CapabilitySet::PERFMON;
        assert_eq!(
            still_needed(STEERING, old),
            admin | CapabilitySet::SYS_ADMIN
        );
        let none = CapabilitySet::empty();
        assert_eq!(still_needed(none, all), none);
        assert_eq!(still_needed(STEERING, none), none);
    }

    #[test]
    fn threads_that_are_started_without_have_none_and_others_keep_theirs() {
        let of_thread = || capabilities(None).map(|it| it.permitted);
        let before = of_thread();
        let none = CapabilitySet::empty();
        let (own, childs) = without(|| (of_thread(), thread::spawn(of_thread).join()));
        assert_eq!(own, Ok(none));
        assert!(matches!(childs, Ok(Ok(it)) if it == none));
        assert_eq!(of_thread(), before);
    }
}
