//! Certificates as tests need them, and clients that speak TLS.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::PATIENCE;
use crate::client::Client;

/// A client's TLS connection.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// A client that speaks TLS.
pub type TlsClient = Client<TlsStream>;

/// A certificate with its key, in PEM.
#[derive(Clone)]
pub struct Pair {
    /// The chain.
    pub chain: String,
    /// The private key.
    pub key: String,
}

impl Pair {
    /// The Secret `name` in namespace `demo` that holds it, as YAML.
    pub fn secret(&self, name: &str) -> String {
        secret(name, &[("tls.crt", &self.chain), ("tls.key", &self.key)])
    }

    /// The first certificate in DER.
    pub fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.chain.as_bytes()).unwrap()
    }
}

/// The Secret `name` in namespace `demo` with these entries, as YAML.
pub fn secret(name: &str, entries: &[(&str, &str)]) -> String {
    let mut yaml = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: demo}}\nstringData:\n"
    );
    for (key, value) in entries {
        writeln!(yaml, "  {key}: |").unwrap();
        for line in value.lines() {
            writeln!(yaml, "    {line}").unwrap();
        }
    }
    yaml
}

/// Somebody whom clients trust.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
    pem: String,
}

impl Authority {
    /// A new one.
    pub fn new(name: &str) -> Self {
        Self::with_key(name, KeyPair::generate().unwrap())
    }

    /// One that has this key.
    pub fn with_key(name: &str, key: KeyPair) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        // By default it is made of the key, in a way that is not promised to stay.
        params.serial_number = Some(1.into());
        let certificate = params.self_signed(&key).unwrap();
        Authority {
            root: certificate.der().clone(),
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// Those whom a client trusts that trusts only this authority.
    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        roots
    }

    /// Its own certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for these names.
    pub fn issue(&self, names: &[&str]) -> Pair {
        self.issue_with(names, |_| {})
    }

    /// A certificate for these names with an RSA key.
    pub fn issue_rsa(&self, names: &[&str]) -> Pair {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let size = rcgen::RsaKeySize::_2048;
        let key = KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, size).unwrap();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair {
            chain: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// The same with more to it.
    pub fn issue_with(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Pair {
        self.issue_for(KeyPair::generate().unwrap(), names, change)
    }

    /// The same for somebody who has a key already.
    pub fn issue_for(
        &self,
        key: KeyPair,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Pair {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair {
            chain: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// An authority below this one.
    pub fn delegate(&self, name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Authority {
            root: certificate.der().clone(),
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// A certificate of somebody, for clients.
    pub fn person(&self, name: &str) -> Pair {
        self.person_with(name, |_| {})
    }

    /// The same with more to it.
    pub fn person_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Pair {
        self.issue_with(&[], |params| {
            params.distinguished_name = rcgen::DistinguishedName::new();
            params
                .distinguished_name
                .push(DnType::OrganizationName, "Test");
            params.distinguished_name.push(DnType::CommonName, name);
            change(params);
        })
    }

    /// A list of revoked serial numbers, in PEM.
    pub fn revoke(&self, serials: &[u64]) -> String {
        let revoked = serials.iter().map(|serial| rcgen::RevokedCertParams {
            serial_number: (*serial).into(),
            revocation_time: rcgen::date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let params = rcgen::CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2024, 1, 1),
            next_update: rcgen::date_time_ymd(2096, 1, 1),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }

    /// Settings of a client that trusts only this authority and shows a certificate.
    pub fn client_as(&self, pair: &Pair) -> ClientConfig {
        let chain = CertificateDer::pem_slice_iter(pair.chain.as_bytes());
        let chain = chain.map(Result::unwrap).collect();
        let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .unwrap()
    }

    /// Settings of a client that trusts only this authority.
    pub fn client(&self) -> ClientConfig {
        self.client_with(rustls::DEFAULT_VERSIONS)
    }

    /// The same for some versions of TLS.
    pub fn client_with(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
}

/// Makes a handshake as a client of `name`.
///
/// # Errors
/// When the handshake fails.
pub fn try_connect(
    addr: SocketAddr,
    name: &str,
    config: &Arc<ClientConfig>,
) -> std::io::Result<TlsClient> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut tls = ClientConnection::new(config.clone(), name).unwrap();
    let mut stream = TcpStream::connect(addr)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    while tls.is_handshaking() {
        tls.complete_io(&mut stream)?;
    }
    Ok(Client::over(StreamOwned::new(tls, stream)))
}

/// The same when the handshake must succeed.
pub fn connect(addr: SocketAddr, name: &str, config: &Arc<ClientConfig>) -> TlsClient {
    try_connect(addr, name, config).expect("a handshake")
}

/// Settings of a client that takes any certificate, as long as its key has signed the handshake.
pub fn anybody() -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth()
}

/// The Ed25519 key of a seed, which is the same each time.
pub fn key_of(seed: &[u8; 32]) -> KeyPair {
    let key = ::aws_lc_rs::signature::Ed25519KeyPair::from_seed_unchecked(seed).unwrap();
    let der = key.to_pkcs8().unwrap().as_ref().to_vec();
    KeyPair::try_from(der).unwrap()
}

/// The certificate that a server shows a client of `name`, whoever signed it.
pub fn shown(addr: SocketAddr, name: Option<&str>) -> CertificateDer<'static> {
    let mut config = anybody();
    config.enable_sni = name.is_some();
    let client = connect(addr, name.unwrap_or("nobody.test"), &Arc::new(config));
    let mut client = client;
    let certificates = client.stream().conn.peer_certificates().expect("a chain");
    certificates[0].clone()
}

/// Takes every certificate.
#[derive(Debug)]
struct Anybody;

impl rustls::client::danger::ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let provider = aws_lc_rs::default_provider();
        rustls::crypto::verify_tls12_signature(
            message,
            cert,
            dss,
            &provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let provider = aws_lc_rs::default_provider();
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            dss,
            &provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        let provider = aws_lc_rs::default_provider();
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
