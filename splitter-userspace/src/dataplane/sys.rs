//! The few system calls that aya has no form of.

#![allow(
    unsafe_code,
    reason = "bpf(2), membarrier(2) and getsockopt(2) have no safe form; every block says why it \
              is sound"
)]

use std::ffi::CString;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_MAP_DELETE_ELEM: libc::c_long = 3;
const BPF_OBJ_GET: libc::c_long = 7;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_PROG_QUERY: libc::c_long = 16;
const BPF_LINK_DETACH: libc::c_long = 34;

/// `bpf_attr` of the calls that take a key and a value.
#[repr(C)]
struct ElementAttr {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// `bpf_attr` of [`BPF_OBJ_GET_INFO_BY_FD`].
#[repr(C)]
struct InfoAttr {
    fd: u32,
    len: u32,
    info: u64,
}

/// The start of the kernel's `bpf_map_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MapInfo {
    /// `BPF_MAP_TYPE_…`
    pub kind: u32,
    /// Number of the map.
    pub id: u32,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// How many entries it can have.
    pub max_entries: u32,
    /// `BPF_F_…`
    pub flags: u32,
    name: [u8; 16],
    ifindex: u32,
    vmlinux_type: u32,
    netns_dev: u64,
    netns_inode: u64,
    /// Number of its type information; 0: none.
    pub btf: u32,
    key_type: u32,
    value_type: u32,
    pad: u32,
}

const _: () = assert!(size_of::<ElementAttr>() == 32 && size_of::<QueryAttr>() == 32);
const _: () = assert!(offset_of!(MapInfo, btf) == 64 && size_of::<MapInfo>() == 80);

/// `bpf_attr` of [`BPF_PROG_QUERY`].
#[repr(C)]
struct QueryAttr {
    target: u32,
    hook: u32,
    flags: u32,
    attach_flags: u32,
    ids: u64,
    count: u32,
    pad: u32,
}

/// `bpf_attr` of [`BPF_OBJ_GET`].
#[repr(C)]
struct OpenAttr {
    path: u64,
    fd: u32,
    flags: u32,
}

/// `bpf_attr` of [`BPF_LINK_DETACH`].
#[repr(C)]
struct LinkAttr {
    link: u32,
}

fn bpf<T>(command: libc::c_long, attr: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: `attr` is one of the structures above, as long as it says, and lives through the
    // call; the addresses in it are those of values that its maker keeps alive.
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

/// Detaches the pinned link at `path`. When this returns the program does not run any more, which
/// removing the pin alone does not say: the kernel does that some time later.
///
/// # Errors
/// When there is no link.
pub fn detach_link(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attr = OpenAttr {
        path: path.as_ptr().addr() as u64,
        fd: 0,
        flags: 0,
    };
    let fd = bpf(BPF_OBJ_GET, &mut attr)?;
    // SAFETY: the kernel has just made the descriptor, and nobody else knows it.
    let link = unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) };
    let mut attr = LinkAttr {
        link: link.as_raw_fd() as u32,
    };
    bpf(BPF_LINK_DETACH, &mut attr).map(|_| ())
}

/// The programs that run on a hook for processes of a cgroup, its parents' among them, by their numbers.
///
/// # Errors
/// When it is no cgroup, or the process may not know.
pub fn programs_on(cgroup: BorrowedFd<'_>, hook: u32) -> io::Result<Vec<u32>> {
    const EFFECTIVE: u32 = 1;
    /// The kernel takes no more than 64 programs of one cgroup; a parent may have more.
    const MOST: usize = 256;
    let mut ids = vec![0u32; MOST];
    let mut attr = QueryAttr {
        target: cgroup.as_raw_fd() as u32,
        hook,
        flags: EFFECTIVE,
        attach_flags: 0,
        ids: ids.as_mut_ptr().addr() as u64,
        count: MOST as u32,
        pad: 0,
    };
    bpf(BPF_PROG_QUERY, &mut attr)?;
    ids.truncate(attr.count as usize);
    Ok(ids)
}

/// What the kernel knows of a map.
///
/// # Errors
/// When the descriptor is no map.
pub fn map_info(map: BorrowedFd<'_>) -> io::Result<MapInfo> {
    let mut info = MapInfo::default();
    let mut attr = InfoAttr {
        fd: map.as_raw_fd() as u32,
        len: size_of::<MapInfo>() as u32,
        info: (&raw mut info).addr() as u64,
    };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
    Ok(info)
}

/// Puts a socket into a socket map with 64-bit values.
///
/// # Errors
/// The kernel's: the socket's state or protocol does not do, or there is no such place.
pub fn set_socket(map: BorrowedFd<'_>, index: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = socket.as_raw_fd() as u64;
    let mut attr = ElementAttr {
        map: map.as_raw_fd() as u32,
        pad: 0,
        key: (&raw const index).addr() as u64,
        value: (&raw const value).addr() as u64,
        flags: 0,
    };
    bpf(BPF_MAP_UPDATE_ELEM, &mut attr).map(|_| ())
}

/// Takes the socket out of a place of a socket map, if there is one.
///
/// # Errors
/// The kernel's, but for an empty place.
pub fn clear_socket(map: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    let mut attr = ElementAttr {
        map: map.as_raw_fd() as u32,
        pad: 0,
        key: (&raw const index).addr() as u64,
        value: 0,
        flags: 0,
    };
    match bpf(BPF_MAP_DELETE_ELEM, &mut attr) {
        // An empty place of a SOCKMAP is "invalid", not "not found".
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => Ok(()),
        result => result.map(|_| ()),
    }
}

/// Waits until every kernel program that runs now has ended.
///
/// # Errors
/// When the kernel cannot tell (CPUs without ticks).
pub fn wait_for_running_programs() -> io::Result<()> {
    const MEMBARRIER_CMD_GLOBAL: libc::c_long = 1;
    // SAFETY: takes no pointers. The command is one RCU grace period, and programs run inside of
    // RCU's read side.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A socket option that is a plain number.
fn option<T: Default>(socket: BorrowedFd<'_>, name: libc::c_int) -> io::Result<T> {
    let mut value = T::default();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `value`, which is a plain number (this
    // function is private and used for those only).
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value)
}

/// The number by which the kernel and `bpftool` know a socket.
///
/// # Errors
/// When it is no socket.
pub fn socket_cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    option(socket, libc::SO_COOKIE)
}

/// The number of a socket's network namespace.
///
/// # Errors
/// When it is no socket, or the kernel is older than 5.14.
pub fn netns_cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    option(socket, SO_NETNS_COOKIE)
}

/// Whether a socket takes connections.
///
/// # Errors
/// When it is no socket.
pub fn is_listening(socket: BorrowedFd<'_>) -> io::Result<bool> {
    option::<libc::c_int>(socket, libc::SO_ACCEPTCONN).map(|value| value != 0)
}
