//! Composition: the only place that knows every module.

mod certificates;
mod counters;
mod describe;
mod feed;
mod forwards;
mod guards;
mod hand_over;
mod hooks;
mod keys;
mod overrides;
mod pools;
mod privileges;
mod process;
mod publish;
mod ranges;
mod rehearsal;
mod steering;
mod succession;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

pub use rehearsal::Rehearsal;

use crate::admin::{self, AdminState, Readiness};
use crate::config::Settings;
use crate::k8s::{Names, Served};
use crate::names::NameResolver;
use crate::proxy::{Drain, L4Config, L4Ports, Limiter};
use crate::routing::WeightSource;
use crate::telemetry::{AccessLog, ControllerLabels, L4Stats, LIMIT_EVICTIONS, Registry};
use crate::webhook::{self, Webhook};
use certificates::CertPublisher;
use feed::Feed;
use guards::GuardPublisher;
use overrides::Overrides;
use pools::{Common, Pools};
use publish::Publisher;
use steering::Steering;
use succession::{IDLE_GRACE, Succession};

/// How often the weights are compared with those of the objects.
const OVERRIDES_EVERY: Duration = Duration::from_secs(1);

/// How often the node's own addresses and NICs are looked at.
const ADDRESSES_EVERY: Duration = Duration::from_secs(5);

/// How long the start waits for the first answers about names.
const FIRST_NAMES: Duration = Duration::from_secs(2);

/// How long the last lines of the access log may take to be written.
const LOG_DEADLINE: Duration = Duration::from_secs(2);

/// Serves until told to stop by SIGTERM or SIGINT, then finishes what is in hand.
///
/// # Errors
/// When it cannot start: an address is taken, a mode of steering is not to be had, a file cannot be
/// opened. Nothing that comes later ends it.
pub fn run(settings: Settings) -> anyhow::Result<()> {
    privileges::harden();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_name("control")
        // Those that read files and answer for others, not this one.
        .on_thread_start(privileges::drop_all)
        .build()
        .context("cannot start the control thread")?
        .block_on(serve(settings))
}

async fn serve(settings: Settings) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // With a cluster that is away the start takes as long as it is.
    let instance = tokio::select! {
        instance = Instance::start(settings) => instance?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    let ports = !instance.settings.class.l4.config_maps().is_empty();
    privileges::serve(instance.steering.has_pools(), ports);
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
    feed: Feed,
    names: NameResolver,
    steering: Steering,
    pools: Pools,
    ports: L4Ports,
    stats: L4Stats,
    admin: SocketAddr,
    readiness: Readiness,
    log: AccessLog,
    succession: Succession,
    /// Has probes be answered as long as it lives.
    _probes: watch::Sender<bool>,
}

impl Instance {
    /// Starts everything; returns once requests are served by the state of the manifests or of
    /// the cluster, however long the latter is away.
    ///
    /// # Errors
    /// As [`run`].
    pub async fn start(mut settings: Settings) -> anyhow::Result<Self> {
        settings.class.l4.taken = settings.taken();
        let registry = registry(&settings);
        let log = privileges::without(|| {
            AccessLog::start(&settings.access_log, settings.log_format, &registry)
        })?;
        let mut taken = succession::take_over(&settings.hand_over).await?;
        let admin = succession::admin_listener(settings.admin, taken.as_mut())?;
        let admin_addr = admin.local_addr()?;
        let beside = taken.as_ref().and_then(|taken| taken.pin_dir());
        let mut steering = Steering::start(&settings, &registry, beside)?;
        let splits = steering.splits().clone();
        let weights: Arc<dyn WeightSource> = Arc::new(splits.clone());
        let controller = settings.class.controllers.first();
        let (cert_publisher, certificates) = CertPublisher::new(
            settings.default_certificate.as_ref(),
            settings.ticket_secret.as_ref(),
            controller.map_or("", String::as_str),
            &registry,
        )?;
        let (guard_publisher, guards) = GuardPublisher::new(settings.names.clone(), &registry);
        let (mut publisher, live) = Publisher::new(
            splits,
            registry.config(),
            Overrides::new(&registry),
            cert_publisher,
            guard_publisher,
        );

        let mut feed = Feed::start(&settings.source, &settings.identity).await?;
        let readiness = Readiness::new();
        let (leave, left) = watch::channel(false);
        if let Some(cluster) = feed.cluster() {
            counters::collect_cluster(&registry, cluster);
            if let Some(asked) = &settings.webhook {
                let webhook = Webhook::open(asked)?;
                let reviewer = cluster.reviewer(&settings.class, settings.names.allow_local);
                let noted = readiness.clone();
                tracing::info!(addr = %webhook.addr()?, "answering questions about Ingresses");
                tokio::spawn(webhook::serve(
                    webhook,
                    reviewer,
                    registry.clone(),
                    move |text| noted.note("webhook", text),
                    left.clone(),
                ));
            }
        }
        let stats = L4Stats::default();
        forwards::count(&stats, &steering);
        let counted = stats.clone();
        registry.collect(move |text| counted.write(text));
        steering.note(&readiness);
        let (read, listening) = (readiness.guard(feed.name()), readiness.guard("listeners"));
        let state = AdminState {
            registry: registry.clone(),
            readiness: readiness.clone(),
            live: live.clone(),
            problems: publisher.problems(),
            weights: weights.clone(),
            steering: steering.description(),
            l4: stats.clone(),
        };
        let probes = succession::answer_probes(settings.probe_socket.as_ref(), state.clone())?;
        // Its copy stays until it is handed over, or this instance stops.
        let copy = settings.hand_over.path.as_ref().map(|_| admin.try_clone());
        let copy = copy.transpose()?.map(OwnedFd::from);
        let admin = admin::Listener::Tcp(TcpListener::from_std(admin)?);
        let mut answering = Some(admin::serve(admin, state, left));
        // The address is the other instance's until that has left it.
        if taken.is_none()
            && let Some(answering) = answering.take()
        {
            tokio::spawn(answering);
        }
        steering.announce(admin_addr);

        feed.synced().await;
        settings.add(&feed.process());
        let mut names = NameResolver::start(&settings.names.servers);
        let mut served = reload(
            &mut feed,
            &settings,
            &mut publisher,
            &mut steering,
            &mut names,
        )
        .await?;
        if names.is_wanted()
            && tokio::time::timeout(FIRST_NAMES, names.changed())
                .await
                .is_ok()
        {
            served = reload(
                &mut feed,
                &settings,
                &mut publisher,
                &mut steering,
                &mut names,
            )
            .await?;
        }
        drop(read);

        warn_of_trust(&settings);
        let mut ports = L4Ports::new(match steering.has_pools() {
            true => settings.dataplane.pools[0].workers,
            false => settings.workers,
        });
        let common = Common {
            l4: L4Config {
                open: ports.subscribe(),
                stats: stats.clone(),
                limits: settings.l4,
            },
            settings: &settings,
            live: &live,
            certificates: &certificates,
            guards: &guards,
            weights: &weights,
            classes: steering.classes(),
            limiter: Limiter::new(registry.counter(&LIMIT_EVICTIONS, &[])),
            registry: &registry,
            log: &log,
        };
        let mut pools = Pools::start(&common, &mut steering, taken.as_mut())?;
        let shared = taken.is_some();
        publisher.opened(ports.follow(&live.borrow().snapshot.l4, shared));
        steering.forward(&publisher.live(), ports.open_now());
        if let Some(taken) = taken {
            succession::settle(taken, &mut steering, &readiness).await;
        }
        if let Some(answering) = answering {
            tokio::spawn(answering);
        }
        let listeners = pools.take_copies();
        let (hand_over, copy) = (&settings.hand_over, (settings.admin, copy));
        let succession = Succession::start(hand_over, copy, listeners, leave, &registry)?;
        drop(listening);
        feed.serves(served);
        tracing::info!(addresses = ?pools.addrs(), admin = %admin_addr, "serving");
        Ok(Instance {
            settings,
            publisher,
            feed,
            names,
            steering,
            pools,
            ports,
            stats,
            admin: admin_addr,
            readiness,
            log,
            succession,
            _probes: probes,
        })
    }

    /// Where requests are taken, with the ports that were chosen.
    pub fn http(&self) -> &[SocketAddr] {
        let http = self.settings.http.len();
        self.pools.addrs().get(..http).unwrap_or_default()
    }

    /// Where they are taken over TLS.
    pub fn https(&self) -> &[SocketAddr] {
        let http = self.settings.http.len();
        self.pools.addrs().get(http..).unwrap_or_default()
    }

    /// Where health, metrics and dumps are.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Follows the objects until `stop` is ready, then finishes what is in hand.
    ///
    /// # Errors
    /// Only when a thread of a pool has panicked.
    pub async fn serve(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let mut reopen = signal(SignalKind::user_defined1())?;
        let mut stop = std::pin::pin!(stop);
        let mut look = every(OVERRIDES_EVERY);
        let mut refresh = every(ADDRESSES_EVERY);
        // Asked to stop while a successor is starting, it goes on until that serves.
        let (mut stopping, mut given) = (false, false);
        let mut hold = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
        loop {
            tokio::select! {
                () = self.feed.changed() => self.reload().await,
                () = self.names.changed() => self.reload().await,
                _ = reopen.recv() => self.log.reopen(),
                _ = look.tick() => {
                    self.publisher.look_at_overrides();
                    self.publisher.look_at_secrets();
                    self.follow_ports();
                }
                _ = refresh.tick() => self.steering.refresh(&self.readiness),
                event = self.succession.next() => {
                    given = self.succession.meet(event, &mut self.steering);
                    if given || (stopping && !self.succession.is_expected()) {
                        break;
                    }
                }
                () = &mut stop, if !stopping => {
                    stopping = true;
                    let more = self.before_the_end();
                    if more.is_zero() {
                        break;
                    }
                    hold.as_mut().reset(tokio::time::Instant::now() + more);
                }
                () = &mut hold, if stopping => break,
            }
        }
        self.readiness.drain();
        // First, so that nobody is led to a listener that is about to close.
        self.steering.withdraw(self.pools.addrs());
        self.succession.close();
        self.ports.close();
        let deadline = self.settings.drain_timeout;
        let grace = match given {
            true => IDLE_GRACE.min(deadline / 2),
            false => Duration::ZERO,
        };
        let drained = self.pools.drain(Drain { deadline, grace });
        // Requests in hand do not wait for an API server that is away, nor the next leader for them.
        let (drained, ()) = tokio::join!(drained, self.feed.stop());
        drained?;
        self.log.close(LOG_DEADLINE);
        // What the kernel has of this instance goes now, whatever it waits for.
        drop(self.steering);
        if given && !stopping && self.succession.stays() {
            stop.await;
        }
        Ok(())
    }
}

impl Instance {
    /// How long to go on after the signal to stop: until balancers have noticed, or until the
    /// successor serves that is starting.
    fn before_the_end(&self) -> Duration {
        if self.succession.is_expected() {
            tracing::info!("going on until the successor serves");
            return self.settings.drain_timeout;
        }
        self.readiness.drain();
        self.settings.shutdown_delay
    }

    /// Takes up what has changed. A fault of ours in reading must not end what is being served.
    async fn reload(&mut self) {
        let (feed, steering, names) = (&mut self.feed, &mut self.steering, &mut self.names);
        let publisher = &mut self.publisher;
        match reload(feed, &self.settings, publisher, steering, names).await {
            Ok(served) => {
                self.feed.serves(served);
                self.follow_ports();
            }
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "the state stays as it was");
                self.publisher.failed();
            }
        }
    }
}

impl Instance {
    /// Opens the ports that are asked for, those again that could not be opened, and closes the others.
    fn follow_ports(&mut self) {
        let snapshot = self.publisher.snapshot();
        self.publisher
            .opened(self.ports.follow(&snapshot.l4, false));
        self.stats.keep(&snapshot.l4);
        self.steering
            .forward(&self.publisher.live(), self.ports.open_now());
    }
}

/// Whom ingress-nginx believes by default, too; but whoever reaches the listener can then say that he
/// is somebody else.
fn warn_of_trust(settings: &Settings) {
    let asked = settings.use_forwarded_headers || settings.use_proxy_protocol;
    if asked && settings.proxy_real_ip.is_all() {
        tracing::warn!(
            "every peer is believed whom it speaks for; name the balancers in front with \
             --proxy-real-ip-cidr"
        );
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

/// Reads the objects and publishes what they say. Gives what is served from then on.
async fn reload(
    feed: &mut Feed,
    settings: &Settings,
    publisher: &mut Publisher,
    steering: &mut Steering,
    names: &mut NameResolver,
) -> anyhow::Result<Served> {
    let known = Names {
        known: (*names.known()).clone(),
        allow_local: settings.names.allow_local,
    };
    let named = settings
        .default_certificate
        .iter()
        .chain(&settings.ticket_secret);
    let reading = feed
        .read(
            &settings.source,
            &settings.class,
            known,
            named.cloned().collect(),
        )
        .await?;
    if let Some(nodes) = reading.nodes {
        steering.learn(nodes);
    }
    let translation = reading.translation;
    names.want(translation.names);
    publisher.publish(
        translation.snapshot,
        translation.secrets,
        translation.problems,
        reading.problems,
    );
    let unsplit = steering.split_connects(&publisher.live().l4);
    publisher.unsplit(unsplit);
    Ok(Served {
        ingresses: translation.ingresses,
        problems: publisher.problems().borrow().clone(),
    })
}
