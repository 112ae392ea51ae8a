//! How many reviews there are at a time: each reads the objects of the whole cluster, and traffic
//! has the CPUs first.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::PATIENCE;

/// Reviews at a time.
pub const MAX_REVIEWS: usize = 2;

/// Questions that wait for their turn; further ones are allowed at once.
pub const MAX_WAITING: usize = 8;

/// Why there is no opinion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unheard {
    /// Too many wait already.
    Busy,
    /// It took too long, waiting included, or failed.
    Late,
}

/// Turns to think. Cheap to clone.
#[derive(Clone)]
pub struct Turns {
    /// For those that think and those that wait.
    places: Arc<Semaphore>,
    /// For those that think.
    thinking: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        Turns {
            places: Arc::new(Semaphore::new(MAX_REVIEWS + MAX_WAITING)),
            thinking: Arc::new(Semaphore::new(MAX_REVIEWS)),
        }
    }
}

impl Turns {
    /// Thinks on a thread of its own when there is a turn, for at most [`PATIENCE`] from now on.
    ///
    /// # Errors
    /// When nothing was thought.
    pub async fn think<T: Send + 'static>(
        &self,
        think: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unheard> {
        let place = self.places.clone().try_acquire_owned();
        let place = place.map_err(|_| Unheard::Busy)?;
        let thought = timeout(PATIENCE, self.in_turn(place, think)).await;
        thought.unwrap_or(Err(Unheard::Late))
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        place: OwnedSemaphorePermit,
        think: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unheard> {
        // Closed never: it is ours.
        let turn = self.thinking.clone().acquire_owned().await;
        let turn = turn.map_err(|_| Unheard::Late)?;
        let thinking = spawn_blocking(move || {
            // Until it is over, even when nobody waits for it any more.
            let _held = (place, turn);
            think()
        });
        thinking.await.map_err(|error| {
            tracing::error!(%error, "a review failed");
            Unheard::Late
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::mpsc;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn few_think_some_wait_and_the_rest_is_let_through() {
        let turns = Turns::default();
        let (begun, began) = mpsc::channel();
        let mut ends = Vec::new();
        let mut all = JoinSet::new();
        for _ in 0..MAX_REVIEWS + MAX_WAITING {
            let (turns, begun) = (turns.clone(), begun.clone());
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            all.spawn(async move {
                let think = move || {
                    begun.send(()).unwrap();
                    // Until its sender is dropped.
                    let _ = ended.recv();
                };
                turns.think(think).await
            });
        }
        // Those that have a place have it before they wait for anything.
        while turns.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.think(|| ()).await, Err(Unheard::Busy));
        for _ in 0..MAX_REVIEWS {
            let began = &began;
            while began.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
        }
        assert!(began.try_recv().is_err(), "another one thinks too");
        drop(ends);
        while all.join_next().await.is_some() {}
        assert_eq!(turns.think(|| 7).await, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_too_long_keeps_its_turn_and_nobody_waiting() {
        let turns = Turns::default();
        let (end, ended) = mpsc::channel::<()>();
        let asked = turns.clone();
        let late = tokio::spawn(async move { asked.think(move || ended.recv().is_ok()).await });
        while turns.thinking.available_permits() == MAX_REVIEWS {
            tokio::task::yield_now().await;
        }
        // Not by itself: paused time stands still while a thread thinks.
        tokio::time::advance(PATIENCE).await;
        assert_eq!(late.await.unwrap(), Err(Unheard::Late));
        assert_eq!(turns.thinking.available_permits(), MAX_REVIEWS - 1);
        drop(end);
    }

    #[tokio::test]
    async fn a_panic_is_no_opinion_and_gives_the_turn_back() {
        let turns = Turns::default();
        let failed: Result<(), _> = turns.think(|| panic!("a fault of ours")).await;
        assert_eq!(failed, Err(Unheard::Late));
        assert_eq!(turns.thinking.available_permits(), MAX_REVIEWS);
    }
}
