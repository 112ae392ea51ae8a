//! `auth-url` and its family, for one Ingress or for all (`global-auth-*` of the ConfigMap).

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};

use super::fields::{parts, settable};
use super::place::Place;
use super::times::times;
use super::{close, secret};
use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::backends::Backends;
use crate::k8s::translate::golang::parse_bool;
use crate::k8s::translate::policy::balance;
use crate::k8s::translate::report::Problems;
use crate::model::{
    AuthCache, BackendFault, External, HashPart, HostPattern, ObjectRef, Template, TlsTerms,
    UpstreamTls,
};

const URL: &str = "auth-url";
const METHOD: &str = "auth-method";
const SIGN_IN: &str = "auth-signin";
const PARAMETER: &str = "auth-signin-redirect-param";
const TOLD: &str = "auth-response-headers";
const REDIRECT: &str = "auth-request-redirect";
const SENT: &str = "auth-proxy-set-headers";
const CACHE_KEY: &str = "auth-cache-key";
const CACHE_TIME: &str = "auth-cache-duration";
const COOKIES: &str = "auth-always-set-cookie";
const AUTHORITIES: &str = "auth-url-ca-secret";
const VERIFY: &str = "auth-url-verify";
const TIMEOUT: &str = "auth-url-timeout";

/// All of them but the first.
const REST: [&str; 12] = [
    METHOD,
    SIGN_IN,
    PARAMETER,
    TOLD,
    REDIRECT,
    SENT,
    CACHE_KEY,
    CACHE_TIME,
    COOKIES,
    AUTHORITIES,
    VERIFY,
    TIMEOUT,
];

/// The longest answer that is waited for, when nobody says and at most, in seconds.
const TIMEOUT_DEFAULT: u64 = 10;
const TIMEOUT_MAX: u64 = 60;

/// How long answers are remembered when only a key is given, as in ingress-nginx.
const CACHE_DEFAULT: &str = "200 202 401 5m";

type Closed<T> = Result<T, BackendFault>;

/// What an Ingress asks for; where the service is depends on the host and on DNS.
#[derive(Clone, Debug)]
pub(in crate::k8s::translate) struct ExternalWish {
    secure: bool,
    /// None: the host of the Location.
    host: Option<Arc<str>>,
    port: u16,
    authorities: Option<ObjectRef>,
    verify: bool,
    field: String,
    /// Whether it is enough to pass it, or another guard.
    pub any: bool,
    /// All but where it is.
    rest: Box<Rest>,
}

#[derive(Clone, Debug)]
struct Rest {
    target: Template,
    method: Method,
    timeout: Duration,
    sent: Arc<[(HeaderName, HeaderValue)]>,
    redirect: Option<Template>,
    told: Arc<[HeaderName]>,
    sign_in: Option<Template>,
    always_cookies: bool,
    cache: Option<AuthCache>,
}

/// Reads the annotations.
///
/// # Errors
/// When it cannot be told who may call.
pub(in crate::k8s::translate) fn read(
    view: &View<'_>,
    problems: &mut Problems,
) -> Closed<Option<ExternalWish>> {
    let mut reader = Reader {
        view,
        problems,
        global: false,
    };
    let wants_global = reader.wants_global();
    let Some(url) = view.annotations.get(URL) else {
        let rest = REST.iter().find_map(|key| view.annotations.own(key));
        if let Some(url) = view
            .annotations
            .preset("global-auth-url")
            .filter(|_| wants_global)
        {
            reader.global = true;
            if let Some(rest) = rest {
                reader.unused(rest);
            }
            let url = Annotation {
                key: "global-auth-url",
                value: url,
            };
            return reader.read(url).map(Some);
        }
        return match rest {
            None => Ok(None),
            Some(rest) => {
                let what = format!("there is no {URL}, so nobody can be asked");
                Err(reader.close(rest, what))
            }
        };
    };
    reader.read(url).map(Some)
}

struct Reader<'v, 'o, 'p> {
    view: &'v View<'o>,
    problems: &'p mut Problems,
    /// Whether what is said for all Ingresses is read.
    global: bool,
}

impl<'o> Reader<'_, 'o, '_> {
    fn get(&self, name: &'static str) -> Option<Annotation<'o>> {
        if !self.global {
            return self.view.annotations.get(name);
        }
        let key = GLOBAL.iter().find(|(annotation, _)| *annotation == name);
        let (_, key) = key?;
        let value = self.view.annotations.preset(key)?;
        Some(Annotation { key, value })
    }

    fn close(&mut self, annotation: Annotation<'_>, what: impl Into<String>) -> BackendFault {
        close(self.view, annotation, what, self.problems)
    }

    /// What is said of a service that is not asked.
    fn unused(&mut self, annotation: Annotation<'_>) {
        self.problems.warn(
            &self.view.subject,
            annotation.field(),
            "auth-unused",
            format!("there is no {URL}, and global-auth-url asks as the defaults say"),
            "ignored, and others of its family with it",
        );
    }

    /// `enable-global-auth`: what is neither true nor false is true.
    fn wants_global(&mut self) -> bool {
        let Some(annotation) = self.view.annotations.get("enable-global-auth") else {
            return true;
        };
        parse_bool(annotation.value.trim()).unwrap_or_else(|| {
            self.problems.error(
                &self.view.subject,
                annotation.field(),
                "flag-invalid",
                format!("{:?} is neither true nor false", annotation.value),
                "it counts as true",
            );
            true
        })
    }

    fn read(&mut self, url: Annotation<'o>) -> Closed<ExternalWish> {
        let text = url.value.trim();
        let place = Place::read(text).map_err(|what| self.close(url, what))?;
        let authorities = self.authorities()?;
        if let Some(unused) = self.get(AUTHORITIES).filter(|_| !place.secure) {
            self.problems.warn(
                &self.view.subject,
                unused.field(),
                "auth-unused",
                format!("{URL} is no URL of https, so nobody proves who answers"),
                "the service is asked in cleartext, and believed",
            );
        }
        let verify = self.switch(VERIFY, true)?;
        let cache = self.cache()?;
        Ok(ExternalWish {
            secure: place.secure,
            host: place.host,
            port: place.port,
            authorities,
            verify,
            field: url.field(),
            any: super::any(self.view, &mut Problems::default()),
            rest: Box::new(Rest {
                target: place.target,
                method: self.method()?,
                timeout: self.timeout()?,
                sent: self.sent()?,
                redirect: self.template(REDIRECT)?,
                told: self.told()?,
                sign_in: self.sign_in()?,
                always_cookies: self.switch(COOKIES, false)?,
                cache,
            }),
        })
    }

    fn switch(&mut self, name: &'static str, default: bool) -> Closed<bool> {
        let Some(annotation) = self.get(name) else {
            return Ok(default);
        };
        parse_bool(annotation.value.trim()).ok_or_else(|| {
            let what = format!("{:?} is neither true nor false", annotation.value);
            self.close(annotation, what)
        })
    }

    fn authorities(&mut self) -> Closed<Option<ObjectRef>> {
        let Some(annotation) = self.get(AUTHORITIES) else {
            return Ok(None);
        };
        let object = secret(self.view, annotation, self.problems)?;
        if !self.view.secrets.holds(&object, "ca.crt") {
            let what = format!("the {object} has no ca.crt");
            return Err(self.close(annotation, what));
        }
        Ok(Some(object))
    }

    fn method(&mut self) -> Closed<Method> {
        let Some(annotation) = self.get(METHOD) else {
            return Ok(Method::GET);
        };
        let method = Method::from_bytes(annotation.value.trim().as_bytes()).ok();
        let known = [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ];
        method.filter(|it| known.contains(it)).ok_or_else(|| {
            let what = format!(
                "{:?} is no method that a service can be asked with",
                annotation.value
            );
            self.close(annotation, what)
        })
    }

    fn timeout(&mut self) -> Closed<Duration> {
        let Some(annotation) = self.get(TIMEOUT) else {
            return Ok(Duration::from_secs(TIMEOUT_DEFAULT));
        };
        let seconds = annotation.value.trim().parse().ok();
        match seconds.filter(|it| (1..=TIMEOUT_MAX).contains(it)) {
            Some(seconds) => Ok(Duration::from_secs(seconds)),
            None => {
                let what = format!(
                    "{:?} is no number from 1 to {TIMEOUT_MAX}",
                    annotation.value
                );
                Err(self.close(annotation, what))
            }
        }
    }

    fn template(&mut self, name: &'static str) -> Closed<Option<Template>> {
        let Some(annotation) = self.get(name).filter(|it| !it.value.trim().is_empty()) else {
            return Ok(None);
        };
        let text = annotation.value.trim();
        if HeaderValue::from_str(text).is_err() {
            return Err(self.close(annotation, format!("{text:?} cannot stand in a header")));
        }
        match Template::parse(text) {
            Ok(template) => Ok(Some(template)),
            Err(error) => Err(self.close(annotation, format!("{text:?}: {error}"))),
        }
    }

    fn told(&mut self) -> Closed<Arc<[HeaderName]>> {
        let Some(annotation) = self.get(TOLD) else {
            return Ok(Arc::new([]));
        };
        let names = parts(annotation.value, |c| c == ',').map(settable);
        let names: Result<Vec<_>, _> = names.collect();
        names
            .map(Into::into)
            .map_err(|what| self.close(annotation, what))
    }

    /// The name of the parameter that says where to come back to.
    fn parameter(&mut self) -> Closed<&'o str> {
        let Some(annotation) = self.get(PARAMETER) else {
            return Ok("rd");
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        match annotation.value.trim() {
            "" => Ok("rd"),
            name if name.bytes().all(plain) => Ok(name),
            name => Err(self.close(annotation, format!("{name:?} is no plain name"))),
        }
    }

    /// Where to sign in, with the place to come back to.
    fn sign_in(&mut self) -> Closed<Option<Template>> {
        let parameter = self.parameter()?;
        let Some(annotation) = self.get(SIGN_IN).filter(|it| !it.value.trim().is_empty()) else {
            return Ok(None);
        };
        let text = annotation.value.trim();
        let secure = text.starts_with("https://") || text.starts_with("http://");
        if !(secure || text.starts_with('/')) || HeaderValue::from_str(text).is_err() {
            let what = format!("{text:?} is no URL of http or https");
            return Err(self.close(annotation, what));
        }
        let query = text.split_once('?').map(|(_, query)| query);
        let mut names = query.into_iter().flat_map(|it| it.split('&'));
        let text = match (
            query,
            names.any(|it| it.split('=').next() == Some(parameter)),
        ) {
            (_, true) => text.to_owned(),
            (None, _) => format!("{text}?{parameter}={BACK}"),
            (Some(_), _) => format!("{text}&{parameter}={BACK}"),
        };
        match Template::parse(&text) {
            Ok(template) => Ok(Some(template)),
            Err(error) => Err(self.close(annotation, format!("{text:?}: {error}"))),
        }
    }

    fn sent(&mut self) -> Closed<Arc<[(HeaderName, HeaderValue)]>> {
        let Some(annotation) = self.get(SENT) else {
            return Ok(Arc::new([]));
        };
        let value = annotation.value.trim();
        let own = &*self.view.subject.object.namespace;
        let (namespace, name) = value.split_once('/').unwrap_or((own, value));
        let map = match namespace == own {
            true => self.view.secrets.config_map(namespace, name),
            false => {
                let what =
                    format!("the ConfigMap {value} is not in the Ingress's own namespace {own}");
                return Err(self.close(annotation, what));
            }
        };
        let Some(map) = map else {
            return Err(self.close(
                annotation,
                format!("there is no ConfigMap {namespace}/{name}"),
            ));
        };
        let mut fields = Vec::new();
        for (name, value) in map {
            let field = settable(name).and_then(|name| {
                let value = HeaderValue::from_str(value.trim());
                let value =
                    value.map_err(|_| format!("the value of {name} is not one of a header"))?;
                Ok((name, value))
            });
            fields.push(field.map_err(|what| self.close(annotation, what))?);
        }
        Ok(fields.into())
    }

    fn cache(&mut self) -> Closed<Option<AuthCache>> {
        let given = self.get(CACHE_TIME);
        let text = given.map_or(CACHE_DEFAULT, |it| it.value.trim());
        let times = match (times(text), given) {
            (Ok(times), _) => times,
            (Err(what), Some(annotation)) => return Err(self.close(annotation, what)),
            (Err(_), None) => Vec::new(),
        };
        let Some(annotation) = self.get(CACHE_KEY).filter(|it| !it.value.trim().is_empty()) else {
            return Ok(None);
        };
        match balance::pieces(&with_user(annotation.value.trim())) {
            Ok(pieces) => Ok(Some(AuthCache {
                key: pieces.into_iter().collect::<Arc<[HashPart]>>(),
                times: times.into(),
            })),
            // A key without a variable is one answer for everybody.
            Err(what) => Err(self.close(annotation, what)),
        }
    }
}

/// Where clients come back to after they have signed in.
const BACK: &str = "$scheme://$http_host$escaped_request_uri";

/// Keys of the ConfigMap that stand for annotations.
pub(in crate::k8s::translate) const GLOBAL: [(&str, &str); 9] = [
    (URL, "global-auth-url"),
    (METHOD, "global-auth-method"),
    (SIGN_IN, "global-auth-signin"),
    (PARAMETER, "global-auth-signin-redirect-param"),
    (TOLD, "global-auth-response-headers"),
    (REDIRECT, "global-auth-request-redirect"),
    (CACHE_KEY, "global-auth-cache-key"),
    (CACHE_TIME, "global-auth-cache-duration"),
    (COOKIES, "global-auth-always-set-cookie"),
];

/// The user is in what he sends.
fn with_user(text: &str) -> String {
    text.replace("${remote_user}", "$remote_user")
        .replace("$remote_user", "${http_authorization}")
}

impl ExternalWish {
    /// What holds for the Locations of a host.
    ///
    /// # Errors
    /// When the service cannot be told for it.
    pub(in crate::k8s::translate) fn on(
        &self,
        view: &View<'_>,
        host: &HostPattern,
        backends: &mut Backends<'_>,
        problems: &mut Problems,
    ) -> Closed<External> {
        let place = match (&self.host, host) {
            (Some(host), _) => host.clone(),
            (None, HostPattern::Exact(host)) => host.clone(),
            (None, host) => {
                problems.error(
                    &view.subject,
                    self.field.clone(),
                    "auth-invalid",
                    format!(
                        "$host can be anything that a client says on the host {:?}",
                        host.to_string()
                    ),
                    "its paths answer 503, as a client could name who is asked",
                );
                return Err(BackendFault::GuardInvalid);
            }
        };
        let service = backends.outside(&view.subject, &place, self.port, &self.field, problems);
        let service = service.map_err(|what| {
            let effect = "every path that it is for answers 503, as nobody can be asked";
            problems.error(
                &view.subject,
                self.field.clone(),
                "auth-invalid",
                what,
                effect,
            );
            BackendFault::GuardInvalid
        })?;
        let bare = place.trim_start_matches('[').trim_end_matches(']');
        let tls = self.secure.then(|| UpstreamTls {
            // No further than the library goes: nobody says how far.
            depth: 6,
            terms: TlsTerms::default(),
            secret: self.authorities.clone(),
            verify: self.verify,
            name: Some(bare.into()),
            server_name: true,
            http2: false,
        });
        let rest = (*self.rest).clone();
        Ok(External {
            service,
            host: place,
            tls,
            target: rest.target,
            method: rest.method,
            timeout: rest.timeout,
            sent: rest.sent,
            redirect: rest.redirect,
            told: rest.told,
            sign_in: rest.sign_in,
            always_cookies: rest.always_cookies,
            cache: rest.cache,
        })
    }
}
