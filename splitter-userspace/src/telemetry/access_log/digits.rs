//! Numbers and addresses of log lines. `write!` costs some hundred instructions for each, and a line
//! has a dozen.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The digits of a number, at least `least` of them.
pub(super) fn decimal(out: &mut Vec<u8>, mut number: u64, least: usize) {
    let mut digits = [b'0'; 20];
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        if number == 0 && used >= least {
            break;
        }
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        used += 1;
    }
    out.extend_from_slice(digits.get(20 - used..).unwrap_or_default());
}

/// Seconds with six places, to the nearest microsecond.
pub(super) fn seconds(out: &mut Vec<u8>, time: Duration) {
    let time = time.saturating_add(Duration::from_nanos(500));
    decimal(out, time.as_secs(), 1);
    out.push(b'.');
    decimal(out, u64::from(time.subsec_micros()), 6);
}

/// Seconds with three places, to the nearest millisecond.
pub(super) fn millis(out: &mut Vec<u8>, time: Duration) {
    let time = time.saturating_add(Duration::from_micros(500));
    decimal(out, time.as_secs(), 1);
    out.push(b'.');
    decimal(out, u64::from(time.subsec_millis()), 3);
}

/// An address as everybody writes it.
pub(super) fn address(out: &mut Vec<u8>, address: IpAddr) {
    let IpAddr::V4(address) = address else {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{address}");
        return;
    };
    for (place, octet) in address.octets().into_iter().enumerate() {
        if place > 0 {
            out.push(b'.');
        }
        decimal(out, u64::from(octet), 1);
    }
}

/// An address and a port.
pub(super) fn socket(out: &mut Vec<u8>, addr: SocketAddr) {
    let SocketAddr::V4(addr) = addr else {
        let _ = write!(out, "{addr}");
        return;
    };
    address(out, (*addr.ip()).into());
    out.push(b':');
    decimal(out, u64::from(addr.port()), 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_does() {
        for number in [0, 1, 9, 10, 99, 12_345, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(written(|out| decimal(out, number, 1)), format!("{number}"));
            let three = written(|out| decimal(out, number, 3));
            assert_eq!(three, format!("{number:03}"));
        }
    }

    #[test]
    fn times_are_rounded_to_microseconds() {
        for (nanos, text) in [
            (0, "0.000000"),
            (499, "0.000000"),
            (500, "0.000001"),
            (1_234_567_499, "1.234567"),
            (59_999_999_500, "60.000000"),
        ] {
            assert_eq!(
                written(|out| seconds(out, Duration::from_nanos(nanos))),
                text
            );
        }
    }

    #[test]
    fn times_are_rounded_to_milliseconds() {
        for (micros, text) in [
            (0, "0.000"),
            (499, "0.000"),
            (500, "0.001"),
            (1_234_499, "1.234"),
            (59_999_500, "60.000"),
        ] {
            assert_eq!(
                written(|out| millis(out, Duration::from_micros(micros))),
                text
            );
        }
    }

    #[test]
    fn addresses_are_written_as_the_standard_library_does() {
        for text in [
            "0.0.0.0",
            "192.0.2.7",
            "255.255.255.255",
            "::1",
            "2001:db8::1",
        ] {
            let ip: Result<IpAddr, _> = text.parse();
            let ip = ip.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::BROADCAST));
            assert_eq!(written(|out| address(out, ip)), text);
            let addr = SocketAddr::new(ip, 8080);
            assert_eq!(written(|out| socket(out, addr)), addr.to_string());
        }
    }
}
