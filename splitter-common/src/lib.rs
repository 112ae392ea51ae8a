//! Types shared by the kernel programs and user space.
#![no_std]
