//! TLS: certificates from Secrets, and what handshakes are made with.
//!
//! [`CertStore`] keeps the certificates of all Secrets in use, each parsed once and kept when its
//! Secret turns bad; it turns a Snapshot's hosts into [`Certificates`], which is published whole and
//! read by every handshake. No cryptography of our own: rustls with aws-lc-rs does it all.

mod asking;
mod authorities;
mod certificate;
mod certificates;
mod config;
mod facts;
mod identity;
mod outside;
mod store;
mod upstreams;

pub use asking::Asking;
pub use authorities::{Authorities, AuthoritiesError, Unverified};
pub use certificate::{Certificate, CertificateError, read_chain};
pub use certificates::{Bound, Certificates};
pub use config::{TlsBase, TlsError};
pub use facts::Facts;
pub use identity::Identity;
pub use outside::{OutsideError, outside};
pub use store::{CertStore, Demand};
pub use upstreams::{UpstreamClient, UpstreamTlsError};
