//! The `splitter` binary.

use std::process::ExitCode;

use splitter::{app, cli};

/// Every request makes some dozen short-lived allocations, which this one serves without a lock.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main(std::env::args_os(), app::run)
}
