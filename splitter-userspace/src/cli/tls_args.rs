//! Flags of TLS towards clients.

use std::net::SocketAddr;

use clap::Args;

use super::values;
use crate::config::{NamespacedName, Settings, SettingsError};

/// A header's value, none for `off`: clap must not take it for a flag that may be missing.
type Hsts = std::option::Option<String>;

/// What is spoken over TLS, and with which certificate.
#[derive(Args, Clone, Debug)]
pub struct TlsArgs {
    /// Address for HTTPS; repeatable; off for none
    #[arg(
        long,
        env = "SPLITTER_HTTPS",
        value_name = "ADDR|off",
        default_value = "0.0.0.0:443",
        value_delimiter = ',',
        value_parser = values::listen_or_off
    )]
    pub https: Vec<Option<SocketAddr>>,

    /// Secret with the certificate for hosts without one [default: one made at start]
    #[arg(
        long,
        env = "SPLITTER_DEFAULT_SSL_CERTIFICATE",
        value_name = "NAMESPACE/NAME"
    )]
    pub default_ssl_certificate: Option<NamespacedName>,

    /// Secret that the keys of session tickets follow from: key, of at least 32 bytes, and previous
    /// while it is being changed; nodes that share it resume each other's sessions
    #[arg(
        long,
        env = "SPLITTER_TLS_TICKET_SECRET",
        value_name = "NAMESPACE/NAME"
    )]
    pub tls_ticket_secret: Option<NamespacedName>,

    /// Strict-Transport-Security of every answer over https; off leaves what backends say
    #[arg(
        long,
        env = "SPLITTER_HSTS",
        value_name = "VALUE|off",
        default_value = Settings::HSTS,
        value_parser = values::hsts
    )]
    pub hsts: Hsts,
}

impl TlsArgs {
    /// The HTTPS listeners, each with an address of its own.
    ///
    /// # Errors
    /// When an address is given twice, or belongs to something else.
    pub fn listeners(
        &self,
        http: &[SocketAddr],
        admin: SocketAddr,
    ) -> Result<Vec<SocketAddr>, SettingsError> {
        let mut https: Vec<SocketAddr> = Vec::new();
        for addr in self.https.iter().flatten().copied() {
            // Port 0 is any free port, another one each time.
            let fixed = addr.port() != 0;
            if fixed && (https.contains(&addr) || http.contains(&addr)) {
                return Err(SettingsError::DuplicateHttps(addr));
            }
            if fixed && addr == admin {
                return Err(SettingsError::AdminIsHttp(addr));
            }
            https.push(addr);
        }
        match https.len() {
            0 => Ok(https),
            on if on == self.https.len() => Ok(https),
            _ => Err(SettingsError::HttpsOffAndOn),
        }
    }
}
