//! The object with the kernel programs, as the build made it.

/// What stands in the object's place when the build could not make it; see `build.rs`.
const STUB: &[u8] = b"splitter: no kernel programs: ";

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/splitter.bpf.o"));

/// The object, or why the build has none.
///
/// # Errors
/// What was missing when splitter was built, with the command that installs it.
pub fn object() -> Result<&'static [u8], String> {
    match OBJECT.strip_prefix(STUB) {
        None => Ok(OBJECT),
        Some(why) => Err(String::from_utf8_lossy(why).into_owned()),
    }
}
