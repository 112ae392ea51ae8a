//! Memory of atomic words: a BPF array's own, or the process's.
//!
//! The only place of the dataplane's memory side that needs `unsafe`.

#![allow(
    unsafe_code,
    reason = "mmap has no safe form; every block says why it is sound"
)]

use std::io;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64};

mod sealed {
    pub trait Sealed {}
    impl Sealed for std::sync::atomic::AtomicU32 {}
    impl Sealed for std::sync::atomic::AtomicU64 {}
}

/// An atomic word. Any bytes are a value of it.
pub trait Word: sealed::Sealed + Sync {}
impl Word for AtomicU32 {}
impl Word for AtomicU64 {}

/// A mapping of whole words, zero at first when it is the process's own. Unmapped on drop.
pub struct Words<W: Word> {
    base: NonNull<W>,
    len: NonZeroUsize,
    bytes: usize,
    owns: PhantomData<W>,
}

// SAFETY: the mapping belongs to this value alone, is not tied to a thread, and is only ever seen
// as a slice of atomics.
unsafe impl<W: Word> Send for Words<W> {}
// SAFETY: as above; shared access to atomics is what they are for.
unsafe impl<W: Word> Sync for Words<W> {}

impl<W: Word> Words<W> {
    /// `len` words of the process's own memory. Pages are taken as they are first written.
    ///
    /// # Errors
    /// When there is no memory left, or `len` is 0.
    pub fn anonymous(len: usize) -> io::Result<Self> {
        Self::map(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// The first `len` words of a BPF array that was made with `BPF_F_MMAPABLE`.
    ///
    /// # Errors
    /// The kernel's: the map cannot be mapped, or is smaller than that.
    pub fn of_map(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        Self::map(len, libc::MAP_SHARED, fd.as_raw_fd())
    }

    fn map(len: usize, flags: libc::c_int, fd: libc::c_int) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let len = NonZeroUsize::new(len).ok_or_else(invalid)?;
        let bytes = len.get().checked_mul(size_of::<W>()).ok_or_else(invalid)?;
        // SAFETY: no address is asked for, so no existing mapping is replaced; the result is
        // checked before it is used.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(invalid)?;
        Ok(Words {
            base,
            len,
            bytes,
            owns: PhantomData,
        })
    }
}

impl<W: Word> std::ops::Deref for Words<W> {
    type Target = [W];

    fn deref(&self) -> &[W] {
        // SAFETY: the mapping is at least `len` words long (the kernel refuses to map more of a BPF
        // array than it has, up to the page), page-aligned, lives as long as `self`, and any bytes
        // are a value of an atomic word. Others change it (the kernel, bpftool), which atomics
        // allow.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.len.get()) }
    }
}

impl<W: Word> Drop for Words<W> {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `map` was given, which nothing else refers to: slices of
        // it borrow `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn own_memory_starts_at_zero_and_keeps_what_is_written() {
        let words = Words::<AtomicU32>::anonymous(5000).unwrap();
        assert_eq!(words.len(), 5000);
        assert!(words.iter().all(|word| word.load(Relaxed) == 0));
        words[4999].store(7, Relaxed);
        assert_eq!(words[4999].load(Relaxed), 7);
    }

    #[test]
    fn nothing_cannot_be_mapped() {
        assert!(Words::<AtomicU64>::anonymous(0).is_err());
        assert!(Words::<AtomicU64>::anonymous(usize::MAX).is_err());
    }
}
