//! `splitter` as a program that tests start: the same as the released one, built beside them.

use std::process::ExitCode;

use splitter::{app, cli};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main(std::env::args_os(), app::run)
}
