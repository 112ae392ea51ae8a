//! The object with the kernel programs, as the build made it.

/// What stands in the object's place when the build could not make it; see `build.rs`.
const STUB: &[u8] = b"splitter: no kernel programs: ";

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/splitter.bpf.o"));

/// The object, or why the build has none.
///
/// # Errors
/// What was missing when splitter was built, with the command that installs it.
pub fn object() -> Result<&'static [u8], String> {
    built(OBJECT)
}

/// What the build left: an object, or the reason why it made none.
fn built(bytes: &[u8]) -> Result<&[u8], String> {
    match bytes.strip_prefix(STUB) {
        None => Ok(bytes),
        Some(why) => Err(String::from_utf8_lossy(why).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::DataplaneError;

    #[test]
    fn a_build_without_programs_says_what_was_missing() {
        let left = [STUB, b"no bpf-linker; run: cargo xtask setup"].concat();
        let why = built(&left).err().unwrap_or_default();
        assert_eq!(why, "no bpf-linker; run: cargo xtask setup");
        let text = DataplaneError::NoPrograms(why).to_string();
        assert!(
            text.contains("cargo xtask setup") && text.contains("--steering none"),
            "{text}"
        );
        assert_eq!(built(b"\x7fELF"), Ok(&b"\x7fELF"[..]));
    }
}
