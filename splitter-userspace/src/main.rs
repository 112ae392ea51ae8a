//! The `splitter` binary.

fn main() {}
