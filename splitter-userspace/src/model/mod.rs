//! All routing state as plain data.
//!
//! Nothing here does I/O, knows a clock or names tokio, hyper, kube or aya. A [`Snapshot`] is made
//! by `k8s::translate`, never changed afterwards, and read by everything else.

mod backend;
pub mod keyed;
mod l4;
mod location;
mod object;
mod path_pattern;
mod policy;
mod problem;
mod rows;
mod secret;
mod snapshot;
mod split;
mod tls;
mod tls_terms;

pub use backend::{Backend, BackendFault, BackendKey, Endpoint, EndpointState};
pub use l4::{
    L4, L4Endpoint, L4Id, L4Key, L4Listener, L4Scope, L4Service, L4SplitBy, L4State, L4Variant,
    Transport,
};
pub use location::{Host, HostPattern, Location, LocationKey, PathKind};
pub use object::{Kind, ObjectRef};
pub use path_pattern::{Form, Groups, PathPattern};
pub use policy::{
    AddressSet, Addresses, Affinity, AffinityMode, Algorithm, Algorithms, AnswerEdits, AuthCache,
    Balance, Basic, ClaimHeader, ClaimPath, ClaimTest, ClientCert, ClientVerify, Cors,
    CustomHeaders, ErrorPages, Exchange, External, Failures, Guarded, HashBy, HashPart,
    HttpsRedirect, Identities, Jwt, KeySource, KeyUrl, Mirror, NotARange, NotIdentities, Origin,
    Origins, Pace, Piece, Policy, Protocol, Rate, RateLimits, Redirect, Replace, Retry, Rewrite,
    SameSite, SessionCookie, Side, Sought, SplitKey, SplitPolicy, Template, TemplateError,
    TokenPlace, TrafficClass, UpstreamTls, UserLayout, Variable, subscriber,
};
pub use problem::{Problem, Severity};
pub use rows::{Rows, RowsIter};
pub use secret::{SecretData, SecretSource};
pub use snapshot::{BackendId, LocationId, Snapshot};
pub use split::{
    CookieTest, HeaderTest, MAX_VARIANTS, Pattern, Rule, STABLE, Split, Test, ValueTest, Variant,
    Weights,
};
pub use tls::{TlsHost, TlsSecret};
pub use tls_terms::{Handshake, TlsSuite, TlsTerms, TlsVersions};
