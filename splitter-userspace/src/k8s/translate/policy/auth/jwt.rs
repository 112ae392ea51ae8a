//! `jwt-*`: who may call, by a token that somebody has signed. Whatever of it cannot be read closes
//! the Ingress.

use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderName, Uri};

use super::fields::{claim, parts, settable};
use super::{close, quoted, secret};
use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::golang::parse_bool;
use crate::k8s::translate::report::Problems;
use crate::model::{
    Algorithm, Algorithms, BackendFault, ClaimHeader, ClaimTest, Jwt, KeySource, KeyUrl, TokenPlace,
};

const ISSUER: &str = "jwt-issuer";
const AUDIENCES: &str = "jwt-audiences";
const ALGORITHMS: &str = "jwt-algorithms";
const SECRET: &str = "jwt-jwks-secret";
const CONFIG_MAP: &str = "jwt-jwks-configmap";
const URL: &str = "jwt-jwks-url";
const AUTHORITIES: &str = "jwt-jwks-ca-secret";
const KIND: &str = "jwt-type";
const LEEWAY: &str = "jwt-leeway";
const HEADER: &str = "jwt-header";
const COOKIE: &str = "jwt-cookie";
const QUERY: &str = "jwt-query";
const CLAIMS: &str = "jwt-claims";
const HEADERS: &str = "jwt-claim-headers";
const FORWARD: &str = "jwt-forward";
const REALM: &str = "jwt-realm";

/// All of them.
const KEYS: [&str; 16] = [
    ISSUER,
    AUDIENCES,
    ALGORITHMS,
    SECRET,
    CONFIG_MAP,
    URL,
    AUTHORITIES,
    KIND,
    LEEWAY,
    HEADER,
    COOKIE,
    QUERY,
    CLAIMS,
    HEADERS,
    FORWARD,
    REALM,
];

/// The entry of a Secret or ConfigMap that holds keys.
const ENTRY: &str = KeySource::ENTRY;

/// How far clocks may be apart when nobody says, and at most.
const LEEWAY_DEFAULT: u64 = 60;
const LEEWAY_MAX: u64 = 300;

type Closed<T> = Result<T, BackendFault>;

/// Reads the annotations.
///
/// # Errors
/// When it cannot be told who may call.
pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Closed<Option<Jwt>> {
    let Some(first) = KEYS.iter().find_map(|key| view.annotations.get(key)) else {
        return Ok(None);
    };
    let mut reader = Reader { view, problems };
    let issuer = reader.needed(ISSUER, first, "whose tokens count")?;
    let audiences = reader.needed(AUDIENCES, first, "for whom a token must be")?;
    let audiences: Arc<[Arc<str>]> = parts(audiences.value, |c| c == ',')
        .map(Into::into)
        .collect();
    if audiences.is_empty() {
        return Err(reader.close(first, format!("{AUDIENCES} names nobody")));
    }
    let keys = reader.keys(first)?;
    Ok(Some(Jwt {
        issuer: issuer.value.trim().into(),
        audiences,
        algorithms: reader.algorithms(&keys)?,
        keys,
        kind: reader.kind()?,
        leeway: reader.leeway()?,
        places: reader.places()?,
        claims: reader.claims()?,
        headers: reader.headers()?,
        forward: reader.forward()?,
        realm: match view.annotations.get(REALM) {
            Some(realm) => quoted(view, realm, reader.problems)?,
            None => "".into(),
        },
    }))
}

struct Reader<'v, 'o, 'p> {
    view: &'v View<'o>,
    problems: &'p mut Problems,
}

impl<'o> Reader<'_, 'o, '_> {
    fn get(&self, name: &str) -> Option<Annotation<'o>> {
        self.view.annotations.get(name)
    }

    fn close(&mut self, annotation: Annotation<'_>, what: impl Into<String>) -> BackendFault {
        close(self.view, annotation, what, self.problems)
    }

    fn needed(&mut self, name: &str, first: Annotation<'o>, what: &str) -> Closed<Annotation<'o>> {
        match self.get(name) {
            Some(given) if !given.value.trim().is_empty() => Ok(given),
            given => {
                let what = format!("there is no {name}, so it cannot be told {what}");
                Err(self.close(given.unwrap_or(first), what))
            }
        }
    }

    fn keys(&mut self, first: Annotation<'o>) -> Closed<KeySource> {
        let sources = [SECRET, CONFIG_MAP, URL].map(|name| self.get(name));
        let [secret_named, map, url] = sources;
        let authorities = self.get(AUTHORITIES);
        if let (Some(unused), None) = (authorities, url) {
            let what = format!("it is for {URL}, which is not there");
            return Err(self.close(unused, what));
        }
        match (secret_named, map, url) {
            (Some(named), None, None) => {
                let object = secret(self.view, named, self.problems)?;
                self.holds(named, KeySource::Object(object))
            }
            (None, Some(named), None) => {
                let (view, name) = (self.view, named.value.trim());
                match view
                    .secrets
                    .take_config_map(&view.subject.object.namespace, name)
                {
                    Some(object) => self.holds(named, KeySource::Object(object)),
                    None => Err(self.close(named, format!("there is no ConfigMap {name:?}"))),
                }
            }
            (None, None, Some(url)) => self.url(url, authorities),
            (None, None, None) => {
                let what = format!("there is none of {SECRET}, {CONFIG_MAP} and {URL}: no key");
                Err(self.close(first, what))
            }
            _ => {
                let more = sources.into_iter().flatten().last().unwrap_or(first);
                let what = format!("there must be one of {SECRET}, {CONFIG_MAP} and {URL}");
                Err(self.close(more, what))
            }
        }
    }

    fn holds(&mut self, named: Annotation<'_>, source: KeySource) -> Closed<KeySource> {
        match &source {
            KeySource::Object(object) if !self.view.secrets.holds(object, ENTRY) => {
                let what = format!("the {object} has no entry {ENTRY}");
                Err(self.close(named, what))
            }
            _ => Ok(source),
        }
    }

    fn url(
        &mut self,
        annotation: Annotation<'_>,
        authorities: Option<Annotation<'_>>,
    ) -> Closed<KeySource> {
        let text = annotation.value.trim();
        let url = text.parse::<Uri>().ok();
        let secure = url.filter(|url| {
            let plain = |it: &http::uri::Authority| !it.as_str().contains('@');
            url.scheme_str() == Some("https") && url.authority().is_some_and(plain)
        });
        if secure.is_none() || text.contains('#') {
            let what = format!("{text:?} is no URL of https");
            return Err(self.close(annotation, what));
        }
        let authorities = match authorities {
            None => None,
            Some(named) => {
                let object = secret(self.view, named, self.problems)?;
                if !self.view.secrets.holds(&object, "ca.crt") {
                    let what = format!("the {object} has no ca.crt");
                    return Err(self.close(named, what));
                }
                Some(object)
            }
        };
        Ok(KeySource::Url(KeyUrl {
            url: text.into(),
            authorities,
        }))
    }

    fn algorithms(&mut self, keys: &KeySource) -> Closed<Algorithms> {
        let Some(annotation) = self.get(ALGORITHMS) else {
            return Ok(Algorithms::asymmetric());
        };
        let mut all = Vec::new();
        for name in parts(annotation.value, |c| c == ',') {
            let Some(algorithm) = Algorithm::named(name) else {
                let known = Algorithm::ALL.map(Algorithm::as_str).join(", ");
                let what = format!("{name:?} is none of {known}");
                return Err(self.close(annotation, what));
            };
            let secret =
                matches!(keys, KeySource::Object(it) if it.kind == crate::model::Kind::Secret);
            if algorithm.is_symmetric() && !secret {
                let what = format!("{name} needs its key in a Secret ({SECRET})");
                return Err(self.close(annotation, what));
            }
            all.push(algorithm);
        }
        match all.is_empty() {
            true => Err(self.close(annotation, "it names no algorithm")),
            false => Ok(all.into_iter().collect()),
        }
    }

    fn kind(&mut self) -> Closed<Option<Arc<str>>> {
        let Some(annotation) = self.get(KIND) else {
            return Ok(None);
        };
        match annotation.value.trim() {
            "" => Err(self.close(annotation, "it names no type")),
            kind => Ok(Some(kind.into())),
        }
    }

    fn leeway(&mut self) -> Closed<Duration> {
        let Some(annotation) = self.get(LEEWAY) else {
            return Ok(Duration::from_secs(LEEWAY_DEFAULT));
        };
        let seconds = annotation.value.trim().parse().ok();
        match seconds.filter(|seconds| *seconds <= LEEWAY_MAX) {
            Some(seconds) => Ok(Duration::from_secs(seconds)),
            None => {
                let what = format!("{:?} is no number from 0 to {LEEWAY_MAX}", annotation.value);
                Err(self.close(annotation, what))
            }
        }
    }

    /// Authorization, unless another place is named.
    fn places(&mut self) -> Closed<Arc<[TokenPlace]>> {
        let mut places = Vec::new();
        if let Some(annotation) = self.get(HEADER) {
            let name = annotation.value.trim();
            match HeaderName::from_bytes(name.as_bytes()) {
                Ok(name) if name == AUTHORIZATION || settable(name.as_str()).is_ok() => {
                    places.push(TokenPlace::Header(name));
                }
                _ => {
                    let what = format!("{name:?} is no header that could hold a token");
                    return Err(self.close(annotation, what));
                }
            }
        }
        for name in [COOKIE, QUERY] {
            let Some(annotation) = self.get(name) else {
                continue;
            };
            let value = annotation.value.trim();
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            if value.is_empty() || !value.bytes().all(plain) {
                let what = format!("{value:?} is no plain name");
                return Err(self.close(annotation, what));
            }
            places.push(match name {
                COOKIE => TokenPlace::Cookie(value.into()),
                _ => TokenPlace::Query(value.into()),
            });
        }
        if places.is_empty() {
            places.push(TokenPlace::Header(AUTHORIZATION));
        }
        Ok(places.into())
    }

    fn claims(&mut self) -> Closed<Arc<[ClaimTest]>> {
        let Some(annotation) = self.get(CLAIMS) else {
            return Ok(Arc::new([]));
        };
        let read = |text: &str| {
            let (path, values) = text
                .split_once('=')
                .ok_or_else(|| format!("{text:?} is not CLAIM=VALUE,..."))?;
            let values: Arc<[Arc<str>]> = parts(values, |c| c == ',').map(Into::into).collect();
            match values.is_empty() {
                true => Err(format!("{text:?} names no value")),
                false => Ok(ClaimTest {
                    claim: claim(path.trim())?,
                    values,
                }),
            }
        };
        let tests = parts(annotation.value, |c| c == ';' || c == '\n').map(read);
        let tests: Result<Vec<_>, _> = tests.collect();
        match tests {
            Ok(tests) if tests.is_empty() => Err(self.close(annotation, "it names no claim")),
            Ok(tests) => Ok(tests.into()),
            Err(what) => Err(self.close(annotation, what)),
        }
    }

    fn headers(&mut self) -> Closed<Arc<[ClaimHeader]>> {
        let Some(annotation) = self.get(HEADERS) else {
            return Ok(Arc::new([]));
        };
        let read = |text: &str| {
            let (path, header) = text
                .split_once('=')
                .ok_or_else(|| format!("{text:?} is not CLAIM=HEADER"))?;
            let header = settable(header.trim())?;
            if header == AUTHORIZATION {
                return Err(format!("{header} cannot be set by it"));
            }
            Ok(ClaimHeader {
                claim: claim(path.trim())?,
                header,
            })
        };
        let headers = parts(annotation.value, |c| c == ',' || c == '\n').map(read);
        let headers: Result<Vec<_>, String> = headers.collect();
        headers
            .map(Into::into)
            .map_err(|what| self.close(annotation, what))
    }

    fn forward(&mut self) -> Closed<bool> {
        let Some(annotation) = self.get(FORWARD) else {
            return Ok(false);
        };
        parse_bool(annotation.value.trim()).ok_or_else(|| {
            let what = format!("{:?} is neither true nor false", annotation.value);
            self.close(annotation, what)
        })
    }
}
