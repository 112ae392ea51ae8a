//! Names of certificates as nginx writes them.

use std::fmt::Write as _;

use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

/// Who a certificate says it is, and who vouches for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The subject by RFC 2253: the last part first.
    pub subject: String,
    /// The issuer in the same way.
    pub issuer: String,
    /// The subject's common names.
    pub common_names: Vec<String>,
    /// The DNS names among the alternative names.
    pub dns: Vec<String>,
    /// The URIs among them, such as a SPIFFE id.
    pub uris: Vec<String>,
}

impl Identity {
    /// Reads a certificate in DER; nothing of one that is none.
    pub fn read(der: &[u8]) -> Self {
        let Ok((_, certificate)) = X509Certificate::from_der(der) else {
            return Identity::default();
        };
        let (mut dns, mut uris) = (Vec::new(), Vec::new());
        // One that is there twice (RFC 5280 4.2) says nothing.
        if let Ok(Some(names)) = certificate.subject_alternative_name() {
            for name in &names.value.general_names {
                match name {
                    GeneralName::DNSName(name) => dns.push((*name).to_owned()),
                    GeneralName::URI(uri) => uris.push((*uri).to_owned()),
                    _ => {}
                }
            }
        }
        let names = certificate.subject().iter_common_name();
        let names = names.filter_map(|name| name.as_str().ok());
        Identity {
            subject: rfc2253(certificate.subject()),
            issuer: rfc2253(certificate.issuer()),
            common_names: names.map(str::to_owned).collect(),
            dns,
            uris,
        }
    }
}

fn rfc2253(name: &X509Name<'_>) -> String {
    let parts: Vec<_> = name.iter_rdn().collect();
    let mut text = String::new();
    for (index, part) in parts.into_iter().rev().enumerate() {
        if index > 0 {
            text.push(',');
        }
        for (index, attribute) in part.iter().enumerate() {
            if index > 0 {
                text.push('+');
            }
            match oid2abbrev(attribute.attr_type(), oid_registry()) {
                Ok(short) => text.push_str(short),
                Err(_) => text.push_str(&attribute.attr_type().to_id_string()),
            }
            text.push('=');
            escape(&mut text, attribute.as_str().unwrap_or_default());
        }
    }
    text
}

/// RFC 2253 2.4; what is not printable ASCII as OpenSSL writes it, by `\` and two digits a byte.
fn escape(out: &mut String, value: &str) {
    let last = value.len().saturating_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        let edge = (byte == b' ' && (at == 0 || at == last)) || (byte == b'#' && at == 0);
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            _ if edge => {
                out.push('\\');
                out.push(char::from(byte));
            }
            0x20..=0x7e => out.push(char::from(byte)),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    #[test]
    fn names_are_written_as_nginx_writes_them() {
        let mut params = CertificateParams::new(["a.test".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let name = &mut params.distinguished_name;
        name.push(DnType::CountryName, "DE");
        name.push(DnType::OrganizationName, "A, B + \"C\"");
        name.push(DnType::CommonName, " grün#");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let identity = Identity::read(certificate.der());
        let expected = r#"CN=\ gr\C3\BCn#,O=A\, B \+ \"C\",C=DE"#;
        assert_eq!(identity.subject, expected);
        assert_eq!(identity.issuer, expected);
        assert_eq!(identity.common_names, [" grün#"]);
        assert_eq!(Identity::read(b"none"), Identity::default());
    }
}
