//! Who may call, by what a client knows or was given: names with passwords, and tokens. Pure: no
//! sockets, no clock of its own. No cryptography of our own either; hashes and signatures are those
//! of kept libraries, except for the steps of MD5-crypt around the library's MD5.
//!
//! [`GuardStore`] reads the Secrets that a Snapshot refers to, once for each content that they have,
//! into [`Guards`], which are published whole and read by the workers.

mod claims;
mod credentials;
mod guards;
mod hash;
mod json;
mod jwks;
mod keys;
mod md5_crypt;
mod place;
mod recent;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod testing;
mod token;
mod users;

pub use credentials::{Credentials, scheme};
pub use guards::{Demand, GuardStore, Guards};
pub use hash::{BCRYPT_COST_MAX, Hash, HashError, PASSWORD_MAX, SHA_ROUNDS_MAX};
pub use jwks::{JWKS_MAX, JwksError, KEYS_MAX, KeySet};
pub use keys::{KeyRing, Wish};
pub use place::{cookie_pairs, find_token, is_cookie};
pub use recent::{Digest, Digester, NoRandomness, Recent};
pub use token::{TOKEN_MAX, TokenError, Verified};
pub use users::{Fault, USERS_MAX, Users};
