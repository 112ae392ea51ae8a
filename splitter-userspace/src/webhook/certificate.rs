//! The certificate, from files that may change.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

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

struct State {
    looked: Instant,
    changed: Option<[SystemTime; 2]>,
    config: Arc<ServerConfig>,
}

impl Current {
    /// Reads the files.
    ///
    /// # Errors
    /// Says which of them is not what it should be.
    pub fn read(files: Files) -> Result<Self, String> {
        let changed = changed(&files);
        let config = config(&files)?;
        Ok(Current {
            files,
            state: Mutex::new(State {
                looked: Instant::now(),
                changed,
                config,
            }),
        })
    }

    /// What the next handshake is made with. Files that turned bad change nothing.
    pub fn config(&self) -> Arc<ServerConfig> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() >= LOOK_EVERY {
            self.look(&mut state);
        }
        state.config.clone()
    }

    fn look(&self, state: &mut State) {
        state.looked = Instant::now();
        let now = changed(&self.files);
        if now == state.changed {
            return;
        }
        state.changed = now;
        match config(&self.files) {
            Ok(config) => {
                tracing::info!("the webhook has a new certificate");
                state.config = config;
            }
            Err(error) => tracing::warn!(error, "the webhook goes on with its last certificate"),
        }
    }
}

fn changed(files: &Files) -> Option<[SystemTime; 2]> {
    let of = |path| std::fs::metadata(path).and_then(|it| it.modified()).ok();
    Some([of(&files.certificate)?, of(&files.key)?])
}

fn config(files: &Files) -> Result<Arc<ServerConfig>, String> {
    let Files { certificate, key } = files;
    let bad = |path: &PathBuf, what: &str, error: &dyn std::fmt::Display| {
        format!("{} has no {what}: {error}", path.display())
    };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| bad(certificate, "certificate", &error))?;
    if chain.is_empty() {
        return Err(bad(certificate, "certificate", &"it is empty"));
    }
    let private = PrivateKeyDer::from_pem_file(key);
    let private = private.map_err(|error| bad(key, "private key", &error))?;
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
    fn new_files_are_taken_up_and_bad_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files {
            certificate: dir.path().join("tls.crt"),
            key: dir.path().join("tls.key"),
        };
        let missing = Current::read(files.clone()).err().unwrap();
        assert!(missing.contains("tls.crt"), "{missing}");
        write(&files, "a.test");
        let current = Current::read(files.clone()).unwrap();
        let first = current.config();
        assert!(Arc::ptr_eq(&first, &current.config()));
        let look = |at: u64| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
            for path in [&files.certificate, &files.key] {
                std::fs::File::open(path)
                    .unwrap()
                    .set_modified(time)
                    .unwrap();
            }
            current.look(&mut current.state.lock().unwrap());
            current.config()
        };
        std::fs::write(&files.key, "nothing").unwrap();
        assert!(Arc::ptr_eq(&first, &look(1)));
        write(&files, "b.test");
        let second = look(2);
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &look(2)));
    }
}
