//! [`Probe`]: an operation that counts the calls of its methods.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tickwheel::{Executor, Job, ManualClock, Operation, Purgatory, Submitted, Timer, TimerBuilder, Waiting};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

type Hook = Box<dyn Fn() + Send + Sync>;

/// Completes when it was told that it is ready. Its methods count their calls and then run the
/// hooks.
#[derive(Default)]
pub(crate) struct Probe {
    ready: AtomicBool,
    tries: AtomicUsize,
    expired: AtomicUsize,
    completed: AtomicUsize,
    pub(crate) on_try: OnceLock<Hook>,
    pub(crate) on_expiry: OnceLock<Hook>,
    pub(crate) on_end: OnceLock<Hook>,
}

impl Probe {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    pub(crate) fn tries(&self) -> usize {
        self.tries.load(Ordering::Relaxed)
    }

    /// How often it expired, and completed.
    pub(crate) fn ends(&self) -> (usize, usize) {
        (self.expired.load(Ordering::Relaxed), self.completed.load(Ordering::Relaxed))
    }
}

impl Operation for Probe {
    fn try_complete(&self) -> bool {
        self.tries.fetch_add(1, Ordering::Relaxed);
        let ready = self.ready.load(Ordering::Relaxed);
        run(&self.on_try);
        ready
    }

    fn on_expire(&self) {
        self.expired.fetch_add(1, Ordering::Relaxed);
        run(&self.on_expiry);
    }

    fn on_complete(&self) {
        self.completed.fetch_add(1, Ordering::Relaxed);
        run(&self.on_end);
    }
}

fn run(hook: &OnceLock<Hook>) {
    if let Some(hook) = hook.get() {
        hook();
    }
}

/// Sets a hook. A hook can be set once.
pub(crate) fn hook(place: &OnceLock<Hook>, hook: impl Fn() + Send + Sync + 'static) {
    assert!(place.set(Box::new(hook)).is_ok(), "there is a hook already");
}

/// A purgatory for probes, with its timer, whose bodies run on the thread that moves the clock.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) timer: Timer,
    pub(crate) purgatory: Purgatory<&'static str, Probe>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_max_pending(usize::MAX)
    }

    pub(crate) fn with_max_pending(max_pending: usize) -> Self {
        Self::build(|builder| builder.executor(Job::run).max_pending(max_pending))
    }

    pub(crate) fn with_executor(executor: impl Executor + 'static) -> Self {
        Self::build(|builder| builder.executor(executor))
    }

    fn build(set: impl FnOnce(TimerBuilder) -> TimerBuilder) -> Self {
        let clock = ManualClock::new();
        let timer = set(Timer::builder().clock(clock.clone())).build().expect("a timer");
        let purgatory = Purgatory::new(&timer);
        Self { clock, timer, purgatory }
    }

    /// Submits a probe that has to wait, with a timeout of one second.
    pub(crate) fn wait<const N: usize>(&self, probe: &Arc<Probe>, keys: [&'static str; N]) -> Waiting<Probe> {
        match self.purgatory.submit(Arc::clone(probe), keys, SECOND) {
            Ok(Submitted::Waiting(waiting)) => waiting,
            other => panic!("it does not wait: {other:?}"),
        }
    }

    /// Operations that wait, and their keys.
    pub(crate) fn gauges(&self) -> (usize, usize) {
        (self.purgatory.delayed(), self.purgatory.watched())
    }

    /// Nothing is left anywhere.
    pub(crate) fn assert_empty(&self) {
        assert_eq!((self.gauges(), self.timer.pending()), ((0, 0), 0));
    }
}
