//! A small OpenID provider: discovery, keys, and codes that become signed tokens, with all checks that
//! a client could get wrong. Everybody is Ann and has signed in already.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::json;
use splitter_tests::backend::{Backend, Seen};
use splitter_tests::cluster::base64;
use splitter_tests::issuer::{Key, encode, in_seconds, jwks};

/// The one client that it knows.
pub const CLIENT: &str = "shop";
/// What that client proves itself with.
pub const SECRET: &str = "between shop and the provider";

/// A running one; ends when dropped.
pub struct Provider {
    backend: Backend,
    issued: Arc<Mutex<Issued>>,
}

#[derive(Default)]
struct Issued {
    codes: BTreeMap<String, Grant>,
    count: usize,
    token: Option<String>,
}

/// What a code was given for.
struct Grant {
    redirect: String,
    nonce: Option<String>,
    challenge: String,
}

type Parameters = BTreeMap<String, String>;

impl Provider {
    pub fn start() -> Self {
        let issued = Arc::<Mutex<Issued>>::default();
        let (key, all) = (Key::rsa(), issued.clone());
        let backend = Backend::scripted(move |conversation| {
            while let Some(asked) = conversation.request() {
                let answer = answer(&asked, &key, &all).unwrap_or_else(|why| {
                    let body = json!({"error": "invalid_request", "error_description": why});
                    of("400 Bad Request", &body.to_string())
                });
                conversation.send(answer);
            }
        });
        Provider { backend, issued }
    }

    pub fn addr(&self) -> SocketAddr {
        self.backend.addr()
    }

    /// The last token that says who somebody is.
    pub fn last_token(&self) -> String {
        let issued = self.issued.lock().unwrap();
        issued.token.clone().expect("a token was given")
    }

    /// How often a path was asked for.
    pub fn asked(&self, path: &str) -> usize {
        let seen = self.backend.seen();
        let paths = seen.iter().map(|it| it.target().split('?').next());
        paths.filter(|it| *it == Some(path)).count()
    }
}

fn answer(asked: &Seen, key: &Key, issued: &Mutex<Issued>) -> Result<String, &'static str> {
    let issuer = format!("http://{}", asked.field("host").ok_or("no host")?);
    let target = asked.target();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let body = match (asked.method(), path) {
        ("GET", "/.well-known/openid-configuration") => discovery(&issuer),
        ("GET", "/keys") => jwks(&[key.jwk("one")]),
        ("GET", "/authorize") => return authorize(&parameters(query), issued),
        ("POST", "/token") => token(asked, &issuer, key, issued)?,
        _ => return Ok(of("404 Not Found", "{}")),
    };
    Ok(of("200 OK", &body))
}

fn discovery(issuer: &str) -> String {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "code_challenge_methods_supported": ["S256"],
    })
    .to_string()
}

/// Sends the browser back with a code.
fn authorize(asked: &Parameters, issued: &Mutex<Issued>) -> Result<String, &'static str> {
    let text = |name: &str| asked.get(name).cloned();
    let is = |name: &str, value: &str| asked.get(name).is_some_and(|it| it == value);
    let scope = text("scope").unwrap_or_default();
    if !is("client_id", CLIENT) || !is("response_type", "code") {
        return Err("not this client, or not for a code");
    }
    if !scope.split(' ').any(|it| it == "openid") || !is("code_challenge_method", "S256") {
        return Err("not openid, or no challenge");
    }
    let redirect = text("redirect_uri").ok_or("nowhere to go back to")?;
    let state = text("state").ok_or("no state")?;
    let grant = Grant {
        redirect: redirect.clone(),
        nonce: text("nonce"),
        challenge: text("code_challenge").ok_or("no challenge")?,
    };
    let mut issued = issued.lock().unwrap();
    issued.count += 1;
    let code = format!("code-{}", issued.count);
    issued.codes.insert(code.clone(), grant);
    let state: String = state.bytes().map(|byte| format!("%{byte:02X}")).collect();
    Ok(format!(
        "HTTP/1.1 302 Found\r\nLocation: {redirect}?code={code}&state={state}\r\n\
         Content-Length: 0\r\n\r\n"
    ))
}

/// Gives tokens for a code, once, to whom it was meant for.
fn token(
    asked: &Seen,
    issuer: &str,
    key: &Key,
    issued: &Mutex<Issued>,
) -> Result<String, &'static str> {
    let form = parameters(std::str::from_utf8(&asked.body).map_err(|_| "not a form")?);
    let text = |name: &str| form.get(name).map(String::as_str);
    let escaped: String = SECRET.replace(' ', "+");
    let basic = format!("Basic {}", base64(&format!("{CLIENT}:{escaped}")));
    let in_form = text("client_id") == Some(CLIENT) && text("client_secret") == Some(SECRET);
    if asked.field("authorization") != Some(&basic) && !in_form {
        return Err("not this client");
    }
    let mut issued = issued.lock().unwrap();
    let code = text("code").unwrap_or_default();
    let grant = issued.codes.remove(code).ok_or("no such code")?;
    let verifier = text("code_verifier").unwrap_or_default();
    let proof = encode(digest(&SHA256, verifier.as_bytes()));
    if text("redirect_uri") != Some(&grant.redirect) || proof != grant.challenge {
        return Err("the code is not meant for this");
    }
    let claims = json!({
        "iss": issuer, "aud": CLIENT, "sub": "ann-1", "iat": in_seconds(0),
        "exp": in_seconds(3600), "nonce": grant.nonce, "email": "ann@example.com",
        "email_verified": true, "preferred_username": "ann", "groups": ["buyers", "staff"],
    });
    let token = key.token("RS256", "one", &claims);
    issued.token = Some(token.clone());
    let answer = json!({
        "access_token": "opaque", "token_type": "Bearer", "expires_in": 3600, "id_token": token,
    });
    Ok(answer.to_string())
}

fn of(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// What a query or a form says.
pub fn parameters(text: &str) -> Parameters {
    let pairs = text.split('&').filter_map(|it| it.split_once('='));
    pairs
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut out = parts
        .next()
        .unwrap_or_default()
        .replace('+', " ")
        .into_bytes();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        out.push(u8::from_str_radix(digits, 16).expect("two digits"));
        out.extend(rest.replace('+', " ").into_bytes());
    }
    String::from_utf8(out).expect("text")
}
