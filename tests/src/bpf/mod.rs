//! Fixtures for tests of the kernel programs. They need root and fail without.

pub mod cgroup;
pub mod figures;
pub mod forwarder;
pub mod kernel;
pub mod load;
pub mod mount;
pub mod net;
pub mod packet;
pub mod run;
pub mod site;

pub use cgroup::Cgroup;
pub use kernel::Loaded;
pub use mount::BpfFs;
pub use net::{Namespace, Nodes, bind_to_thread, command, spawn};
pub use site::Site;
