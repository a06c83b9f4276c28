//! [`Pool`]: a few threads that run bodies.
//!
//! Ground rules:
//! - `state` is protected by its lock, which is not held while a job runs or is dropped.
//! - `idle + calls` threads wait for `called`. A thread that adds a job turns one idle thread into a call, so that two jobs never count on
//!   the same thread. A thread that wakes takes a call; if there is none, it is still idle.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::{Executor, Job};

/// The time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(10);

/// A pool of threads that run bodies in the order in which these came due.
///
/// Threads start when there is work, up to a limit, and end after 10 idle seconds; an unused pool has no threads. Bodies that block for
/// long should have a separate pool, because they delay other bodies. To share one pool between timers, put it in an [`Arc`].
///
/// Dropping a pool drops the jobs that wait in it; the timers of these jobs keep the tasks. Jobs that run continue.
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::sync::Arc;
/// use tickwheel::{Pool, Timer};
///
/// let pool = Arc::new(Pool::new(NonZeroUsize::new(8).unwrap()));
/// let requests = Timer::builder().executor(Arc::clone(&pool)).build()?;
/// let sessions = Timer::builder().executor(pool).build()?;
/// # Ok::<(), tickwheel::BuildError>(())
/// ```
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    most: NonZeroUsize,
    state: Mutex<State>,
    called: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    calls: usize,
    closed: bool,
}

impl Pool {
    /// A pool of at most `threads` threads.
    #[must_use]
    pub fn new(threads: NonZeroUsize) -> Self {
        let shared = Shared { most: threads, state: Mutex::default(), called: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }
}

impl Default for Pool {
    /// A pool with as many threads as the machine can run at once, and at least two, so that one body that blocks does not block all
    /// others.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self::new(NonZeroUsize::MIN.saturating_add(cores.max(2) - 1))
    }
}

impl Executor for Pool {
    fn execute(&self, job: Job) {
        self.shared.take_in([job]);
    }

    fn execute_all(&self, jobs: &mut dyn Iterator<Item = Job>) {
        // The iterator may be user code and may call this pool, so it runs before the lock is taken.
        let jobs: Vec<Job> = jobs.collect();
        self.shared.take_in(jobs);
    }
}

impl Shared {
    /// Queues jobs. For each job, calls an idle thread or starts one.
    fn take_in(self: &Arc<Self>, jobs: impl IntoIterator<Item = Job>) {
        let mut state = self.lock();
        let before = state.jobs.len();
        state.jobs.extend(jobs);
        let new = state.jobs.len() - before;
        let called = new.min(state.idle);
        state.idle -= called;
        state.calls += called;
        let started = (new - called).min(self.most.get() - state.threads);
        state.threads += started;
        drop(state);
        for _ in 0..called {
            self.called.notify_one();
        }
        for _ in 0..started {
            self.start();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread. The caller has counted it already.
    fn start(self: &Arc<Self>) {
        let shared = Arc::clone(self);
        let started = thread::Builder::new().name("tickwheel-pool".into()).spawn(move || shared.work());
        if started.is_err() {
            let mut state = self.lock();
            state.threads -= 1;
            if state.threads == 0 {
                // No thread is left to run the jobs. The timers of dropped jobs hand the tasks over again later.
                let jobs = std::mem::take(&mut state.jobs);
                drop(state);
                drop(jobs);
            }
        }
    }

    /// The main loop of a thread.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job.run();
                state = self.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let waited = self.called.wait_timeout(state, IDLE);
            let (woken, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if state.calls > 0 {
                state.calls -= 1;
                continue;
            }
            state.idle -= 1;
            if waited.timed_out() {
                break;
            }
        }
        state.threads -= 1;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        drop(jobs);
        self.shared.called.notify_all();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("Pool")
            .field("most", &self.shared.most)
            .field("threads", &state.threads)
            .field("idle", &state.idle)
            .field("waiting", &state.jobs.len())
            .finish_non_exhaustive()
    }
}
