//! Entries of the kernel programs. What they do is in the library.

#![cfg_attr(target_arch = "bpf", no_std, no_main)]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

#[cfg(target_arch = "bpf")]
mod asking;
#[cfg(target_arch = "bpf")]
mod balancing;
#[cfg(target_arch = "bpf")]
mod egress;
#[cfg(target_arch = "bpf")]
mod hooks;
#[cfg(target_arch = "bpf")]
mod log;
#[cfg(target_arch = "bpf")]
mod lookup;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod packet;
#[cfg(target_arch = "bpf")]
mod programs;
#[cfg(target_arch = "bpf")]
mod sockmap;

/// The programs exist for the kernel only; on another target there is nothing to run.
#[cfg(not(target_arch = "bpf"))]
fn main() {}
