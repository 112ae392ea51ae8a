//! Composition: the only place that knows every module.

mod counters;
mod describe;
mod overrides;
mod pools;
mod publish;
mod steering;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::admin::{self, AdminState, Readiness};
use crate::config::Settings;
use crate::k8s::{ManifestWatcher, Manifests, Objects, translate};
use crate::model::Problem;
use crate::routing::WeightSource;
use crate::telemetry::{AccessLog, ControllerLabels, Registry};
use overrides::Overrides;
use pools::{Common, Pools};
use publish::Publisher;
use steering::Steering;

/// How often the weights are compared with those of the objects.
const OVERRIDES_EVERY: Duration = Duration::from_secs(1);

/// How often the node's own addresses and NICs are looked at.
const ADDRESSES_EVERY: Duration = Duration::from_secs(5);

/// How long the last lines of the access log may take to be written.
const LOG_DEADLINE: Duration = Duration::from_secs(2);

/// Serves until told to stop by SIGTERM or SIGINT, then finishes what is in hand.
///
/// # Errors
/// When it cannot start: an address is taken, a mode of steering is not to be had, a file cannot be
/// opened. Nothing that comes later ends it.
pub fn run(settings: Settings) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_name("control")
        .build()
        .context("cannot start the control thread")?
        .block_on(serve(settings))
}

async fn serve(settings: Settings) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let instance = Instance::start(settings).await?;
    instance
        .serve(async {
            tokio::select! {
                _ = terminate.recv() => tracing::info!("stopping on SIGTERM"),
                _ = interrupt.recv() => tracing::info!("stopping on SIGINT"),
            }
        })
        .await
}

/// Everything that runs, started.
pub struct Instance {
    settings: Settings,
    publisher: Publisher,
    watcher: ManifestWatcher,
    manifests: Manifests,
    steering: Steering,
    pools: Pools,
    admin: SocketAddr,
    readiness: Readiness,
    log: AccessLog,
}

impl Instance {
    /// Starts everything; returns once requests are served by the manifests' state.
    ///
    /// # Errors
    /// As [`run`].
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let registry = registry(&settings);
        let log = AccessLog::start(&settings.access_log, settings.log_format, &registry)?;
        let admin = TcpListener::bind(settings.admin).await.with_context(|| {
            format!(
                "cannot listen on --admin {}; free it or choose another",
                settings.admin
            )
        })?;
        let admin_addr = admin.local_addr()?;
        let mut steering = Steering::start(&settings, &registry)?;
        let splits = steering.splits().clone();
        let weights: Arc<dyn WeightSource> = Arc::new(splits.clone());
        let (mut publisher, live) =
            Publisher::new(splits, registry.config(), Overrides::new(&registry));

        let readiness = Readiness::new();
        steering.note(&readiness);
        let (read, listening) = (readiness.guard("manifests"), readiness.guard("listeners"));
        tokio::spawn(admin::serve(
            admin,
            AdminState {
                registry: registry.clone(),
                readiness: readiness.clone(),
                live: live.clone(),
                problems: publisher.problems(),
                weights: weights.clone(),
                steering: steering.description(),
            },
        ));
        steering.announce(admin_addr);

        // Watched before it is read, so that no change falls between the two.
        let watcher = ManifestWatcher::start(&settings.manifests)
            .with_context(|| format!("cannot watch {}", settings.manifests.display()))?;
        let manifests = Manifests::new(&settings.manifests);
        let manifests = reload(manifests, &settings, &mut publisher).await?;
        drop(read);

        let common = Common {
            settings: &settings,
            live: &live,
            weights: &weights,
            classes: steering.classes(),
            registry: &registry,
            log: &log,
        };
        let pools = Pools::start(&common, &mut steering)?;
        drop(listening);
        tracing::info!(addresses = ?pools.addrs(), admin = %admin_addr, "serving");
        Ok(Instance {
            settings,
            publisher,
            watcher,
            manifests,
            steering,
            pools,
            admin: admin_addr,
            readiness,
            log,
        })
    }

    /// Where requests are taken, with the ports that were chosen.
    pub fn http(&self) -> &[SocketAddr] {
        self.pools.addrs()
    }

    /// Where health, metrics and dumps are.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Follows the manifests until `stop` is ready, then finishes what is in hand.
    ///
    /// # Errors
    /// Only when a thread of a pool has panicked.
    pub async fn serve(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let mut reopen = signal(SignalKind::user_defined1())?;
        let mut stop = std::pin::pin!(stop);
        let mut look = every(OVERRIDES_EVERY);
        let mut refresh = every(ADDRESSES_EVERY);
        loop {
            tokio::select! {
                () = self.watcher.changed() => {
                    let publisher = &mut self.publisher;
                    let reloaded = reload(self.manifests, &self.settings, publisher).await;
                    self.manifests = reloaded.unwrap_or_else(|error| {
                        // A fault of ours in reading must not end what is being served.
                        tracing::error!(error = format!("{error:#}"), "the state stays as it was");
                        publisher.failed();
                        Manifests::new(&self.settings.manifests)
                    });
                }
                _ = reopen.recv() => self.log.reopen(),
                _ = look.tick() => self.publisher.look_at_overrides(),
                _ = refresh.tick() => self.steering.refresh(&self.readiness),
                () = &mut stop => break,
            }
        }
        self.readiness.drain();
        // First, so that nobody is led to a listener that is about to close.
        self.steering.withdraw(self.pools.addrs());
        self.pools.drain(self.settings.drain_timeout).await?;
        self.log.close(LOG_DEADLINE);
        Ok(())
    }
}

fn registry(settings: &Settings) -> Registry {
    let controller = settings.class.controllers.first();
    Registry::new(&ControllerLabels {
        namespace: settings.identity.pod_namespace.clone(),
        class: controller.cloned().unwrap_or_default(),
        pod: settings.identity.pod_name.clone(),
    })
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval
}

/// Reads the manifests off the control thread and publishes what they say.
async fn reload(
    mut manifests: Manifests,
    settings: &Settings,
    publisher: &mut Publisher,
) -> anyhow::Result<Manifests> {
    let class = settings.class.clone();
    let (manifests, translation, problems) = tokio::task::spawn_blocking(move || {
        let (objects, problems): (Objects, Vec<Problem>) = manifests.reload();
        let translation = translate(&objects, &class);
        (manifests, translation, problems)
    })
    .await
    .context("reading the manifests failed")?;
    publisher.publish(
        translation.snapshot,
        [problems, translation.problems].concat(),
    );
    Ok(manifests)
}
