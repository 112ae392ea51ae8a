//! Flags of the validating admission webhook.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::values;
use crate::config::WebhookSettings;

/// Where the API server asks about Ingresses before they are written.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Admission webhook")]
pub struct WebhookArgs {
    /// Address for the API server's questions about Ingresses, over TLS [default: none]
    #[arg(
        long,
        env = "SPLITTER_WEBHOOK",
        value_name = "ADDR",
        value_parser = values::listen,
        conflicts_with = "manifests",
        requires = "webhook_certificate",
        requires = "webhook_key"
    )]
    pub webhook: Option<SocketAddr>,

    /// Its certificate chain, PEM; read anew when it changes
    #[arg(
        long,
        env = "SPLITTER_WEBHOOK_CERTIFICATE",
        value_name = "FILE",
        requires = "webhook"
    )]
    pub webhook_certificate: Option<PathBuf>,

    /// The private key for that, PEM
    #[arg(
        long,
        env = "SPLITTER_WEBHOOK_KEY",
        value_name = "FILE",
        requires = "webhook"
    )]
    pub webhook_key: Option<PathBuf>,
}

impl From<WebhookArgs> for Option<WebhookSettings> {
    fn from(args: WebhookArgs) -> Self {
        Some(WebhookSettings {
            addr: args.webhook?,
            certificate: args.webhook_certificate?,
            key: args.webhook_key?,
        })
    }
}
