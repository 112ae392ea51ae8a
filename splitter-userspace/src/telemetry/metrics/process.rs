use std::fs;

/// What the kernel says about this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Process {
    pub(super) cpu_seconds: f64,
    pub(super) resident_bytes: u64,
    pub(super) virtual_bytes: u64,
}

/// Clock ticks a second in /proc: fixed in the kernel's interface on every architecture we build
/// for.
const TICKS: f64 = 100.0;

impl Process {
    /// Reads /proc; none where it is not mounted.
    pub(super) fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let status = fs::read_to_string("/proc/self/status").ok()?;
        Self::parse(&stat, &status)
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The second field is a name in brackets that may hold anything, brackets and spaces too.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace().skip(11);
        let user: u64 = fields.next()?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        #[allow(clippy::cast_precision_loss, reason = "ticks stay far below 2^52")]
        let cpu_seconds = (user + system) as f64 / TICKS;
        Some(Process {
            cpu_seconds,
            resident_bytes: kilobytes(status, "VmRSS:")?,
            virtual_bytes: kilobytes(status, "VmSize:")?,
        })
    }
}

/// A line such as `VmRSS:      1234 kB`, in bytes.
fn kilobytes(status: &str, name: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nVmSize:\t    2048 kB\nVmRSS:\t   1024 kB\n";

    #[test]
    fn a_name_with_brackets_and_spaces_moves_no_field() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 250 50 13 14";
        for name in ["x", "a b", ") 1 2", "(("] {
            let process = Process::parse(&format!("7 ({name}) {rest}"), STATUS);
            let expected = Process {
                cpu_seconds: 3.0,
                resident_bytes: 1024 * 1024,
                virtual_bytes: 2048 * 1024,
            };
            assert_eq!(process, Some(expected), "{name}");
        }
    }

    #[test]
    fn what_is_not_as_expected_is_none() {
        for (stat, status) in [("", STATUS), ("7 (x) S 1", STATUS), ("7 (x) S 1 2 3", "")] {
            assert_eq!(Process::parse(stat, status), None);
        }
    }

    #[test]
    fn this_process_has_memory() {
        let process = Process::read().unwrap_or_default();
        assert!(process.resident_bytes > 100_000);
        assert!(process.virtual_bytes >= process.resident_bytes);
    }
}
