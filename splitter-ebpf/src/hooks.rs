//! Entries for processes that connect or send to a Service's own address, in a cgroup of the node. They
//! change addresses only, and refuse nothing.

use aya_ebpf::macros::cgroup_sock_addr;
use aya_ebpf::programs::SockAddrContext;
use splitter_ebpf::connect::{connect, is_mapped, seen, send};

use crate::asking::{Process, v4, v6};

/// The system call goes on.
const GO_ON: i32 = 1;

/// Declares the program of one hook for each family: what it does with the address that it sees.
macro_rules! hooks {
    ($($hook4:ident, $hook6:ident: $does:path;)+) => {
        $(
            #[cgroup_sock_addr($hook4)]
            fn $hook4(context: SockAddrContext) -> i32 {
                let seen = v4::read(&context);
                $does(&Process(&context), &seen, |other| v4::write(&context, other));
                GO_ON
            }

            #[cgroup_sock_addr($hook6)]
            fn $hook6(context: SockAddrContext) -> i32 {
                let addr = v6::addr(&context);
                let mapped = is_mapped(&addr);
                let seen = v6::key(&context, &addr, mapped);
                $does(&Process(&context), &seen, |other| v6::write(&context, other, mapped));
                GO_ON
            }
        )+
    };
}

hooks! {
    connect4, connect6: connect;
    sendmsg4, sendmsg6: send;
    recvmsg4, recvmsg6: seen;
    getpeername4, getpeername6: seen;
}
