//! Starting and stopping a pool of workers.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::sync::watch;

use super::clock::TICK;
use super::fault::Fault;
use super::handshake::Handshakes;
use super::hasher::Hasher;
use super::l4::{L4Config, L4Worker};
use super::limiter::Limiter;
use super::listen::{Acceptor, Local, Sockets};
use super::mirror::Mirrors;
use super::policy::Gatekeeper;
use super::socket::Pipes;
use super::worker::{Classes, Worker, WorkerParts};
use crate::auth::Guards;
use crate::config::{Limits, RealIp, Timeouts};
use crate::routing::{Live, WeightSource};
use crate::telemetry::{AccessLog, ENDPOINT_EJECTIONS, INTERIM_ANSWERS, PIPES, Registry};
use crate::tls::Certificates;

/// How long an accept loop rests when the process has no descriptor left.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// What a pool is made with.
#[derive(Clone)]
pub struct ProxyConfig {
    /// The pool's name, for metrics and logs.
    pub name: &'static str,
    /// Says where clients are.
    pub classes: Arc<dyn Classes>,
    /// What handshakes on TLS listeners are made with.
    pub certificates: watch::Receiver<Arc<Certificates>>,
    /// Who may call, by what clients know or were given.
    pub guards: watch::Receiver<Arc<Guards>>,
    /// The Strict-Transport-Security of answers over TLS.
    pub hsts: Option<String>,
    /// How many threads; each set of sockets has at least as many.
    pub workers: usize,
    /// The CPUs that the threads keep to; none: any.
    pub cpus: Vec<u32>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How much there may be of things.
    pub limits: Limits,
    /// Who is believed whom they speak for.
    pub real_ip: RealIp,
    /// How much clients have asked for; one for all pools.
    pub limiter: Arc<Limiter>,
    /// Whether this instance listens for https, on whatever address.
    pub https: bool,
    /// The ports that lead to Services without a look at HTTP, where this pool has them.
    pub l4: Option<L4Config>,
}

/// Why a pool could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error(
        "cannot listen on {addr}: {error}; free the address, choose another with --http or --https, or \
         run with the right to use ports below 1024"
    )]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The kernel's reason.
        error: io::Error,
    },
    /// A thread or its reactor could not be made.
    #[error("cannot start a worker: {0}; look at the limits on threads and open files")]
    Worker(io::Error),
}

/// What tells the workers to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    No,
    /// Finish what is in hand.
    Drain(Drain),
}

/// How a pool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    /// For what is in hand.
    pub deadline: Duration,
    /// For which idle connections are kept, in case a request is on its way on them: it is
    /// answered, and the answer says that the connection ends.
    pub grace: Duration,
}

/// A running pool.
pub struct Proxy {
    addrs: Vec<SocketAddr>,
    stop: watch::Sender<Stop>,
    threads: Vec<JoinHandle<()>>,
}

impl Proxy {
    /// Starts the workers.
    ///
    /// # Errors
    /// When a thread cannot be had; nothing is left running then.
    pub fn start(
        config: &ProxyConfig,
        sockets: Vec<Sockets>,
        live: &watch::Receiver<Arc<Live>>,
        weights: &Arc<dyn WeightSource>,
        registry: &Registry,
        log: &AccessLog,
    ) -> Result<Self, StartError> {
        let workers = config.workers.max(1);
        let mut addrs = Vec::with_capacity(sockets.len());
        let mut shares: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
        for sockets in sockets {
            let (local, listeners) = sockets.into_listeners();
            addrs.push(local.addr);
            // One for each worker; what a former instance had more of is shared out.
            for (index, listener) in listeners.into_iter().enumerate() {
                shares[index % workers].push((local, listener));
            }
        }
        let (stop, stopped) = watch::channel(Stop::No);
        let mut threads = Vec::with_capacity(workers);
        let hasher = Hasher::new(config.name, workers);
        for (index, listeners) in shares.into_iter().enumerate() {
            let thread = Thread {
                number: index,
                listeners,
                live: live.clone(),
                weights: weights.clone(),
                config: config.clone(),
                registry: registry.clone(),
                log: log.clone(),
                stop: stopped.clone(),
                hasher: hasher.clone(),
            };
            let handle = std::thread::Builder::new()
                .name(format!("{}-{index}", config.name))
                .spawn(move || thread.run())
                .map_err(StartError::Worker)?;
            threads.push(handle);
        }
        Ok(Proxy {
            addrs,
            stop,
            threads,
        })
    }

    /// What clients connect to, with the ports that were chosen.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// Stops accepting, lets what is in hand finish, and waits for the end.
    pub fn drain(self, drain: Drain) {
        self.stop.send_replace(Stop::Drain(drain));
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a worker panicked");
            }
        }
    }
}

/// What a worker's thread is given.
struct Thread {
    number: usize,
    /// With what clients connect to.
    listeners: Vec<(Local, TcpListener)>,
    live: watch::Receiver<Arc<Live>>,
    weights: Arc<dyn WeightSource>,
    config: ProxyConfig,
    registry: Registry,
    log: AccessLog,
    stop: watch::Receiver<Stop>,
    hasher: Arc<Hasher>,
}

impl Thread {
    fn run(self) {
        keep_to(&self.config.cpus);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(tokio::runtime::LocalOptions::default());
        match runtime {
            Ok(runtime) => {
                if let Err(e) = runtime.block_on(self.serve()) {
                    tracing::error!(error = %e, "a worker could not start");
                }
            }
            Err(e) => tracing::error!(error = %e, "a worker could not start"),
        }
    }

    async fn serve(mut self) -> io::Result<()> {
        let mut certificates = self.config.certificates;
        let mut guards = self.config.guards;
        let l4 = self.config.l4.map(|config| {
            let timeouts = &self.config.timeouts;
            let (live, weights) = (self.live.clone(), self.weights.clone());
            let real_ip = self.config.real_ip.clone();
            let timeouts = [timeouts.connect, timeouts.header];
            L4Worker::new(config, live, weights, real_ip, timeouts)
        });
        let worker = Worker::new(WorkerParts {
            guards: guards.borrow_and_update().clone(),
            gatekeeper: Gatekeeper::new(self.hasher).map_err(io::Error::other)?,
            certificates: certificates.borrow_and_update().clone(),
            hsts: self.config.hsts.and_then(|it| it.parse().ok()),
            handshakes: Handshakes::new(
                self.registry.clone(),
                self.config.name,
                self.config.limits.max_handshakes,
            ),
            live: self.live.borrow_and_update().clone(),
            weights: self.weights,
            classes: self.config.classes,
            timeouts: self.config.timeouts,
            limits: self.config.limits,
            real_ip: self.config.real_ip,
            limiter: self.config.limiter,
            https: self.config.https,
            name: self.config.name,
            metrics: self.registry.worker(self.config.name),
            log: self.log.worker(),
            ejections: self
                .registry
                .counter(&ENDPOINT_EJECTIONS, &[("pool", self.config.name)]),
            mirrors: Mirrors::new(&self.registry, self.config.name),
            pipes: Pipes::new(["taken", "failed", "busy"].map(|result| {
                let labels = [("pool", self.config.name), ("result", result)];
                self.registry.counter(&PIPES, &labels)
            })),
            interim: ["passed", "dropped"].map(|result| {
                let labels = [("pool", self.config.name), ("result", result)];
                self.registry.counter(&INTERIM_ANSWERS, &labels)
            }),
        });
        tokio::task::spawn_local(worker.flusher().clone().run());
        tokio::task::spawn_local(follow(worker.clone(), self.live, guards));
        tokio::task::spawn_local(follow_certificates(worker.clone(), certificates));
        tokio::task::spawn_local(tick(worker.clone()));
        let mut accepting = Vec::new();
        if let Some(l4) = &l4 {
            let mut stop = self.stop.clone();
            let stop = async move {
                stopped(&mut stop).await;
            };
            let run = l4.clone().run(self.number, stop);
            accepting.push(tokio::task::spawn_local(run));
        }
        for (local, listener) in self.listeners {
            let acceptor = Acceptor::new(listener)?;
            let accept = accept(worker.clone(), acceptor, local, self.stop.clone());
            accepting.push(tokio::task::spawn_local(accept));
        }
        let drain = stopped(&mut self.stop).await;
        for task in accepting {
            // Ends when the listener is closed: new connections go to whoever shares the address.
            let _ = task.await;
        }
        worker.drain();
        let idle = async {
            if !drain.grace.is_zero() {
                let done = none_open(&worker, None);
                let _ = tokio::time::timeout(drain.grace, done).await;
            }
            worker.end_idle();
            none_open(&worker, l4.as_deref()).await;
        };
        if tokio::time::timeout(drain.deadline, idle).await.is_err() {
            tracing::warn!(
                pool = worker.name(),
                open = worker.connections().open_now(),
                l4 = l4.as_ref().map_or(0, |it| it.open_now()),
                "connections were cut at the end of the drain time"
            );
        }
        Ok(())
    }
}

async fn none_open(worker: &Worker, l4: Option<&L4Worker>) {
    // A connection that is over may have left its last bytes to the flusher.
    while worker.connections().open_now() > 0
        || !worker.flusher().is_empty()
        || l4.is_some_and(|it| it.open_now() > 0)
    {
        tokio::time::sleep(TICK / 10).await;
    }
}
/// Keeps the calling thread to these CPUs, so that no other pool's threads or packets run there. The
/// kernel moves it among them.
fn keep_to(cpus: &[u32]) {
    if cpus.is_empty() {
        return;
    }
    let mut set = CpuSet::new();
    let known = cpus.iter().map(|cpu| *cpu as usize);
    known
        .filter(|cpu| *cpu < CpuSet::MAX_CPU)
        .for_each(|cpu| set.set(cpu));
    // A container may have been given other CPUs than those that were named.
    if let Err(error) = sched_setaffinity(None, &set) {
        tracing::warn!(%error, ?cpus, "a worker is not kept to the CPUs of its pool");
    }
}

/// Waits for the order to stop. A dropped [`Proxy`] stops at once.
async fn stopped(stop: &mut watch::Receiver<Stop>) -> Drain {
    match stop.wait_for(|stop| *stop != Stop::No).await.as_deref() {
        Ok(Stop::Drain(drain)) => *drain,
        Ok(Stop::No) | Err(_) => Drain {
            deadline: Duration::ZERO,
            grace: Duration::ZERO,
        },
    }
}

/// Who may call is published before the state that refers to it, and is taken over before it.
async fn follow(
    worker: Rc<Worker>,
    mut live: watch::Receiver<Arc<Live>>,
    mut guards: watch::Receiver<Arc<Guards>>,
) {
    loop {
        let next = tokio::select! {
            changed = live.changed() => match changed {
                Ok(()) => Some(live.borrow_and_update().clone()),
                Err(_) => return,
            },
            changed = guards.changed() => match changed {
                Ok(()) => None,
                Err(_) => return,
            },
        };
        let present = guards.borrow_and_update().clone();
        worker.publish_guards(present);
        if let Some(next) = next {
            worker.publish(next);
        }
    }
}

async fn follow_certificates(
    worker: Rc<Worker>,
    mut certificates: watch::Receiver<Arc<Certificates>>,
) {
    while certificates.changed().await.is_ok() {
        let next = certificates.borrow_and_update().clone();
        worker.publish_certificates(next);
    }
}

async fn tick(worker: Rc<Worker>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        worker.tick();
    }
}

async fn accept(
    worker: Rc<Worker>,
    acceptor: Acceptor,
    local: Local,
    mut stop: watch::Receiver<Stop>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = acceptor.accept() => accepted,
            _ = stopped(&mut stop) => break,
        };
        match accepted {
            Ok((stream, peer)) => begin(&worker, stream, peer, local),
            Err(e) => {
                // Out of descriptors or memory: the queue waits in the kernel meanwhile.
                worker.count_fault(Fault::Overloaded);
                tracing::warn!(error = %e, local = %local.addr, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
    // What the kernel has accepted would be reset with the listener.
    while let Ok((stream, peer)) = acceptor.accept_now() {
        begin(&worker, stream, peer, local);
    }
}

/// Serves a connection, if there is room for it.
fn begin(worker: &Rc<Worker>, stream: TcpStream, peer: SocketAddr, local: Local) {
    if worker.connections().open_now() >= worker.limits().max_connections as i64 {
        worker.connections().refuse();
        worker.count_fault(Fault::Overloaded);
        return;
    }
    let open = worker.connections().open();
    let worker = worker.clone();
    tokio::task::spawn_local(async move {
        super::conn::serve(worker, stream, peer, local).await;
        drop(open);
    });
}
