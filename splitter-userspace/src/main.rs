//! The `splitter` binary.

use std::process::ExitCode;

use splitter::{app, cli};

fn main() -> ExitCode {
    cli::main(std::env::args_os(), app::run)
}
