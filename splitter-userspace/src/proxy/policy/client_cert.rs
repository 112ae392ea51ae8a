//! Who may call, by the certificate of the client.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use http::{StatusCode, request};

use super::{Refusal, Reply};
use crate::model::{ClientCert, ClientVerify, ObjectRef};
use crate::proxy::client::Client;
use crate::proxy::fault::Fault;
use crate::proxy::worker::Worker;
use crate::routing::normalize;
use crate::tls::{Certificates, Identity, Unverified};

const VERIFY: HeaderName = HeaderName::from_static("ssl-client-verify");
const SUBJECT: HeaderName = HeaderName::from_static("ssl-client-subject-dn");
const ISSUER: HeaderName = HeaderName::from_static("ssl-client-issuer-dn");
const CERTIFICATE: HeaderName = HeaderName::from_static("ssl-client-cert");

/// What one connection's certificate is worth to the authorities of one Secret.
pub struct Verdict {
    authorities: ObjectRef,
    depth: u8,
    /// What it was judged by: with others it is judged again.
    certificates: Arc<Certificates>,
    /// None when the client showed no certificate.
    shown: Option<Shown>,
}

struct Shown {
    result: Result<(), Unverified>,
    identity: Identity,
    /// The client's own certificate in PEM, as a URL has it.
    pem: Option<HeaderValue>,
}

/// What the pods are told of the client's certificate.
pub struct Certified {
    verdict: Rc<Verdict>,
    pass: bool,
}

/// Asks whether a client may call.
///
/// # Errors
/// When it may not: the answer.
pub fn certify(
    worker: &Worker,
    client: &Client,
    policy: &ClientCert,
    host: &str,
) -> Result<Certified, Refusal> {
    if client.socket.tls(|_| ()).is_none() {
        let named = policy.common_name.is_some() || policy.identities.is_some();
        if policy.verify == ClientVerify::On || named {
            return Err(Fault::NeedsTls.into());
        }
    } else if !client.is_named(host) {
        // The handshake may have been another host's, which asks for nothing.
        return Err(Fault::Misdirected.into());
    }
    let verdict = verdict(worker, client, policy)?;
    match &verdict.shown {
        None if policy.verify == ClientVerify::On => {
            return Err(refused(policy, Fault::CertificateMissing));
        }
        None => {}
        Some(shown) => match &shown.result {
            Err(why) if !(why.untrusted && policy.verify == ClientVerify::OptionalNoCa) => {
                return Err(refused(policy, Fault::CertificateRefused));
            }
            _ => {}
        },
    }
    let good = verdict.shown.as_ref().filter(|it| it.result.is_ok());
    if let Some(list) = &policy.identities {
        let admits = |identity: &Identity| {
            let dns = identity.dns.iter().map(String::as_str);
            list.admit(dns, identity.uris.iter().map(String::as_str))
        };
        if !good.is_some_and(|it| admits(&it.identity)) {
            return Err(Fault::CertificateDenied.into());
        }
    }
    if let Some(pattern) = &policy.common_name {
        let mut names = good.into_iter().flat_map(|it| &it.identity.common_names);
        if !names.any(|name| pattern.is_match(name.as_bytes())) {
            return Err(Fault::CertificateDenied.into());
        }
    }
    Ok(Certified {
        verdict,
        pass: policy.pass,
    })
}

fn refused(policy: &ClientCert, fault: Fault) -> Refusal {
    let target = policy.error_page.as_deref();
    let Some(target) = target.and_then(|it| HeaderValue::from_str(it).ok()) else {
        return fault.into();
    };
    let mut reply = Reply::new("client-certificate", StatusCode::FOUND);
    reply.headers.insert(LOCATION, target);
    reply.into()
}

/// The connection's verdict, which is kept as long as nothing changes.
fn verdict(worker: &Worker, client: &Client, policy: &ClientCert) -> Result<Rc<Verdict>, Fault> {
    let certificates = worker.certificates();
    if let Some(known) = client.verdict()
        && known.depth == policy.depth
        && known.authorities == policy.authorities
        && Arc::ptr_eq(&known.certificates, &certificates)
    {
        return Ok(known);
    }
    let authorities = certificates.authorities(&policy.authorities);
    let authorities = authorities.ok_or(Fault::GuardBroken)?.clone();
    let shown = client.socket.tls(|tls| {
        let chain = tls.peer_certificates().filter(|chain| !chain.is_empty())?;
        let own = chain.first()?;
        Some(Shown {
            result: authorities.verify(chain, policy.depth),
            identity: Identity::read(own),
            pem: url_pem(own),
        })
    });
    let verdict = Rc::new(Verdict {
        authorities: policy.authorities.clone(),
        depth: policy.depth,
        certificates,
        shown: shown.flatten(),
    });
    client.set_verdict(verdict.clone());
    Ok(verdict)
}

/// Whether only we may set a field.
pub fn is_own_field(name: &str) -> bool {
    name.starts_with("ssl-client-")
}

impl Certified {
    /// Tells the pods.
    pub fn tell(&self, parts: &mut request::Parts) {
        let headers = &mut parts.headers;
        let Some(shown) = &self.verdict.shown else {
            headers.insert(VERIFY, HeaderValue::from_static("NONE"));
            return;
        };
        let verify = match &shown.result {
            Ok(()) => Ok(HeaderValue::from_static("SUCCESS")),
            Err(why) => HeaderValue::from_str(&format!("FAILED:{}", why.reason)),
        };
        insert(headers, VERIFY, verify.ok());
        let text = |text: &str| HeaderValue::from_str(text).ok();
        insert(headers, SUBJECT, text(&shown.identity.subject));
        insert(headers, ISSUER, text(&shown.identity.issuer));
        if self.pass {
            insert(headers, CERTIFICATE, shown.pem.clone());
        }
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.insert(name, value);
    }
}

/// A certificate in PEM with everything escaped that RFC 3986 does not leave alone, as nginx does.
fn url_pem(der: &[u8]) -> Option<HeaderValue> {
    let mut text = String::from("-----BEGIN%20CERTIFICATE-----%0A");
    for line in STANDARD.encode(der).as_bytes().chunks(64) {
        for byte in line {
            match byte {
                b'+' | b'/' | b'=' => {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "%{byte:02X}");
                }
                byte => text.push(char::from(*byte)),
            }
        }
        text.push_str("%0A");
    }
    text.push_str("-----END%20CERTIFICATE-----%0A");
    HeaderValue::from_str(&text).ok()
}

/// Whether two hosts, as clients write them, are the same name.
pub fn same_host(name: &str, host: &str) -> bool {
    normalize(host).is_some_and(|host| host == name)
}
