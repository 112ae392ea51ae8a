//! TLS: certificates from Secrets, and what handshakes are made with.
//!
//! [`CertStore`] keeps the certificates of all Secrets in use, each parsed once and kept when its
//! Secret turns bad; it turns a Snapshot's hosts into [`Certificates`], which is published whole and
//! read by every handshake. No cryptography of our own: rustls with aws-lc-rs does it all.

mod certificate;
mod certificates;
mod config;
mod facts;
mod store;

pub use certificate::{Certificate, CertificateError};
pub use certificates::{Bound, Certificates};
pub use config::{TlsBase, TlsError};
pub use facts::Facts;
pub use store::{CertStore, Demand};
