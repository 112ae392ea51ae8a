//! Composition: the only place that knows every module.

mod publish;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::admin::{self, AdminState, Readiness};
use crate::config::{Settings, Steering};
use crate::dataplane::SlotTable;
use crate::k8s::{ManifestWatcher, Manifests, Objects, translate};
use crate::model::Problem;
use crate::proxy::{Proxy, ProxyConfig};
use crate::routing::WeightSource;
use crate::telemetry::{AccessLog, ControllerLabels, Registry};
use publish::Publisher;

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
    proxy: Proxy,
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
        let registry = Registry::new(&ControllerLabels {
            namespace: settings.identity.pod_namespace.clone(),
            class: settings
                .class
                .controllers
                .first()
                .cloned()
                .unwrap_or_default(),
            pod: settings.identity.pod_name.clone(),
        });
        let log = AccessLog::start(&settings.access_log, settings.log_format, &registry)?;
        if matches!(settings.steering, Steering::SkLookup | Steering::Xdp) {
            anyhow::bail!(
                "--steering {:?} is not available in this build",
                settings.steering
            );
        }
        let table = SlotTable::in_memory().context("cannot map memory for the weights")?;
        let table = Arc::new(table);
        let weights: Arc<dyn WeightSource> = table.clone();
        let (mut publisher, live) = Publisher::new(table, registry.config());

        let readiness = Readiness::new();
        let (read, listening) = (readiness.guard("manifests"), readiness.guard("listeners"));
        let admin = TcpListener::bind(settings.admin).await.with_context(|| {
            format!(
                "cannot listen on --admin {}; free it or choose another",
                settings.admin
            )
        })?;
        let admin_addr = admin.local_addr()?;
        tokio::spawn(admin::serve(
            admin,
            AdminState {
                registry: registry.clone(),
                readiness: readiness.clone(),
                live: live.clone(),
                problems: publisher.problems(),
                weights: weights.clone(),
            },
        ));

        // Watched before it is read, so that no change falls between the two.
        let watcher = ManifestWatcher::start(&settings.manifests)
            .with_context(|| format!("cannot watch {}", settings.manifests.display()))?;
        let manifests = Manifests::new(&settings.manifests);
        let manifests = reload(manifests, &settings, &mut publisher).await?;
        drop(read);

        let config = ProxyConfig {
            name: "all",
            listen: settings.http.clone(),
            workers: settings.workers,
            timeouts: settings.timeouts,
            limits: settings.limits,
            trust_forwarded: settings.use_forwarded_headers,
        };
        let proxy = Proxy::start(&config, &live, &weights, &registry, &log)?;
        drop(listening);
        tracing::info!(addresses = ?proxy.addrs(), admin = %admin_addr, "serving");
        Ok(Instance {
            settings,
            publisher,
            watcher,
            manifests,
            proxy,
            admin: admin_addr,
            readiness,
            log,
        })
    }

    /// Where requests are taken, with the ports that were chosen.
    pub fn http(&self) -> &[SocketAddr] {
        self.proxy.addrs()
    }

    /// Where health, metrics and dumps are.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Follows the manifests until `stop` is ready, then finishes what is in hand.
    ///
    /// # Errors
    /// Only when a thread of the process has panicked.
    pub async fn serve(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let mut reopen = signal(SignalKind::user_defined1())?;
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = self.watcher.changed() => {
                    let publisher = &mut self.publisher;
                    self.manifests = reload(self.manifests, &self.settings, publisher).await?;
                }
                _ = reopen.recv() => self.log.reopen(),
                () = &mut stop => break,
            }
        }
        self.readiness.drain();
        let (proxy, deadline) = (self.proxy, self.settings.drain_timeout);
        tokio::task::spawn_blocking(move || proxy.drain(deadline)).await?;
        self.log.close(LOG_DEADLINE);
        Ok(())
    }
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
