//! Threads for what takes too long for a worker: hashes of passwords, which are slow on purpose.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::oneshot;

/// How many pieces of work of one pool wait for a thread. Those beyond are refused.
pub const QUEUE: usize = 64;

type Job = Box<dyn FnOnce() + Send>;

/// A pool's threads: one for two workers, so that passwords take no more than a part of the CPUs. They
/// are started by the first piece of work, and end when the pool does.
pub struct Hasher {
    pool: &'static str,
    threads: usize,
    queue: OnceLock<SyncSender<Job>>,
}

/// Too much waits already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Hasher {
    /// For a pool with so many workers.
    pub fn new(pool: &'static str, workers: usize) -> Arc<Self> {
        Arc::new(Hasher {
            pool,
            threads: workers.div_ceil(2).max(1),
            queue: OnceLock::new(),
        })
    }

    /// Has a thread do it. What comes of it is received; nothing is when it panics.
    ///
    /// # Errors
    /// When [`QUEUE`] pieces of work wait already.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, Full> {
        let (tell, told) = oneshot::channel();
        let job: Job = Box::new(move || {
            // Nobody may wait for it any more.
            let _ = tell.send(work());
        });
        let queue = self.queue.get_or_init(|| self.start());
        queue.try_send(job).map(|()| told).map_err(|_| Full)
    }

    fn start(&self) -> SyncSender<Job> {
        let (queue, jobs) = sync_channel(QUEUE);
        let jobs = Arc::new(Mutex::new(jobs));
        for index in 0..self.threads {
            let jobs = jobs.clone();
            let thread = std::thread::Builder::new()
                .name(format!("{}-hash-{index}", self.pool))
                .spawn(move || serve(&jobs));
            if let Err(error) = thread {
                // Without any, the queue is closed, and every password is refused.
                tracing::error!(%error, "a thread for passwords could not start");
            }
        }
        queue
    }
}

fn serve(jobs: &Mutex<Receiver<Job>>) {
    loop {
        // One of the threads waits for work, the others for it.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("checking a password panicked; it counts as not checked");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn too_much_is_refused_and_a_panic_ends_no_thread() {
        let hasher = Hasher::new("test", 1);
        let (free, wait) = channel::<()>();
        let (begun, began) = channel();
        let first = hasher.run(move || {
            begun.send(()).unwrap();
            wait.recv().unwrap();
            1
        });
        began.recv().unwrap();
        let panics = hasher.run(|| panic!("on purpose")).unwrap();
        let rest: Vec<_> = (2..=QUEUE)
            .map(|n| hasher.run(move || n).unwrap())
            .collect();
        assert_eq!(hasher.run(|| 0).err(), Some(Full));
        free.send(()).unwrap();
        assert_eq!(first.unwrap().blocking_recv().unwrap(), 1);
        let _: Result<(), _> = panics.blocking_recv();
        for (n, told) in (2..=QUEUE).zip(rest) {
            assert_eq!(told.blocking_recv().unwrap(), n);
        }
    }
}
