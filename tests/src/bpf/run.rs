//! Running a loaded program once, on a packet or a look-up made by hand.

#![allow(
    unsafe_code,
    reason = "BPF_PROG_TEST_RUN has no form in aya for sk_lookup; the block says why it is sound"
)]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Instant;

const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_LINK_CREATE: libc::c_long = 28;

/// `bpf_attr` of [`BPF_PROG_TEST_RUN`].
#[derive(Default)]
#[repr(C)]
struct Attr {
    program: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    pad: u32,
}

/// The kernel's `bpf_sk_lookup`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Lookup {
    cookie: u64,
    family: u32,
    protocol: u32,
    remote_ip4: u32,
    remote_ip6: [u32; 4],
    remote_port: u16,
    pad: u16,
    local_ip4: u32,
    local_ip6: [u32; 4],
    local_port: u32,
    ifindex: u32,
    tail: u32,
}

const _: () = assert!(size_of::<Lookup>() == 72);

fn bpf<T>(command: libc::c_long, attr: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the structure is the kernel's for this call, and the addresses in it are of buffers
    // as long as it says, which live through the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attr),
            size_of::<T>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Runs a program; gives the nanoseconds of one run.
fn run(attr: &mut Attr) -> io::Result<f64> {
    let start = Instant::now();
    bpf(BPF_PROG_TEST_RUN, attr)?;
    Ok(start.elapsed().as_nanos() as f64 / f64::from(attr.repeat.max(1)))
}

/// The start of `bpf_attr` of [`BPF_PROG_LOAD`].
#[repr(C)]
struct LoadAttr {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    attach: u32,
}

/// An XDP program that lets everything pass and does nothing else: what others are measured by.
///
/// # Errors
/// Without the rights.
pub fn pass_program() -> io::Result<OwnedFd> {
    const XDP: u32 = 6;
    returning(XDP, 37, XDP_PASS)
}

/// The same for sk_lookup: it leaves every look-up to the kernel.
///
/// # Errors
/// Without the rights.
pub fn pass_lookup() -> io::Result<OwnedFd> {
    const SK_LOOKUP: u32 = 30;
    const SK_PASS: u32 = 1;
    returning(SK_LOOKUP, 36, SK_PASS)
}

/// A program that returns a number. Kind of program and of attachment are the kernel's numbers.
fn returning(kind: u32, attach: u32, number: u32) -> io::Result<OwnedFd> {
    // r0 = number; exit
    let code = [u64::from(number) << 32 | 0xb7, 0x95];
    let license = *b"GPL\0";
    let mut attr = LoadAttr {
        kind,
        instructions: code.len() as u32,
        code: code.as_ptr().addr() as u64,
        license: license.as_ptr().addr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: [0; 16],
        ifindex: 0,
        attach,
    };
    let fd = bpf(BPF_PROG_LOAD, &mut attr)?;
    // SAFETY: the kernel has just made the descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// `bpf_attr` of [`BPF_LINK_CREATE`].
#[repr(C)]
struct LinkAttr {
    program: u32,
    ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// Attaches an XDP program to an interface of the calling thread's namespace. Until it is attached
/// somewhere, each test run pays for making the kernel's direct call to it, some milliseconds.
///
/// # Errors
/// The kernel's.
pub fn attach_xdp(program: BorrowedFd<'_>, ifindex: u32) -> io::Result<OwnedFd> {
    const XDP: u32 = 37;
    let mut attr = LinkAttr {
        program: program.as_raw_fd() as u32,
        ifindex,
        attach_type: XDP,
        flags: 0,
    };
    let fd = bpf(BPF_LINK_CREATE, &mut attr)?;
    // SAFETY: the kernel has just made the descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// What an XDP program did.
#[derive(Clone, Debug, PartialEq)]
pub struct XdpRun {
    /// `XDP_…`
    pub action: u32,
    /// The packet afterwards.
    pub packet: Vec<u8>,
    /// Nanoseconds of one run, on average; the kernel's own figure has no fraction.
    pub nanoseconds: f64,
}

/// The action that drops.
pub const XDP_DROP: u32 = 1;
/// The action that passes.
pub const XDP_PASS: u32 = 2;
/// The action that moves a packet elsewhere.
pub const XDP_REDIRECT: u32 = 4;

/// Runs an XDP program on a packet, `repeat` times.
///
/// # Errors
/// The kernel's: it takes no packet without an Ethernet header, for one.
pub fn xdp(program: BorrowedFd<'_>, packet: &[u8], repeat: u32) -> io::Result<XdpRun> {
    let mut out = vec![0u8; packet.len() + 256];
    let mut attr = Attr {
        program: program.as_raw_fd() as u32,
        data_size_in: packet.len() as u32,
        data_size_out: out.len() as u32,
        data_in: packet.as_ptr().addr() as u64,
        data_out: out.as_mut_ptr().addr() as u64,
        repeat,
        ..Attr::default()
    };
    let nanoseconds = run(&mut attr)?;
    out.truncate(attr.data_size_out as usize);
    Ok(XdpRun {
        action: attr.retval,
        packet: out,
        nanoseconds,
    })
}

/// What an sk_lookup program did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LookupRun {
    /// 1: go on with the chosen socket, or the kernel's own search; 0: no socket.
    pub verdict: u32,
    /// Cookie of the chosen socket; 0: none.
    pub cookie: u64,
    /// Nanoseconds of one run, on average; the kernel's own figure has no fraction.
    pub nanoseconds: f64,
}

/// Runs an sk_lookup program for a connection, `repeat` times. The kernel takes no interface
/// number in a test run: the program sees 0.
///
/// # Errors
/// The kernel's: it takes no socket of a SO_REUSEPORT group in a test run, for one.
pub fn lookup(
    program: BorrowedFd<'_>,
    protocol: u32,
    peer: SocketAddr,
    local: SocketAddr,
    repeat: u32,
) -> io::Result<LookupRun> {
    let mut context = Lookup {
        protocol,
        remote_port: peer.port().to_be(),
        local_port: u32::from(local.port()),
        ..Lookup::default()
    };
    match (peer.ip(), local.ip()) {
        (IpAddr::V4(peer), IpAddr::V4(local)) => {
            context.family = libc::AF_INET as u32;
            context.remote_ip4 = peer.to_bits().to_be();
            context.local_ip4 = local.to_bits().to_be();
        }
        (IpAddr::V6(peer), IpAddr::V6(local)) => {
            context.family = libc::AF_INET6 as u32;
            context.remote_ip6 = words(peer.octets());
            context.local_ip6 = words(local.octets());
        }
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    }
    let mut out = Lookup::default();
    let mut attr = Attr {
        program: program.as_raw_fd() as u32,
        repeat,
        ctx_size_in: size_of::<Lookup>() as u32,
        ctx_size_out: size_of::<Lookup>() as u32,
        ctx_in: (&raw const context).addr() as u64,
        ctx_out: (&raw mut out).addr() as u64,
        ..Attr::default()
    };
    let nanoseconds = run(&mut attr)?;
    Ok(LookupRun {
        verdict: attr.retval,
        cookie: out.cookie,
        nanoseconds,
    })
}

fn words(octets: [u8; 16]) -> [u32; 4] {
    std::array::from_fn(|n| {
        let [a, b, c, d] = [
            octets[4 * n],
            octets[4 * n + 1],
            octets[4 * n + 2],
            octets[4 * n + 3],
        ];
        u32::from_ne_bytes([a, b, c, d])
    })
}
