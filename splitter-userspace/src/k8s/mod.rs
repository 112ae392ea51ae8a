//! Kubernetes objects in, a Snapshot out.
//!
//! [`Manifests`] (I/O) reads a directory into plain [`Objects`]; [`translate`] (pure) turns those
//! into a `model::Snapshot` and a list of Problems. A later source, the API server, fills the same
//! [`Objects`].

mod bounded;
mod decode;
mod documents;
mod header;
mod manifests;
mod objects;
mod translate;

pub use documents::{MAX_DOCUMENTS, Parsed, parse_documents};
pub use manifests::{
    BURST_LIMIT, FRESH, MAX_DEPTH, MAX_FILE_BYTES, MAX_FILES, ManifestWatcher, Manifests, POLL,
    QUIET, WatchError,
};
pub use objects::{Object, Objects, Sourced};
pub use translate::{Translation, translate};
