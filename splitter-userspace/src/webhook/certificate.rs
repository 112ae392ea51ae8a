//! The certificate, from files that may change, and that may come later than we do.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// How often the files are looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Where the certificate and its key are. A mounted Secret changes them together, in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The chain, PEM.
    pub certificate: PathBuf,
    /// The key, PEM.
    pub key: PathBuf,
}

/// What handshakes are made with: the last good content of the files.
pub struct Current {
    files: Files,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    changed: Option<[SystemTime; 2]>,
    /// None before the files were good for the first time.
    config: Option<Arc<ServerConfig>>,
    /// What is wrong with the files as they are now.
    fault: Option<String>,
}

impl Current {
    /// Reads the files. What is wrong with them is no reason to end: they may come later.
    pub fn read(files: Files) -> Self {
        let current = Current {
            files,
            state: Mutex::default(),
        };
        let mut state = current.state();
        state.read(&current.files);
        drop(state);
        current
    }

    /// What the next handshake is made with. Files that turned bad change nothing; none as long as
    /// they were never good.
    pub fn config(&self) -> Option<Arc<ServerConfig>> {
        self.state().config.clone()
    }

    /// What is wrong with the files, and what happens for it.
    pub fn fault(&self) -> Option<String> {
        let state = self.state();
        let effect = match state.config {
            Some(_) => "the last good certificate is used",
            None => "nobody is answered",
        };
        state.fault.as_ref().map(|it| format!("{it}; {effect}"))
    }

    /// Reads the files anew when they have changed, or were not good.
    pub fn look(&self) {
        let mut state = self.state();
        let now = changed(&self.files);
        if now == state.changed && state.fault.is_none() {
            return;
        }
        state.read(&self.files);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn read(&mut self, files: &Files) {
        self.changed = changed(files);
        match config(files) {
            Ok(config) => {
                tracing::info!("the webhook has a new certificate");
                self.config = Some(config);
                self.fault = None;
            }
            Err(fault) => {
                // Once, however often it is tried.
                if self.fault.as_ref() != Some(&fault) {
                    tracing::warn!(fault, "the webhook cannot use its certificate");
                }
                self.fault = Some(fault);
            }
        }
    }
}

fn changed(files: &Files) -> Option<[SystemTime; 2]> {
    let of = |path| std::fs::metadata(path).and_then(|it| it.modified()).ok();
    Some([of(&files.certificate)?, of(&files.key)?])
}

fn config(files: &Files) -> Result<Arc<ServerConfig>, String> {
    let Files { certificate, key } = files;
    let bad = |flag: &str, path: &PathBuf, what: &str, error: &dyn std::fmt::Display| {
        format!("{flag}: {} has no {what}: {error}", path.display())
    };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let no_chain = |error: &dyn std::fmt::Display| {
        bad("--webhook-certificate", certificate, "certificate", error)
    };
    let chain: Vec<_> = chain.map_err(|error| no_chain(&error))?;
    if chain.is_empty() {
        return Err(no_chain(&"it is empty"));
    }
    let private = PrivateKeyDer::from_pem_file(key);
    let private = private.map_err(|error| bad("--webhook-key", key, "private key", &error))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| format!("{} and {}: {error}", certificate.display(), key.display()))?;
    Ok(Arc::new(config))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn write(files: &Files, name: &str) {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        std::fs::write(&files.certificate, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    }

    #[test]
    fn files_may_come_late_change_and_turn_bad() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files {
            certificate: dir.path().join("tls.crt"),
            key: dir.path().join("tls.key"),
        };
        let current = Current::read(files.clone());
        let fault = current.fault().unwrap();
        assert!(
            fault.contains("tls.crt") && fault.contains("nobody"),
            "{fault}"
        );
        assert!(current.config().is_none());
        write(&files, "a.test");
        current.look();
        let first = current.config().unwrap();
        assert_eq!(current.fault(), None);
        let look = |at: u64| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
            for path in [&files.certificate, &files.key] {
                let file = std::fs::File::options().write(true).open(path).unwrap();
                file.set_modified(time).unwrap();
            }
            current.look();
            current.config().unwrap()
        };
        std::fs::write(&files.key, "nothing").unwrap();
        assert!(Arc::ptr_eq(&first, &look(1)));
        let fault = current.fault().unwrap();
        assert!(
            fault.contains("--webhook-key") && fault.contains("last good"),
            "{fault}"
        );
        write(&files, "b.test");
        let second = look(2);
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &look(2)), "unchanged, not read again");
        assert_eq!(current.fault(), None);
    }
}
