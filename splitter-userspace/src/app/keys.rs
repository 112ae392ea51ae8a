//! Fetches the keys that tokens are signed with, ahead of when they are needed.
//!
//! One task for each URL: at once, then when most of the time has passed for which the answer may be
//! kept, and out of turn when a token names a key that nobody knows, but never again within
//! [`REST`]. Whatever goes wrong leaves the last good keys.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, HOST, HeaderMap};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::auth::{JWKS_MAX, KeySet, Wish};
use crate::config::NameSettings;
use crate::k8s::is_local;
use crate::model::{KeyUrl, ObjectRef, SecretData};
use crate::names;
use crate::telemetry::{Counter, KEY_FETCHES, Registry};
use crate::tls;

/// For a whole fetch.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two fetches of one URL, whoever asks.
const REST: Duration = Duration::from_secs(10);

/// Between fetches when the answer does not say how long it may be kept, and the bounds when it does.
const EVERY: Duration = Duration::from_secs(10 * 60);
const EVERY_LEAST: Duration = Duration::from_secs(60);
const EVERY_MOST: Duration = Duration::from_secs(3600);

/// Told what was fetched, and the how manieth fetch of this URL it was.
pub type Told = Arc<dyn Fn(&KeyUrl, u64, Result<KeySet, String>) + Send + Sync>;

/// See the module's text.
pub struct KeyFetcher {
    names: NameSettings,
    told: Told,
    counters: [Counter; 2],
    tasks: BTreeMap<KeyUrl, Running>,
}

struct Running {
    /// The authorities that it was begun with.
    data: Option<SecretData>,
    task: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl KeyFetcher {
    /// Fetches nothing yet.
    pub fn new(names: NameSettings, registry: &Registry, told: Told) -> Self {
        let counter = |result| registry.counter(&KEY_FETCHES, &[("result", result)]);
        KeyFetcher {
            names,
            told,
            counters: ["ok", "failed"].map(counter),
            tasks: BTreeMap::new(),
        }
    }

    /// Follows these URLs and no others. Gives those that are new, or begin anew as others vouch for
    /// them, each with where newer keys are asked for.
    pub fn follow<'a>(
        &mut self,
        urls: impl Iterator<Item = &'a KeyUrl>,
        secrets: &BTreeMap<ObjectRef, SecretData>,
    ) -> Vec<(KeyUrl, Arc<dyn Wish>)> {
        let mut before = std::mem::take(&mut self.tasks);
        let mut new = Vec::new();
        for url in urls {
            let data = url.authorities.as_ref().and_then(|it| secrets.get(it));
            let known = before.remove(url).filter(|it| it.data.as_ref() == data);
            let running = known.unwrap_or_else(|| {
                let asked = Arc::new(Asked::default());
                new.push((url.clone(), asked.clone() as Arc<dyn Wish>));
                self.begin(url, data, asked)
            });
            self.tasks.insert(url.clone(), running);
        }
        new
    }

    fn begin(&self, url: &KeyUrl, data: Option<&SecretData>, asked: Arc<Asked>) -> Running {
        let job = Job {
            url: url.clone(),
            data: data.cloned(),
            names: self.names.clone(),
            told: self.told.clone(),
            counters: self.counters.clone(),
            asked,
        };
        Running {
            data: data.cloned(),
            task: tokio::spawn(job.run()).abort_handle(),
        }
    }
}

/// What workers ask for.
struct Asked {
    notify: Notify,
    /// How many fetches have begun.
    begun: AtomicU64,
    /// When the last fetch ended.
    last: Mutex<Option<Instant>>,
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            notify: Notify::new(),
            // It begins with a fetch.
            begun: AtomicU64::new(1),
            last: Mutex::new(None),
        }
    }
}

impl Wish for Asked {
    fn newer(&self, than: u64) -> bool {
        // Its keys are still being fetched, or on their way to whoever asks.
        if self.begun.load(Ordering::Acquire) > than {
            return true;
        }
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let may = last.is_none_or(|last| last.elapsed() >= REST);
        if may {
            self.notify.notify_one();
        }
        may
    }
}

struct Job {
    url: KeyUrl,
    data: Option<SecretData>,
    names: NameSettings,
    told: Told,
    counters: [Counter; 2],
    asked: Arc<Asked>,
}

impl Job {
    async fn run(self) {
        let mut failures = 0;
        for fetch in 1.. {
            self.asked.begun.store(fetch, Ordering::Release);
            let fetched = match timeout(PATIENCE, self.fetch()).await {
                Ok(fetched) => fetched,
                Err(_) => Err(format!("no whole answer within {PATIENCE:?}")),
            };
            let [ok, failed] = &self.counters;
            let pause = match &fetched {
                Ok((_, keep)) => {
                    ok.inc();
                    failures = 0;
                    // Before the time is over.
                    *keep * 4 / 5
                }
                Err(error) => {
                    failed.inc();
                    failures += 1;
                    tracing::warn!(url = %self.url.url, error, "keys could not be fetched");
                    REST * 2_u32.pow(failures.min(4) - 1)
                }
            };
            let ended = Instant::now();
            *self
                .asked
                .last
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(ended);
            (self.told)(&self.url, fetch, fetched.map(|(set, _)| set));
            let over = tokio::time::sleep(pause);
            let mut over = std::pin::pin!(over);
            loop {
                tokio::select! {
                    () = &mut over => break,
                    // Two may have asked for the fetch that is just over.
                    () = self.asked.notify.notified() => if ended.elapsed() >= REST { break },
                }
            }
        }
    }

    async fn fetch(&self) -> Result<(KeySet, Duration), String> {
        let url: Uri = self.url.url.parse().map_err(|_| "it is no URL")?;
        let host = url.host().ok_or("it names no host")?;
        let port = url.port_u16().unwrap_or(443);
        let config = tls::outside(self.data.as_ref()).map_err(|error| error.to_string())?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(bare.to_owned());
        let name = name.map_err(|_| "its host is neither a name nor an address")?;
        let mut last = Err("the host has no address that may be asked".to_owned());
        let addresses = self.addresses(bare).await?;
        // One that says nothing leaves time for the others.
        let patience = PATIENCE / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        for address in addresses {
            let address = SocketAddr::new(address, port);
            let connector = TlsConnector::from(config.clone());
            let asked = timeout(patience, ask(address, &url, name.clone(), connector)).await;
            last = asked
                .unwrap_or_else(|_| Err(format!("{address}: no whole answer within {patience:?}")));
            if last.is_ok() {
                break;
            }
        }
        let (headers, body) = last?;
        let set = KeySet::read(&body, false).map_err(|error| error.to_string())?;
        Ok((set, keep(&headers)))
    }

    /// The addresses of the host, without those that lead to this node.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let mut addresses = match host.parse() {
            Ok(address) => vec![address],
            Err(_) if host == "localhost" => vec![IpAddr::from([127, 0, 0, 1])],
            Err(_) => {
                let found = names::look_up(&self.names.servers, host).await;
                found.map_err(|error| format!("{host} does not resolve: {error}"))?
            }
        };
        if !self.names.allow_local {
            addresses.retain(|address| !is_local(*address));
        }
        Ok(addresses)
    }
}

/// One GET. Only 200 counts: where a redirect leads, nobody has named.
async fn ask(
    address: SocketAddr,
    url: &Uri,
    name: ServerName<'static>,
    connector: TlsConnector,
) -> Result<(HeaderMap, Bytes), String> {
    let text = |error: &dyn std::error::Error| format!("{address}: {error}");
    let stream = TcpStream::connect(address).await.map_err(|e| text(&e))?;
    let stream = connector
        .connect(name, stream)
        .await
        .map_err(|e| text(&e))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| text(&e))?;
    let target = url.path_and_query().map_or("/", |it| it.as_str());
    let authority = url.authority().map_or("", |it| it.as_str());
    let request = Request::get(target)
        .header(HOST, authority)
        .header(ACCEPT, "application/jwk-set+json, application/json")
        .body(Empty::<Bytes>::new())
        .map_err(|e| text(&e))?;
    let exchange = async {
        let answer = sender.send_request(request).await.map_err(|e| text(&e))?;
        if answer.status() != StatusCode::OK {
            return Err(format!("{address} answers {}", answer.status()));
        }
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, JWKS_MAX).collect().await;
        let body = body.map_err(|error| format!("{address}: {error}"))?;
        Ok((head.headers, body.to_bytes()))
    };
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        // A server that closes ends it together with its whole answer, which is there then.
        ended = connection => {
            let answer = exchange.await;
            answer.map_err(|error| ended.map_or_else(|ended| text(&ended), |()| error))
        }
    }
}

/// How long an answer may be kept (`max-age`), within bounds.
fn keep(headers: &HeaderMap) -> Duration {
    let lines = headers.get_all(CACHE_CONTROL).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let mut parts = lines.flat_map(|line| line.split(',')).map(str::trim);
    let age = parts.find_map(|part| part.strip_prefix("max-age=")?.parse().ok());
    age.map_or(EVERY, Duration::from_secs)
        .clamp(EVERY_LEAST, EVERY_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_for_which_keys_are_kept_has_bounds() {
        for (text, seconds) in [
            ("", 600),
            ("public, max-age=300, must-revalidate", 300),
            ("max-age=0", 60),
            ("no-store", 600),
            ("max-age=99999999", 3600),
            ("max-age=x", 600),
        ] {
            let headers =
                HeaderMap::from_iter([(CACHE_CONTROL, text.parse().unwrap_or_else(|_| panic!()))]);
            assert_eq!(keep(&headers), Duration::from_secs(seconds), "{text}");
        }
    }
}
