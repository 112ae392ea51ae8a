//! What must hold whatever anybody writes or sends. Each target takes any bytes and panics where
//! something does not hold. `cargo fuzz` runs them on a nightly compiler (`tests/fuzz`); the test
//! `fuzz` runs the same functions over the corpus and changed copies of it.

mod annotations;
mod client_hello;
mod cookies;
mod forwarded;
mod manifests;
mod mutate;
mod passwords;
mod proxy_header;
mod rewrites;
mod secrets;
mod tokens;

pub use mutate::Mutator;

/// A target by its name, which is also the folder of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 11] = [
    ("annotations", annotations::target),
    ("client_hello", client_hello::target),
    ("cookies", cookies::target),
    ("forwarded", forwarded::target),
    ("key_sets", tokens::keys::target),
    ("manifests", manifests::target),
    ("passwords", passwords::target),
    ("proxy_header", proxy_header::target),
    ("rewrites", rewrites::target),
    ("secrets", secrets::target),
    ("tokens", tokens::target),
];

/// Runs the target of this name.
///
/// # Panics
/// When there is none, or something does not hold.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.expect("a known target");
    target(data);
}

/// Parts that a zero byte ends; as many as are wanted, empty where there are fewer.
fn parts<const N: usize>(data: &[u8]) -> [&[u8]; N] {
    let mut parts = data.splitn(N, |byte| *byte == 0);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// The same as text.
fn texts<const N: usize>(data: &[u8]) -> [String; N] {
    parts(data).map(|part| String::from_utf8_lossy(part).into_owned())
}

/// `bytes` with changes in it: of three bytes of `edits`, two say where and the third what is changed
/// there, bit by bit.
fn edited(mut bytes: Vec<u8>, edits: &[u8]) -> Vec<u8> {
    for edit in edits.chunks_exact(3) {
        let [high, low, change] = [0, 1, 2].map(|it| edit[it]);
        let at = usize::from(u16::from_be_bytes([high, low])) % bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= change;
        }
    }
    bytes
}
