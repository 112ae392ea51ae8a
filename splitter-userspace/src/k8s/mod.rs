//! Kubernetes objects in, a Snapshot out.
//!
//! [`Manifests`] (I/O) reads a directory into plain [`Objects`], [`Cluster`] (I/O) follows the API
//! server into the same; [`translate`] (pure) turns those into a `model::Snapshot` and a list of
//! Problems.

mod admission;
mod bounded;
mod cluster;
mod decode;
mod defaults;
mod documents;
mod header;
mod manifests;
mod names;
mod objects;
mod translate;

pub use admission::{Answer as AdmissionAnswer, Opinion, Question as AdmissionQuestion, review};
use cluster::named_secrets;
pub use cluster::{
    BURST_LIMIT as CLUSTER_BURST_LIMIT, Cluster, ClusterState, ConnectError, NodeFacts,
    QUIET as CLUSTER_QUIET, Reviewer, Served, Shelves, WatchFailures, Written,
};
pub use defaults::read_defaults;
pub use documents::{MAX_DOCUMENTS, Parsed, parse_documents};
pub use manifests::{
    BURST_LIMIT, FRESH, MAX_DEPTH, MAX_FILE_BYTES, MAX_FILES, ManifestWatcher, Manifests, POLL,
    QUIET, WatchError,
};
pub use names::{Names, Resolution, is_local};
pub use objects::{Object, Objects, Sourced};
pub use translate::{
    Difference, Fared, Fate, Translation, Translator, annotations_page, compare, translate,
};
