//! The validating admission webhook: HTTPS for the API server, which asks before an Ingress is
//! written.
//!
//! It is a courtesy: whoever writes is told at once what would be a Problem anyhow. It never keeps
//! anybody from writing because of a fault of ours: what takes too long or cannot be read is allowed,
//! and the configuration that is shipped has the API server go on when nobody answers.

mod certificate;
mod server;
mod turns;

pub use server::{MAX_BODY_BYTES, MAX_CONNECTIONS, PATIENCE, Webhook, WebhookError, serve};
pub use turns::{MAX_REVIEWS, MAX_WAITING};
