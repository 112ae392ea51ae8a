//! The gates that need Secrets, with what they say to what was given: certificate, password, token.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::AUTHORIZATION;
use http::request;

use crate::auth::{Credentials, Demand, GuardStore, Guards, TokenError, Verified, find_token};
use crate::model::{
    Basic, ClientCert, ClientVerify, External, Guarded, Identities, Jwt, ObjectRef, Policy,
    SecretData, Snapshot,
};
use crate::routing::explain::{Answer, Answered, GateStep, Query};
use crate::tls::{self, Authorities};

/// What was given, and what it is judged by.
pub(super) struct Given<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) secrets: &'a BTreeMap<ObjectRef, SecretData>,
    /// The client's certificate with others behind it, in PEM.
    pub(super) certificate: Option<&'a [u8]>,
    pub(super) request: &'a request::Parts,
    pub(super) query: &'a Query<'a>,
}

impl Given<'_> {
    /// Adds the gates to those of an answer, behind which they are asked.
    pub(super) fn judge(&self, answer: &mut Answer) {
        let Some(policy) = answer.policy.clone() else {
            return;
        };
        if let Some(cert) = &policy.client_cert {
            answer.gates.push(self.certificate(cert));
        }
        if let Some(guarded) = policy.guards.as_deref() {
            let mut store = GuardStore::default();
            store.update(Demand::of(self.snapshot), self.secrets);
            let steps = self.guarded(guarded, store.current());
            self.add(&policy, guarded, steps, answer);
        }
        let closing = answer
            .gates
            .iter()
            .find_map(|step| Some((step.name, step.answers?)));
        if let Some((gate, status)) = closing {
            answer.answered = Answered::ByGate { gate, status };
        }
    }

    /// Where one is enough, only the last says whether nobody lets the client in.
    fn add(
        &self,
        policy: &Policy,
        guarded: &Guarded,
        mut steps: Vec<GateStep>,
        answer: &mut Answer,
    ) {
        if guarded.any {
            let client = self.query.client;
            let lists = policy.addresses.as_ref().zip(client);
            let vouched = lists.is_some_and(|(lists, client)| lists.vouch(client));
            let denied = lists.is_some_and(|(lists, client)| !lists.admit(client));
            let open = vouched || steps.iter().any(|step| step.answers.is_none());
            let statuses = steps.iter().filter_map(|step| step.answers);
            let status = match statuses.max_by_key(|status| *status == 401) {
                None if denied => Some(403),
                status => status,
            };
            for step in &mut steps {
                step.answers = None;
            }
            let says = match open {
                true => "one of addresses and these is enough (satisfy: any), and one is passed",
                false => "one of addresses and these would be enough (satisfy: any)",
            };
            steps.push(GateStep {
                name: "satisfy",
                says: says.to_owned(),
                answers: status.filter(|_| !open),
            });
        }
        answer.gates.extend(steps);
    }

    fn guarded(&self, guarded: &Guarded, guards: &Guards) -> Vec<GateStep> {
        let basic = guarded.basic.as_ref().map(|it| self.basic(it, guards));
        let token = guarded.jwt.as_ref().map(|it| self.token(it, guards));
        let external = guarded.external.as_ref().map(external);
        basic.into_iter().chain(token).chain(external).collect()
    }

    fn basic(&self, basic: &Basic, guards: &Guards) -> GateStep {
        let value = self.request.headers.get(AUTHORIZATION);
        let credentials = value.and_then(|value| Credentials::read(value.as_bytes()));
        let (what, answers) = match (guards.users(basic), credentials) {
            (None, _) => ("which cannot be read".to_owned(), Some(503)),
            (_, None) => {
                let what = "none is given (--header 'Authorization: Basic ...')";
                (what.to_owned(), Some(401))
            }
            (Some(users), Some(given)) => {
                let user = &given.user;
                match users.admit(user, &given.password) {
                    true => (format!("{user:?} has the right one"), None),
                    false => (format!("{user:?} is unknown or has another one"), Some(401)),
                }
            }
        };
        GateStep {
            name: "auth-type",
            says: format!("asks for a password of the {}: {what}", basic.users),
            answers,
        }
    }

    fn token(&self, jwt: &Jwt, guards: &Guards) -> GateStep {
        let ring = guards.keys(jwt).and_then(|ring| ring.set.as_ref());
        let (what, answers) = match (find_token(self.request, jwt), ring) {
            (Ok(None), _) => {
                let what = "none is given (--header 'Authorization: Bearer ...')";
                (what.to_owned(), Some(401))
            }
            (Err(error), _) => (error.to_string(), Some(401)),
            (Ok(Some(_)), None) => {
                let what = "its keys are not in the manifests, so it cannot be told";
                (what.to_owned(), None)
            }
            (Ok(Some(token)), Some(keys)) => {
                let checked = Verified::check(&token, keys, jwt);
                match checked.and_then(|it| it.admit(jwt, now())) {
                    Ok(()) => ("it is good".to_owned(), None),
                    Err(error @ TokenError::Denied) => (error.to_string(), Some(403)),
                    Err(error) => (error.to_string(), Some(401)),
                }
            }
        };
        GateStep {
            name: "jwt",
            says: format!("asks for a token of {}: {what}", jwt.issuer),
            answers,
        }
    }

    fn certificate(&self, cert: &ClientCert) -> GateStep {
        let authorities = self.secrets.get(&cert.authorities);
        let authorities = authorities.and_then(|data| Authorities::of(data).ok());
        let chain = self.certificate.map(tls::read_chain);
        let (what, answers) = match (&authorities, chain) {
            (None, _) => ("which cannot be read".to_owned(), Some(503)),
            (_, None) => {
                let named = cert.common_name.is_some() || cert.identities.is_some();
                let status = match cert.verify {
                    ClientVerify::On => Some(400),
                    _ => named.then_some(403),
                };
                ("none is given (--certificate FILE)".to_owned(), status)
            }
            (_, Some(None)) => ("what is given is none".to_owned(), Some(400)),
            (Some(authorities), Some(Some(chain))) => {
                let identity = chain.first().map(|own| tls::Identity::read(own));
                let identity = identity.unwrap_or_default();
                let names = &identity.common_names;
                let listed = |list: &Identities| {
                    let dns = identity.dns.iter().map(String::as_str);
                    list.admit(dns, identity.uris.iter().map(String::as_str))
                };
                let named = |pattern: &crate::model::Pattern| {
                    names.iter().any(|name| pattern.is_match(name.as_bytes()))
                };
                let lax = cert.verify == ClientVerify::OptionalNoCa;
                match authorities.verify(&chain, cert.depth) {
                    Err(why) if !(why.untrusted && lax) => {
                        (format!("it is not good ({})", why.reason), Some(400))
                    }
                    Ok(()) if cert.common_name.as_ref().is_some_and(|it| !named(it)) => {
                        (format!("it is good, but not for {names:?}"), Some(403))
                    }
                    Ok(()) if cert.identities.as_ref().is_some_and(|it| !listed(it)) => (
                        "it is good, but has none of the names".to_owned(),
                        Some(403),
                    ),
                    Err(_) if cert.common_name.is_some() || cert.identities.is_some() => {
                        ("it is of nobody who is known".to_owned(), Some(403))
                    }
                    _ => ("it lets in".to_owned(), None),
                }
            }
        };
        GateStep {
            name: "auth-tls",
            says: format!("asks for a certificate by the {}: {what}", cert.authorities),
            answers,
        }
    }
}

fn external(external: &External) -> GateStep {
    let scheme = match external.tls {
        Some(_) => "https",
        None => "http",
    };
    let (host, port) = (&external.host, &external.service.port);
    GateStep {
        name: "auth-url",
        says: format!("asks {scheme}://{host}:{port}, whose answer is not known here"),
        answers: None,
    }
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
}
