//! [`TlsTerms`] in the library's words.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, SupportedProtocolVersion};

use crate::model::{TlsSuite, TlsTerms, TlsVersions};

/// The versions, the newer one first.
pub(super) fn versions(terms: &TlsTerms) -> &'static [&'static SupportedProtocolVersion] {
    static ALL: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    let (new, old) = ALL.split_at(1);
    match terms.versions {
        TlsVersions::Both => &ALL,
        TlsVersions::Tls12 => old,
        TlsVersions::Tls13 => new,
    }
}

/// The cryptography with no other suites than these. It is all of it where they leave nothing for
/// any of the versions, which is the same as if nothing was said.
pub(super) fn provider(terms: &TlsTerms, all: &Arc<CryptoProvider>) -> Arc<CryptoProvider> {
    let named = terms.suites.iter().filter_map(|suite| {
        let wanted = id(*suite);
        let mut all = all.cipher_suites.iter();
        all.find(|it| it.suite() == wanted).copied()
    });
    let named: Vec<_> = named.collect();
    let versions = versions(terms);
    let of_version = |it: &rustls::SupportedCipherSuite| {
        versions
            .iter()
            .any(|version| it.version().version == version.version)
    };
    if !named.iter().any(of_version) {
        return all.clone();
    }
    Arc::new(CryptoProvider {
        cipher_suites: named,
        ..(**all).clone()
    })
}

fn id(suite: TlsSuite) -> CipherSuite {
    match suite {
        TlsSuite::Aes256 => CipherSuite::TLS13_AES_256_GCM_SHA384,
        TlsSuite::Aes128 => CipherSuite::TLS13_AES_128_GCM_SHA256,
        TlsSuite::ChaCha20 => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        TlsSuite::EcdsaAes256 => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        TlsSuite::EcdsaAes128 => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        TlsSuite::EcdsaChaCha20 => CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        TlsSuite::RsaAes256 => CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        TlsSuite::RsaAes128 => CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        TlsSuite::RsaChaCha20 => CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    }
}

#[cfg(test)]
mod tests {
    use rustls::crypto::aws_lc_rs;

    use super::*;

    #[test]
    fn the_library_has_every_suite_and_no_other() {
        let all = Arc::new(aws_lc_rs::default_provider());
        let terms = TlsTerms {
            suites: TlsSuite::ALL.to_vec(),
            ..TlsTerms::default()
        };
        let suites = |provider: &CryptoProvider| -> Vec<_> {
            provider.cipher_suites.iter().map(|it| it.suite()).collect()
        };
        assert_eq!(suites(&provider(&terms, &all)), suites(&all));
    }

    #[test]
    fn terms_that_leave_nothing_are_none() {
        let all = Arc::new(aws_lc_rs::default_provider());
        let terms = TlsTerms {
            versions: TlsVersions::Tls12,
            suites: vec![TlsSuite::Aes256],
            server_order: false,
        };
        assert_eq!(provider(&terms, &all).cipher_suites.len(), 9);
    }
}
