//! The capabilities that loading and attaching needs, asked for before anything is tried.

use std::fs;

use super::error::DataplaneError;

const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Checks that this thread may load and attach network programs.
///
/// # Errors
/// Names the first capability that is missing.
pub fn check() -> Result<(), DataplaneError> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    match missing(effective(&status)) {
        None => Ok(()),
        Some((name, what)) => Err(DataplaneError::NoCapability { name, what }),
    }
}

/// The effective capabilities in a status file; all of them where it cannot be read, so that the
/// kernel's own answer counts.
fn effective(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.unwrap_or(u64::MAX)
}

fn missing(bits: u64) -> Option<(&'static str, &'static str)> {
    let has = |capability: u32| bits & (1 << capability) != 0;
    if !has(CAP_NET_ADMIN) {
        return Some((
            "CAP_NET_ADMIN",
            "to attach programs to interfaces and the network namespace",
        ));
    }
    // CAP_SYS_ADMIN is what the others were a part of, and still includes them.
    if !has(CAP_BPF) && !has(CAP_SYS_ADMIN) {
        return Some(("CAP_BPF", "to make maps and load programs"));
    }
    if !has(CAP_PERFMON) && !has(CAP_SYS_ADMIN) {
        return Some((
            "CAP_PERFMON",
            "without it the kernel refuses the programs' arithmetic with pointers",
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_capability_is_named() {
        let name = |bits| missing(bits).map(|(name, _)| name);
        assert_eq!(name(u64::MAX), None);
        assert_eq!(name(0), Some("CAP_NET_ADMIN"));
        assert_eq!(name(1 << CAP_NET_ADMIN), Some("CAP_BPF"));
        let without = 1 << CAP_NET_ADMIN | 1 << CAP_BPF;
        assert_eq!(name(without), Some("CAP_PERFMON"));
        assert_eq!(name(without | 1 << CAP_PERFMON), None);
        assert_eq!(name(1 << CAP_NET_ADMIN | 1 << CAP_SYS_ADMIN), None);
    }

    #[test]
    fn the_status_file_is_read() {
        let status = "Name:\tsplitter\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000001000\n";
        assert_eq!(effective(status), 1 << CAP_NET_ADMIN);
        assert_eq!(effective("nothing"), u64::MAX);
    }
}
