//! `splitter` as a program that tests start: the same as the released one, built beside them.

use std::process::ExitCode;

use splitter::{app, cli};

fn main() -> ExitCode {
    cli::main(std::env::args_os(), app::run)
}
