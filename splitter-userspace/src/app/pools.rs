//! The pools of workers: one for each class where there is steering, else one for all.

use anyhow::Context as _;
use splitter_common::Pool;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::hand_over::{Listener, Place, Taken};
use super::privileges;
use super::steering::Steering;
use crate::auth::Guards;
use crate::config::{PoolSettings, RealIp, Settings};
use crate::proxy::{Classes, Drain, L4Config, Limiter, Proxy, ProxyConfig, Sockets, StartError};
use crate::routing::{Live, WeightSource};
use crate::telemetry::{AccessLog, Registry};
use crate::tls::Certificates;

/// What every pool is made with.
pub struct Common<'a> {
    /// The process's settings.
    pub settings: &'a Settings,
    /// The state to serve by.
    pub live: &'a watch::Receiver<Arc<Live>>,
    /// What handshakes are made with.
    pub certificates: &'a watch::Receiver<Arc<Certificates>>,
    /// Who may call, by what clients know or were given.
    pub guards: &'a watch::Receiver<Arc<Guards>>,
    /// Where the weights are.
    pub weights: &'a Arc<dyn WeightSource>,
    /// Where clients are.
    pub classes: Arc<dyn Classes>,
    /// Where everything is counted.
    pub registry: &'a Registry,
    /// How much clients have asked for.
    pub limiter: Arc<Limiter>,
    /// Where requests are logged.
    pub log: &'a AccessLog,
    /// The ports that lead to Services without a look at HTTP.
    pub l4: L4Config,
}

/// The running pools.
pub struct Pools {
    proxies: Vec<Proxy>,
    addrs: Vec<SocketAddr>,
    /// Copies of the listening sockets, where they are to be handed over one day.
    copies: Vec<(Listener, Vec<OwnedFd>)>,
}

/// Sockets that share an address, with what was asked for.
struct Asked {
    addr: SocketAddr,
    sockets: Sockets,
}

impl Pools {
    /// Listens and serves.
    ///
    /// The north-south pool has the ordinary listeners on the `--http` addresses. They are also what
    /// answers when no kernel program does: detached, or not yet attached, it is the least trusted
    /// pool that takes everything. And a foreign listener on an address is an error at the start,
    /// where the programs would pass it by.
    ///
    /// Where a running instance has given its sockets, those are gone on with.
    ///
    /// # Errors
    /// When an address is taken, or the kernel programs do not take the sockets.
    pub fn start(
        common: &Common<'_>,
        steering: &mut Steering,
        mut taken: Option<&mut Taken>,
    ) -> anyhow::Result<Self> {
        let settings = common.settings;
        let keeps = settings.hand_over.path.is_some();
        if !steering.has_pools() {
            let mut sockets = open(settings, settings.workers, taken.as_deref_mut())?;
            // What was steered to them is not any more, but some may wait in them.
            for asked in &mut sockets {
                let given = asked.given(Place::Behind, taken.as_deref_mut());
                asked.sockets.join(given);
            }
            let copies = copies(&sockets, Place::Ordinary, keeps)?;
            let sockets: Vec<_> = sockets.into_iter().map(|it| it.sockets).collect();
            let addrs = sockets.iter().map(Sockets::addr).collect();
            let all = PoolSettings {
                workers: settings.workers,
                timeouts: settings.timeouts,
                limits: settings.limits,
            };
            let proxies = vec![common.proxy("all", &all, &[], sockets)?];
            return Ok(Pools {
                proxies,
                addrs,
                copies,
            });
        }
        let [outer, inner] = &settings.dataplane.pools;
        let cpus = &settings.dataplane.policy.cpus.of;
        let north_south = open(settings, outer.workers, taken.as_deref_mut())?;
        let east_west = behind(&north_south, inner.workers, taken)?;
        let mut copied = copies(&north_south, Place::Ordinary, keeps)?;
        copied.append(&mut copies(&east_west, Place::Behind, keeps)?);
        let [north_south, east_west] = [north_south, east_west].map(|all| {
            let sockets = all.into_iter().map(|it| it.sockets);
            sockets.collect::<Vec<_>>()
        });
        let ends = ends(&north_south, &east_west).context("cannot steer to the listeners")?;
        let proxies = vec![
            common.proxy(Pool::NorthSouth.name(), outer, &cpus[0], north_south)?,
            common.proxy(Pool::EastWest.name(), inner, &cpus[1], east_west)?,
        ];
        for (addr, north_south, east_west) in &ends {
            let sockets = [
                (Pool::NorthSouth, north_south.as_fd()),
                (Pool::EastWest, east_west.as_fd()),
            ];
            steering.publish(*addr, &sockets)?;
        }
        let addrs = ends.iter().map(|(addr, ..)| *addr).collect();
        Ok(Pools {
            proxies,
            addrs,
            copies: copied,
        })
    }

    /// The copies of the listening sockets, which must be gone when the pools stop.
    pub fn take_copies(&mut self) -> Vec<(Listener, Vec<OwnedFd>)> {
        std::mem::take(&mut self.copies)
    }

    /// What clients connect to, with the ports that were chosen.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// Stops accepting, lets what is in hand finish, and waits for the end.
    ///
    /// # Errors
    /// When a pool's end panicked.
    pub async fn drain(self, drain: Drain) -> anyhow::Result<()> {
        let mut ends = JoinSet::new();
        for proxy in self.proxies {
            ends.spawn_blocking(move || proxy.drain(drain));
        }
        while let Some(end) = ends.join_next().await {
            end?;
        }
        Ok(())
    }
}

impl Common<'_> {
    fn proxy(
        &self,
        name: &'static str,
        pool: &PoolSettings,
        cpus: &[u32],
        sockets: Vec<Sockets>,
    ) -> anyhow::Result<Proxy> {
        let config = ProxyConfig {
            name,
            classes: self.classes.clone(),
            certificates: self.certificates.clone(),
            guards: self.guards.clone(),
            hsts: self.settings.hsts.clone(),
            workers: pool.workers,
            cpus: cpus.to_vec(),
            timeouts: pool.timeouts,
            limits: pool.limits,
            limiter: self.limiter.clone(),
            https: !self.settings.https.is_empty(),
            // Whoever comes by a port of the node comes from outside, as far as anybody knows.
            l4: (name != Pool::EastWest.name()).then(|| self.l4.clone()),
            real_ip: RealIp {
                forwarded: self.settings.use_forwarded_headers,
                proxy_protocol: self.settings.use_proxy_protocol,
                trusted: self.settings.proxy_real_ip.clone(),
            },
        };
        let (live, weights) = (self.live, self.weights);
        let (registry, log) = (self.registry, self.log);
        let start = || Proxy::start(&config, sockets, live, weights, registry, log);
        let proxy = privileges::without(start)?;
        Ok(proxy)
    }
}

impl Asked {
    /// What a running instance has of this address.
    fn given(&self, place: Place, taken: Option<&mut Taken>) -> Vec<TcpListener> {
        let tls = self.sockets.is_secure();
        taken.map_or(Vec::new(), |taken| taken.listeners(self.addr, tls, place))
    }
}

/// The ordinary listeners, those with TLS last.
fn open(
    settings: &Settings,
    workers: usize,
    mut taken: Option<&mut Taken>,
) -> Result<Vec<Asked>, StartError> {
    let http = settings.http.iter().map(|addr| (*addr, false));
    let https = settings.https.iter().map(|addr| (*addr, true));
    let all = http.chain(https).map(|(addr, tls)| {
        let taken = taken.as_deref_mut();
        let given = taken.map(|taken| taken.listeners(addr, tls, Place::Ordinary));
        let given = given.unwrap_or_default();
        let bound = given.first().and_then(|it| it.local_addr().ok());
        let sockets = match bound {
            Some(bound) => Sockets::adopt(bound, given, workers)?,
            None => Sockets::open(addr, workers)?,
        };
        let sockets = secure(sockets, tls);
        Ok(Asked { addr, sockets })
    });
    all.collect()
}

/// For each of these the sockets that connections from inside are steered to.
fn behind(
    ordinary: &[Asked],
    workers: usize,
    mut taken: Option<&mut Taken>,
) -> Result<Vec<Asked>, StartError> {
    let all = ordinary.iter().map(|outer| {
        let addr = outer.sockets.addr();
        let given = outer.given(Place::Behind, taken.as_deref_mut());
        let sockets = match given.is_empty() {
            false => Sockets::adopt(addr, given, workers)?,
            true => Sockets::behind(addr, workers)?,
        };
        Ok(Asked {
            addr: outer.addr,
            sockets: secure(sockets, outer.sockets.is_secure()),
        })
    });
    all.collect()
}

fn secure(sockets: Sockets, tls: bool) -> Sockets {
    match tls {
        true => sockets.secure(),
        false => sockets,
    }
}

/// Copies of the sockets, if they are wanted.
fn copies(
    all: &[Asked],
    place: Place,
    wanted: bool,
) -> anyhow::Result<Vec<(Listener, Vec<OwnedFd>)>> {
    let wanted = all.iter().filter(|_| wanted);
    let copies = wanted.map(|asked| {
        let copies = asked.sockets.copies();
        let copies = copies.context("no descriptor is left for handing over; raise the limit")?;
        let tls = asked.sockets.is_secure();
        Ok((Listener::new(asked.addr, tls, place, copies.len()), copies))
    });
    copies.collect()
}

/// For each address, a socket of each pool that stands for its group in the socket map. Held only
/// until they are in the map: a socket that nobody accepts from must not outlive its pool.
fn ends(
    north_south: &[Sockets],
    east_west: &[Sockets],
) -> std::io::Result<Vec<(SocketAddr, OwnedFd, OwnedFd)>> {
    let pairs = north_south.iter().zip(east_west);
    pairs
        .map(|(outer, inner)| Ok((outer.addr(), outer.one()?, inner.one()?)))
        .collect()
}
