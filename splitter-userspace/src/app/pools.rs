//! The pools of workers: one for each class where there is steering, else one for all.

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use splitter_common::Pool;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::steering::Steering;
use crate::auth::Guards;
use crate::config::{PoolSettings, RealIp, Settings};
use crate::proxy::{Classes, Limiter, Proxy, ProxyConfig, Sockets, StartError};
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
}

/// The running pools.
pub struct Pools {
    proxies: Vec<Proxy>,
    addrs: Vec<SocketAddr>,
}

impl Pools {
    /// Listens and serves.
    ///
    /// The north-south pool has the ordinary listeners on the `--http` addresses. They are also what
    /// answers when no kernel program does: detached, or not yet attached, it is the least trusted
    /// pool that takes everything. And a foreign listener on an address is an error at the start,
    /// where the programs would pass it by.
    ///
    /// # Errors
    /// When an address is taken, or the kernel programs do not take the sockets.
    pub fn start(common: &Common<'_>, steering: &mut Steering) -> anyhow::Result<Self> {
        let settings = common.settings;
        if !steering.has_pools() {
            let sockets = open(settings, settings.workers)?;
            let addrs = sockets.iter().map(Sockets::addr).collect();
            let all = PoolSettings {
                workers: settings.workers,
                timeouts: settings.timeouts,
                limits: settings.limits,
            };
            let proxies = vec![common.proxy("all", &all, &[], sockets)?];
            return Ok(Pools { proxies, addrs });
        }
        let [outer, inner] = &settings.dataplane.pools;
        let cpus = &settings.dataplane.policy.cpus.of;
        let north_south = open(settings, outer.workers)?;
        let behind = north_south.iter().map(|outer| {
            let sockets = Sockets::behind(outer.addr(), inner.workers)?;
            Ok(match outer.is_secure() {
                true => sockets.secure(),
                false => sockets,
            })
        });
        let east_west = behind.collect::<Result<Vec<_>, StartError>>()?;
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
        Ok(Pools { proxies, addrs })
    }

    /// What clients connect to, with the ports that were chosen.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// Stops accepting, lets what is in hand finish within `deadline`, and waits for the end.
    ///
    /// # Errors
    /// When a pool's end panicked.
    pub async fn drain(self, deadline: Duration) -> anyhow::Result<()> {
        let mut ends = JoinSet::new();
        for proxy in self.proxies {
            ends.spawn_blocking(move || proxy.drain(deadline));
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
            real_ip: RealIp {
                forwarded: self.settings.use_forwarded_headers,
                proxy_protocol: self.settings.use_proxy_protocol,
                trusted: self.settings.proxy_real_ip.clone(),
            },
        };
        let proxy = Proxy::start(
            &config,
            sockets,
            self.live,
            self.weights,
            self.registry,
            self.log,
        )?;
        Ok(proxy)
    }
}

/// The ordinary listeners, those with TLS last.
fn open(settings: &Settings, workers: usize) -> anyhow::Result<Vec<Sockets>> {
    let http = settings.http.iter();
    let http = http.map(|addr| Sockets::open(*addr, workers));
    let https = settings.https.iter();
    let https = https.map(|addr| Ok(Sockets::open(*addr, workers)?.secure()));
    Ok(http.chain(https).collect::<Result<_, StartError>>()?)
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
