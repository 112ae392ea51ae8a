//! Looks up the names of ExternalName Services, again and again, beside the translation.
//!
//! A task of its own asks DNS for the names that the last translation wanted, and tells when an
//! answer is another one than before; the next translation gets all that is known as data. A name
//! that no longer resolves keeps its last addresses.

mod entry;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::k8s::Resolution;
use entry::{Answer, Entry};

/// Names that are looked up; those beyond, in alphabetical order, are not.
const NAMES_MAX: usize = 1024;

/// Look-ups at the same time.
const CONCURRENT: usize = 16;

/// Names and where they lead.
pub type Known = BTreeMap<Arc<str>, Resolution>;

/// A task that looks names up. It ends with this.
pub struct NameResolver {
    wanted: watch::Sender<BTreeSet<Arc<str>>>,
    known: watch::Receiver<Arc<Known>>,
}

impl NameResolver {
    /// Starts a task that asks `servers`, or the system's if there are none.
    pub fn start(servers: &[SocketAddr]) -> Self {
        let (wanted, told) = watch::channel(BTreeSet::new());
        let (tell, known) = watch::channel(Arc::default());
        let task = Task {
            servers: servers.to_vec(),
            resolver: None,
            wanted: told,
            known: tell,
            entries: BTreeMap::new(),
        };
        tokio::spawn(task.run());
        NameResolver { wanted, known }
    }

    /// Has these names looked up, and no others.
    pub fn want(&self, names: BTreeSet<Arc<str>>) {
        self.wanted.send_if_modified(|wanted| {
            let differ = *wanted != names;
            *wanted = names;
            differ
        });
    }

    /// Whether any name is wanted.
    pub fn is_wanted(&self) -> bool {
        !self.wanted.borrow().is_empty()
    }

    /// All that is known.
    pub fn known(&mut self) -> Arc<Known> {
        self.known.borrow_and_update().clone()
    }

    /// Waits until something else is known than [`Self::known`] last gave. May be cancelled.
    pub async fn changed(&mut self) {
        if self.known.changed().await.is_err() {
            // The task is gone: nothing changes any more.
            std::future::pending().await
        }
    }
}

struct Task {
    servers: Vec<SocketAddr>,
    /// Made when the first name is wanted.
    resolver: Option<TokioResolver>,
    wanted: watch::Receiver<BTreeSet<Arc<str>>>,
    known: watch::Sender<Arc<Known>>,
    entries: BTreeMap<Arc<str>, Entry>,
}

impl Task {
    async fn run(mut self) {
        loop {
            self.take_wanted();
            self.look_up().await;
            self.publish();
            let next = self.entries.values().filter_map(Entry::due).min();
            let due = async {
                match next {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = self.wanted.changed() => if changed.is_err() {
                    return;
                },
                () = due => {}
            }
        }
    }

    /// Forgets what is no longer wanted and begins with what is new.
    fn take_wanted(&mut self) {
        let wanted = self.wanted.borrow_and_update();
        // Those that were left out may have a place now.
        self.entries
            .retain(|name, entry| wanted.contains(name) && entry.due().is_some());
        for name in wanted.iter() {
            if !self.entries.contains_key(name) {
                let entry = match self.entries.len() < NAMES_MAX {
                    true => Entry::new(Instant::now()),
                    false => Entry::left_out(NAMES_MAX),
                };
                self.entries.insert(name.clone(), entry);
            }
        }
    }

    /// Looks up what is due.
    async fn look_up(&mut self) {
        let now = Instant::now();
        let is_due = |entry: &Entry| entry.due().is_some_and(|due| due <= now);
        let due = self.entries.iter().filter(|(_, entry)| is_due(entry));
        let mut due: Vec<_> = due.map(|(name, _)| name.clone()).collect();
        let resolver = match self.resolver() {
            _ if due.is_empty() => return,
            Ok(resolver) => resolver,
            Err(why) => {
                for name in due {
                    self.note(&name, Err(why.clone()));
                }
                return;
            }
        };
        let mut running = JoinSet::new();
        loop {
            while running.len() < CONCURRENT
                && let Some(name) = due.pop()
            {
                let resolver = resolver.clone();
                running.spawn(async move {
                    let answer = ask(&resolver, &name).await;
                    (name, answer)
                });
            }
            match running.join_next().await {
                Some(Ok((name, answer))) => self.note(&name, answer),
                // A look-up that panicked is due again at once, behind a look at the others.
                Some(Err(error)) => tracing::error!(%error, "a look-up of a name ended"),
                None => return,
            }
        }
    }

    fn note(&mut self, name: &str, answer: Result<Answer, Arc<str>>) {
        if let Some(entry) = self.entries.get_mut(name) {
            tracing::debug!(name, ?answer, "a name was looked up");
            entry.note(answer, Instant::now());
        }
    }

    fn publish(&self) {
        let looked_up = self.entries.iter();
        let known: Known = looked_up
            .filter_map(|(name, entry)| Some((name.clone(), entry.resolution()?.clone())))
            .collect();
        self.known.send_if_modified(|present| {
            let differ = **present != known;
            *present = Arc::new(known);
            differ
        });
    }

    fn resolver(&mut self) -> Result<TokioResolver, Arc<str>> {
        if self.resolver.is_none() {
            self.resolver = Some(resolver(&self.servers)?);
        }
        self.resolver.clone().ok_or_else(|| "no resolver".into())
    }
}

/// Looks one name up, once. `servers` are asked, or the system's if there are none.
///
/// # Errors
/// Why there is no address.
pub async fn look_up(servers: &[SocketAddr], name: &str) -> Result<Vec<IpAddr>, Arc<str>> {
    let resolver = resolver(servers)?;
    Ok(ask(&resolver, name).await?.addresses)
}

fn resolver(servers: &[SocketAddr]) -> Result<TokioResolver, Arc<str>> {
    let mut builder = if servers.is_empty() {
        TokioResolver::builder_tokio()
            .map_err(|error| format!("the system's resolver is not to be had: {error}"))?
    } else {
        let servers = servers.iter().map(|server| name_server(*server)).collect();
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
    };
    // Not every node has a way to addresses of IPv6.
    builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4thenIpv6;
    let resolver = builder.build();
    resolver.map_err(|error| format!("the resolver cannot be made: {error}").into())
}

fn name_server(server: SocketAddr) -> NameServerConfig {
    let on_port = |mut connection: ConnectionConfig| {
        connection.port = server.port();
        connection
    };
    let mut config = NameServerConfig::udp_and_tcp(server.ip());
    config.connections = vec![
        on_port(ConnectionConfig::udp()),
        on_port(ConnectionConfig::tcp()),
    ];
    config
}

/// Asks for a name as it is: search lists are for names that people type.
async fn ask(resolver: &TokioResolver, name: &str) -> Result<Answer, Arc<str>> {
    let answer = resolver.lookup_ip(format!("{name}.")).await;
    let answer = answer.map_err(|error| Arc::<str>::from(error.to_string()))?;
    let left = answer
        .valid_until()
        .saturating_duration_since(std::time::Instant::now());
    let mut addresses: Vec<_> = answer.iter().collect();
    addresses.sort_unstable();
    addresses.dedup();
    match addresses.is_empty() {
        true => Err("it has no address".into()),
        false => Ok(Answer {
            addresses,
            ttl: left,
        }),
    }
}
