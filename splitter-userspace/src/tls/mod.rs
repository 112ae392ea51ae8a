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
mod hello;
mod identity;
mod kind;
mod outside;
mod store;
mod terms;
mod ticket_store;
mod tickets;
mod upstreams;

pub use asking::Handshakes;
pub use authorities::{Authorities, AuthoritiesError, Unverified};
pub use certificate::{Certificate, CertificateError, read_chain};
pub use certificates::{Bound, Certificates};
pub use config::{TlsBase, TlsError};
pub use facts::Facts;
pub use hello::{Peek, Peeked};
pub use identity::Identity;
pub use outside::{OutsideError, outside};
pub use store::{CertStore, Demand};
pub use tickets::{TICKET_PERIOD, TicketSecret, TicketSecretError};
pub use upstreams::{UpstreamClient, UpstreamTlsError};
