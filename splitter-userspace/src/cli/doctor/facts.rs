//! What there is: read, not judged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::config::{Settings, Steering};
use crate::dataplane::{
    Examined, Interface, XdpFeatures, default_interfaces, examine, interfaces, xdp_features,
};

/// The sysctls that are looked at. Those of `net.ipv4` belong to the network namespace.
pub const SYSCTLS: [&str; 11] = [
    "net.core.bpf_jit_enable",
    "net.core.netdev_max_backlog",
    "net.core.somaxconn",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "net.netfilter.nf_conntrack_max",
];

/// A NIC that leads outside.
#[derive(Clone, Debug, Default)]
pub struct Nic {
    /// As the kernel has it.
    pub interface: Interface,
    /// The name of its driver.
    pub driver: String,
    /// What that does of XDP; none where the kernel does not say.
    pub features: Option<XdpFeatures>,
}

/// Everything that was found.
pub struct Facts {
    /// For steering; none where it is not wanted.
    pub steering: Option<Examined>,
    /// The NICs, or why there are none.
    pub nics: Result<Vec<Nic>, String>,
    /// Whether the kernel describes its own types.
    pub btf: bool,
    /// Values by names with dots; those that are not there are missing.
    pub sysctls: BTreeMap<&'static str, String>,
    /// Open files that this process may have, and to how many it may raise that itself.
    pub files: Option<(u64, u64)>,
    /// Connections that netfilter follows now.
    pub followed: Option<u64>,
    /// What the CPUs can do, by the kernel's names.
    pub cpu: Vec<String>,
}

impl Facts {
    /// Looks at everything.
    pub fn gather(settings: &Settings) -> Facts {
        let wanted = settings.steering != Steering::None;
        Facts {
            steering: wanted.then(|| {
                examine(
                    &settings.dataplane.pin_dir,
                    settings.dataplane.cgroup.as_deref(),
                )
            }),
            nics: nics(&settings.dataplane.interfaces),
            btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
            sysctls: sysctls(),
            files: files(&read("/proc/self/limits")),
            followed: read("/proc/sys/net/netfilter/nf_conntrack_count")
                .trim()
                .parse()
                .ok(),
            cpu: cpu_features(&read("/proc/cpuinfo")),
        }
    }
}

/// The sysctls now.
pub fn sysctls() -> BTreeMap<&'static str, String> {
    let read = |name: &'static str| {
        let text = fs::read_to_string(path_of(name)).ok()?;
        let words: Vec<_> = text.split_whitespace().collect();
        Some((name, words.join(" ")))
    };
    SYSCTLS.into_iter().filter_map(read).collect()
}

/// Where a sysctl is.
pub fn path_of(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

fn nics(named: &[String]) -> Result<Vec<Nic>, String> {
    let all = interfaces().map_err(|error| error.to_string())?;
    let defaults = default_interfaces().map_err(|error| error.to_string())?;
    let wanted = |nic: &Interface| match named {
        [] => defaults.contains(&nic.index),
        named => named.contains(&nic.name),
    };
    for name in named {
        if !all.iter().any(|nic| nic.name == *name) {
            return Err(format!("there is no network interface {name}"));
        }
    }
    let found: Vec<_> = all.into_iter().filter(wanted).map(nic).collect();
    match found.is_empty() {
        true => Err("no default route says which one leads outside".to_owned()),
        false => Ok(found),
    }
}

fn nic(interface: Interface) -> Nic {
    let driver = fs::read_link(format!("/sys/class/net/{}/device/driver", interface.name));
    let driver = driver.ok().and_then(|path| {
        let name = path.file_name()?;
        Some(name.to_string_lossy().into_owned())
    });
    Nic {
        driver: driver.unwrap_or_else(|| "virtual".to_owned()),
        features: xdp_features(interface.index).ok().flatten(),
        interface,
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The soft and the hard limit in `/proc/self/limits`.
fn files(limits: &str) -> Option<(u64, u64)> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let mut words = line.split_whitespace();
    let mut next = || match words.next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    };
    Some((next()?, next()?))
}

/// `flags` of x86, `Features` of arm64: those of the first CPU.
fn cpu_features(cpuinfo: &str) -> Vec<String> {
    let line = cpuinfo.lines().find_map(|line| {
        let (name, values) = line.split_once(':')?;
        matches!(name.trim(), "flags" | "Features").then_some(values)
    });
    let words = line.unwrap_or_default().split_whitespace();
    words.map(str::to_owned).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
            Max open files            1024                 unlimited            files\n";
        assert_eq!(files(text), Some((1024, u64::MAX)));
        assert_eq!(files("Max open files"), None);
    }

    #[test]
    fn features_of_both_architectures_are_read() {
        let x86 = cpu_features("processor\t: 0\nflags\t\t: fpu aes avx2\nflags\t\t: none\n");
        assert_eq!(x86, ["fpu", "aes", "avx2"]);
        assert_eq!(
            cpu_features("Features\t: fp aes pmull\n"),
            ["fp", "aes", "pmull"]
        );
        assert!(cpu_features("").is_empty());
    }

    #[test]
    fn this_machine_has_sysctls_and_a_limit() {
        assert!(sysctls().contains_key("net.core.somaxconn"));
        assert!(files(&read("/proc/self/limits")).is_some());
    }
}
