//! The kernel programs in the kernel. Needs root, and fails without.

mod balance;
mod classes;
mod connect;
mod ingress;
mod kernels;
mod load;
mod maps;
mod steer;
mod successors;
