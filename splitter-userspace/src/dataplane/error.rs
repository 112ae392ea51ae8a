use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the data plane cannot do what was asked, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum DataplaneError {
    /// The build had no toolchain for the kernel programs.
    #[error(
        "this splitter was built without kernel programs:\n{0}\nor run it with --steering none"
    )]
    NoPrograms(String),

    /// A capability is missing.
    #[error(
        "steering needs the capability {name} ({what}), which this process does not have; in a \
         pod, add it to securityContext.capabilities.add"
    )]
    NoCapability {
        /// `CAP_…`.
        name: &'static str,
        /// What it is for.
        what: &'static str,
    },

    /// The pin directory is not on a BPF file system.
    #[error(
        "{dir} is not on a BPF file system ({found}); run `mount -t bpf bpf /sys/fs/bpf`, in a pod \
         mount the host's /sys/fs/bpf, or name another place with --pin-dir"
    )]
    NotBpffs {
        /// The pin directory.
        dir: PathBuf,
        /// The file system that is there.
        found: String,
    },

    /// Another process uses the pin directory.
    #[error(
        "the data plane under {dir} belongs to the running process {pid}; stop it, or give this \
         one a directory of its own with --pin-dir"
    )]
    InUse {
        /// The pin directory.
        dir: PathBuf,
        /// Process id as its own namespace counts.
        pid: u32,
    },

    /// The pin directory has no data plane.
    #[error("there is no data plane under {dir}: is splitter running, and with this --pin-dir?")]
    Nothing {
        /// The pin directory.
        dir: PathBuf,
    },

    /// A file of the pin directory cannot be used.
    #[error("{what} {path}: {source}")]
    Pin {
        /// What was being done.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },

    /// A map came out without type information.
    #[error(
        "the map {map} has no BTF, so that nobody could read it: the kernel took none of the \
         programs' type information; SPLITTER_LOG=info,aya=warn shows its reason, a kernel from \
         5.18 takes it, and --steering none does without"
    )]
    NoBtf {
        /// The map's name.
        map: &'static str,
    },

    /// The object is not what this program expects.
    #[error("the kernel programs do not fit this splitter: {0}")]
    Mismatch(String),

    /// The kernel did not load the programs.
    #[error("the kernel refuses the {program} program: {reason}{}", hint(.kernel))]
    Refused {
        /// Which program, or the object as a whole.
        program: &'static str,
        /// The kernel's reason with the end of the verifier's log.
        reason: String,
        /// Kernel release.
        kernel: String,
    },

    /// There is no such interface.
    #[error("there is no network interface {0:?}; name one that exists with --interface")]
    NoInterface(String),

    /// More interfaces than the settings have room for.
    #[error("{found} interfaces are more than the {limit} that can lead outside")]
    TooManyInterfaces {
        /// How many were named.
        found: usize,
        /// How many there can be.
        limit: usize,
    },

    /// No interface was named and none found.
    #[error("no default route says which interface leads outside; name it with --interface")]
    NoDefaultRoute,

    /// An interface has an XDP program of somebody else.
    #[error(
        "{interface} already has the XDP program {id} of another owner, which is left alone; \
         remove it there, or use --steering sk-lookup"
    )]
    Occupied {
        /// The interface.
        interface: String,
        /// Program id, as `bpftool prog show id` takes it.
        id: u32,
    },

    /// An interface does not take the program.
    #[error(
        "{interface} (driver {driver}, MTU {mtu}) does not take a native XDP program: {reason}; \
         its driver may have no XDP, too few queues or a feature such as LRO in the way, or the \
         MTU may be too large for it; use --steering sk-lookup"
    )]
    NoNativeXdp {
        /// The interface.
        interface: String,
        /// Its driver.
        driver: String,
        /// Its MTU in bytes.
        mtu: u32,
        /// The kernel's reason.
        reason: String,
    },

    /// An interface's packets do not fit into one page.
    #[error(
        "{interface}, MTU {mtu}, does not take a native XDP program: {reason}; packets must come in one \
         piece, up to an MTU of {limit}: `ip link set {interface} mtu {limit}`, or --steering sk-lookup"
    )]
    MtuTooLarge {
        /// The interface.
        interface: String,
        /// Its MTU in bytes.
        mtu: u32,
        /// The largest that fits, see [`XDP_MTU`].
        limit: u32,
        /// The kernel's reason.
        reason: String,
    },

    /// The sk_lookup program cannot be attached.
    #[error("cannot attach sk_lookup to this network namespace: {reason}")]
    NoLookup {
        /// The kernel's reason.
        reason: String,
    },

    /// A hook of a cgroup takes no program.
    #[error("{0}")]
    NoHook(String),

    /// A socket cannot stand in a pool.
    #[error("the socket for {addr} cannot take connections for its pool: {why}")]
    Socket {
        /// The listener.
        addr: SocketAddr,
        /// What is wrong with it.
        why: &'static str,
    },

    /// All places for listeners are taken.
    #[error("no place is left for the listener {addr}: {limit} are the limit")]
    TooManyListeners {
        /// The listener that found none.
        addr: SocketAddr,
        /// How many there can be.
        limit: u32,
    },

    /// A map could not be read or written.
    #[error("cannot {what} the map {map}: {source}")]
    Map {
        /// `read`, `write` or `map`.
        what: &'static str,
        /// The map's name.
        map: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },

    /// The kernel's own tables could not be read.
    #[error("cannot read the {what} of this network namespace: {source}")]
    Netlink {
        /// What was asked for.
        what: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// The largest MTU whose packets fit into a page of 4 KiB with the room that XDP takes: 256 bytes in
/// front, 320 behind (`skb_shared_info`), 14 of Ethernet and 8 of two VLAN tags.
pub const XDP_MTU: u32 = 4_096 - 256 - 320 - 14 - 8;

/// What a refused program may mean on this kernel.
fn hint(kernel: &str) -> String {
    let mut numbers = kernel.split('.').map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < (5, 18) {
        format!("; this kernel is {kernel}, and steering needs 5.18 or later")
    } else {
        format!(" (kernel {kernel})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_programs_says_what_was_missing_and_what_to_do() {
        let error = DataplaneError::NoPrograms("bpf-linker is missing: cargo xtask setup".into());
        let text = error.to_string();
        assert!(text.contains("built without kernel programs"), "{text}");
        assert!(text.contains("cargo xtask setup"), "{text}");
        assert!(text.contains("--steering none"), "{text}");
    }

    #[test]
    fn a_kernel_that_takes_no_types_is_an_error_with_its_remedy() {
        let text = DataplaneError::NoBtf { map: "splits" }.to_string();
        assert!(text.contains("splits") && text.contains("5.18"), "{text}");
        assert!(text.contains("--steering none"), "{text}");
    }

    #[test]
    fn an_old_kernel_is_named_as_the_likely_reason() {
        assert!(hint("5.10.0-30-amd64").contains("needs 5.18"));
        assert_eq!(hint("6.1.0"), " (kernel 6.1.0)");
    }
}
