//! Tokens as an issuer signs them, by openssl: nothing here signs, and no key is kept.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// Who issues them, and for whom.
pub(super) const ISSUER: &str = "https://id.example";
pub(super) const AUDIENCE: &str = "api";

/// An Ed25519 key in a directory, which goes with the directory.
pub(super) struct Key<'d> {
    dir: &'d Path,
    name: &'static str,
}

impl<'d> Key<'d> {
    /// A new one.
    pub(super) fn make(dir: &'d Path, name: &'static str) -> Result<Self> {
        let key = Key { dir, name };
        openssl(
            dir,
            &["genpkey", "-algorithm", "ed25519", "-out", &key.file()],
        )?;
        Ok(key)
    }

    fn file(&self) -> String {
        format!("{}.pem", self.name)
    }

    /// The set of keys that has its public part, as an issuer publishes it (RFC 8037).
    pub(super) fn set(&self) -> Result<String> {
        /// The public key is what the DER ends with (RFC 8410 4).
        const SIZE: usize = 32;
        let args = ["pkey", "-pubout", "-outform", "DER", "-in", &self.file()];
        let der = openssl(self.dir, &args)?;
        let public = der.len().checked_sub(SIZE).and_then(|at| der.get(at..));
        let x = encode(public.context("openssl has no public key")?);
        let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "demo", "use": "sig", "x": x});
        Ok(json!({ "keys": [key] }).to_string())
    }

    /// A token for somebody with this role, which holds for so many seconds from now on.
    pub(super) fn token(&self, role: &str, seconds: i64) -> Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let expires = i64::try_from(now)? + seconds;
        let claims = json!({
            "iss": ISSUER, "aud": AUDIENCE, "exp": expires, "sub": "demo", "roles": [role],
        });
        self.sign(&claims)
    }

    fn sign(&self, claims: &Value) -> Result<String> {
        let head = json!({"alg": "EdDSA", "kid": "demo", "typ": "at+jwt"});
        let [head, claims] = [&head, claims].map(|part| encode(part.to_string().as_bytes()));
        let message = format!("{head}.{claims}");
        fs::write(self.dir.join("message"), &message)?;
        let args = [
            "pkeyutl",
            "-sign",
            "-rawin",
            "-in",
            "message",
            "-inkey",
            &self.file(),
        ];
        let signature = openssl(self.dir, &args)?;
        Ok(format!("{message}.{}", encode(&signature)))
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// What openssl writes.
fn openssl(dir: &Path, args: &[&str]) -> Result<Vec<u8>> {
    let mut command = Command::new("openssl");
    command.current_dir(dir).args(args).stdin(Stdio::null());
    let output = command.output().context("cannot run openssl")?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("openssl: {}", error.trim());
    }
    Ok(output.stdout)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_three_parts_and_its_key_is_in_the_set() {
        let dir = tempfile::tempdir().unwrap();
        let key = Key::make(dir.path(), "issuer").unwrap();
        let set: Value = serde_json::from_str(&key.set().unwrap()).unwrap();
        let x = set["keys"][0]["x"].as_str().unwrap();
        assert_eq!(URL_SAFE_NO_PAD.decode(x).unwrap().len(), 32);
        let token = key.token("admin", 60).unwrap();
        let parts: Vec<_> = token.split('.').collect();
        assert_eq!(parts.len(), 3);
        let claims = URL_SAFE_NO_PAD.decode(parts[1]).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(claims["roles"], json!(["admin"]));
        assert_eq!(URL_SAFE_NO_PAD.decode(parts[2]).unwrap().len(), 64);
    }
}
