use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry::{
    OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519,
};
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

/// What a certificate says of itself: public, for metrics, dumps and Problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The DNS names in lower case; its common name when it has none.
    pub names: Vec<Box<str>>,
    /// When it begins to hold, in seconds since 1970-01-01.
    pub not_before: i64,
    /// When it expires, in seconds since 1970-01-01.
    pub not_after: i64,
    /// The issuer's organisation; empty if it names none.
    pub issuer_organization: Box<str>,
    /// The issuer's common name; empty if it names none.
    pub issuer_common_name: Box<str>,
    /// The serial number in decimal, as ingress-nginx writes it.
    pub serial: Box<str>,
    /// `RSA`, `ECDSA`, `Ed25519`, or `unknown`.
    pub algorithm: &'static str,
}

impl Facts {
    /// Reads a certificate in DER.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (rest, certificate) = X509Certificate::from_der(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let issuer = certificate.issuer();
        Some(Facts {
            names: names(&certificate),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
            issuer_organization: first(issuer.iter_organization()),
            issuer_common_name: first(issuer.iter_common_name()),
            serial: certificate.tbs_certificate.serial.to_string().into(),
            algorithm: algorithm(&certificate),
        })
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<Box<str>> {
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let names = alternative.iter().flat_map(|it| &it.value.general_names);
    let names: Vec<Box<str>> = names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase().into()),
            _ => None,
        })
        .collect();
    if !names.is_empty() {
        return names;
    }
    common_name(certificate.subject()).into_iter().collect()
}

fn common_name(name: &X509Name<'_>) -> Option<Box<str>> {
    let text = first(name.iter_common_name()).to_ascii_lowercase();
    (!text.is_empty()).then(|| text.into())
}

fn first<'a>(
    mut attributes: impl Iterator<Item = &'a x509_parser::x509::AttributeTypeAndValue<'a>>,
) -> Box<str> {
    let text = attributes.next().and_then(|it| it.as_str().ok());
    text.unwrap_or_default().into()
}

fn algorithm(certificate: &X509Certificate<'_>) -> &'static str {
    let algorithm = &certificate.public_key().algorithm.algorithm;
    if *algorithm == OID_PKCS1_RSAENCRYPTION {
        "RSA"
    } else if *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY {
        "ECDSA"
    } else if *algorithm == OID_SIG_ED25519 {
        "Ed25519"
    } else {
        "unknown"
    }
}
