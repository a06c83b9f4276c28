//! Long work that must not delay other tasks: it runs on another thread, or in steps.

use std::panic::resume_unwind;
use std::sync::{Arc, LazyLock};

use tickwheel_api::Problem;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinError, spawn_blocking};

use crate::base::others::let_others;

/// Input above this size (16 KiB) is processed on another thread. The worst text of this size takes about 0.3 ms.
pub(crate) const LONG_BYTES: usize = 16 << 10;
/// A line, a task or a token costs as much work as 256 bytes, in addition to its own bytes.
pub(crate) const ONE_BYTES: usize = 256;

/// Memory above this size (2 MiB) is freed on another thread.
const DISCARDED_BYTES: usize = 2 << 20;

/// Limits the work on other threads to one item for each processor. More would only compete with the threads that
/// serve.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new(processors))
});

/// All work has this one type, so the runtime's code for a task is compiled once, and not for each caller.
type Work = Box<dyn FnOnce() + Send>;

/// Does the work on a thread that serves no connections. If the caller leaves, the work still runs to its end.
///
/// # Errors
/// The server stops, and the work was not begun.
///
/// # Panics
/// If the work panics.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let Ok(place) = Arc::clone(&PLACES).acquire_owned().await else { return Err(Problem::stopping()) };
    let (answer, mut answered) = oneshot::channel();
    let work: Work = Box::new(move || {
        // A caller that has left wants no answer.
        drop(answer.send(work()));
        drop(place);
    });
    match spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(()) => answered.try_recv().map_err(|_| Problem::stopping()),
        Err(Ok(panic)) => resume_unwind(panic),
        Err(Err(_)) => Err(Problem::stopping()),
    }
}

/// Frees the bytes. It uses another thread if there are many, because freeing 16 MiB takes 1 ms.
pub(crate) fn discard(bytes: Vec<u8>) {
    if bytes.len() > DISCARDED_BYTES {
        // No caller waits for the thread. If the server stops, the bytes are freed at once.
        let work: Work = Box::new(move || drop(bytes));
        drop(spawn_blocking(work));
    }
}

/// Counts work, so that other tasks have their turn between two steps.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    bytes: usize,
}

impl Steps {
    /// Counts one more item with this many bytes.
    pub(crate) async fn did(&mut self, bytes: usize) {
        self.worked(ONE_BYTES + bytes).await;
    }

    /// Counts work that costs as much as this many bytes.
    pub(crate) async fn worked(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= LONG_BYTES {
            self.bytes = 0;
            let_others().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::base::others::tests::turns;

    #[tokio::test]
    async fn others_have_their_turn_between_two_steps() {
        let turns = turns();
        let mut steps = Steps::default();
        for _ in 0..10 * LONG_BYTES / ONE_BYTES {
            steps.did(0).await;
        }
        assert_eq!(turns.load(Ordering::Relaxed), 10);
        for _ in 0..10 {
            steps.did(LONG_BYTES).await;
        }
        assert_eq!(turns.load(Ordering::Relaxed), 20);
    }

    #[tokio::test]
    async fn aside_runs_on_another_thread() {
        let there = aside(|| thread::current().id()).await.expect("it is done");
        assert_ne!(there, thread::current().id());
    }

    #[tokio::test]
    async fn at_most_one_work_for_each_processor_runs_aside() {
        let (running, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let works: Vec<_> = (0..64)
            .map(|_| {
                let (running, most) = (Arc::clone(&running), Arc::clone(&most));
                tokio::spawn(aside(move || {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                }))
            })
            .collect();
        for work in works {
            work.await.expect("no panic").expect("it is done");
        }
        let processors = thread::available_parallelism().map_or(1, usize::from);
        assert!((1..=processors).contains(&most.load(Ordering::SeqCst)), "{most:?} of {processors}");
    }

    #[tokio::test]
    #[should_panic(expected = "its own words")]
    async fn a_panic_is_passed_on() {
        let _never = aside(|| panic!("its own words")).await;
    }
}
