//! [`Every`] and [`FixedDelay`]: tasks that run repeatedly.

use std::num::NonZeroU64;
use std::time::Duration;

use super::body::{Body, Task};
use super::owner::Timer;
use super::refused::{Refusal, Refused};
use super::timeout::Timeout;
use super::word::round_down;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, lock};
use crate::{Missed, Monotonic};

/// The settings of a task at a fixed rate, from [`Timer::every`].
///
/// The first run is scheduled at the start plus the delay of [`first`](Self::first). Each next run is scheduled one period after the
/// scheduled time of the run before, not after its begin, so the grid does not drift. Runs of one task never overlap.
/// [`missed`](Self::missed) sets what happens to runs that were missed, because a body took long or the process stood still.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::time::Duration;
/// use tickwheel::{Job, ManualClock, Missed, Timer};
///
/// let clock = ManualClock::new();
/// let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
/// let runs = Arc::new(AtomicU32::new(0));
/// let counted = Arc::clone(&runs);
/// let task = timer
///     .every(Duration::from_secs(60))
///     .missed(Missed::Skip)
///     .start(move || { counted.fetch_add(1, Ordering::Relaxed); })
///     .unwrap();
/// clock.advance(Duration::from_secs(60));
/// // Five hours in which nothing could run: one run makes up for all.
/// clock.advance(Duration::from_secs(5 * 3_600));
/// assert_eq!(runs.load(Ordering::Relaxed), 2);
/// assert!(task.cancel());
/// # Ok::<(), tickwheel::BuildError>(())
/// ```
#[must_use = "nothing runs until `start` is called"]
#[derive(Clone, Debug)]
pub struct Every<'a> {
    timer: &'a Timer,
    period: Duration,
    first: First,
    missed: Missed,
}

/// The time for which the first run is scheduled.
#[derive(Clone, Copy, Debug)]
enum First {
    After(Duration),
    At(Monotonic),
}

/// The settings of a task that runs a fixed delay after the end of its previous run, from [`Timer::fixed_delay`].
///
/// Each run begins `delay` or more after the previous run has *ended*, so no run is ever missed.
#[must_use = "nothing runs until `start` is called"]
#[derive(Clone, Debug)]
pub struct FixedDelay<'a> {
    timer: &'a Timer,
    delay: Duration,
    first: First,
}

impl<'a> Every<'a> {
    pub(super) fn new(timer: &'a Timer, period: Duration) -> Self {
        let period = at_least_a_tick(period, timer.core().common.tick_nanos);
        Self { timer, period, first: First::After(period), missed: Missed::default() }
    }

    /// Sets the delay of the first run. The default is one period; with zero, the first run is at once, and does not wait for the
    /// next tick.
    pub fn first(self, delay: Duration) -> Self {
        Self { first: First::After(delay), ..self }
    }

    /// Sets the instant of the first run, by the timer's clock, instead of a delay. An instant in the past is due at once, before the next tick, and
    /// [`missed`](Self::missed) sets what happens to the runs between it and now: with `Burst` each of them takes place; with `Skip` one
    /// takes place and the grid that begins at `at` continues; with `Delay` one takes place and a new grid begins. The lateness of such a
    /// run counts from its scheduled time. With [`Monotonic::MAX`], the task never runs.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use tickwheel::{Job, ManualClock, Missed, Monotonic, Timer};
    ///
    /// // 25 s after the start of the grid, which the program knows from before.
    /// let clock = ManualClock::starting_at(Monotonic::from_nanos(25_000_000_000));
    /// let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
    /// let (sender, runs) = mpsc::channel();
    /// timer
    ///     .every(Duration::from_secs(10))
    ///     .first_at(Monotonic::ZERO)
    ///     .missed(Missed::Skip)
    ///     .start(move || sender.send(()).unwrap())
    ///     .unwrap();
    /// clock.advance(Duration::ZERO);
    /// assert_eq!(runs.try_iter().count(), 1, "for those of 0, 10 and 20 s");
    /// clock.advance(Duration::from_secs(5));
    /// assert_eq!(runs.try_iter().count(), 1, "30 s are on the old grid");
    /// # Ok::<(), tickwheel::BuildError>(())
    /// ```
    pub fn first_at(self, at: Monotonic) -> Self {
        Self { first: First::At(at), ..self }
    }

    /// Sets what happens to runs that were missed. The default is [`Missed::Skip`].
    pub fn missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }

    /// Starts the task. If a run panics, the panic is counted, and the task runs again.
    ///
    /// # Errors
    /// Gives the task back: [`NoPeriod`](Refusal::NoPeriod), [`Full`](Refusal::Full) or
    /// [`ShutDown`](Refusal::ShutDown).
    pub fn start<F: FnMut() + Send + 'static>(self, task: F) -> Result<Timeout, Refused<F>> {
        let rule = Rule::Rate { period: self.period, missed: self.missed };
        start(self.timer, self.period, self.first, rule, task)
    }
}

impl<'a> FixedDelay<'a> {
    pub(super) fn new(timer: &'a Timer, delay: Duration) -> Self {
        Self { timer, delay, first: First::After(delay) }
    }

    /// Sets the delay of the first run. The default is the delay of all other runs; with zero, the first run is at once, and
    /// does not wait for the next tick.
    pub fn first(self, delay: Duration) -> Self {
        Self { first: First::After(delay), ..self }
    }

    /// Sets the instant of the first run, by the timer's clock, instead of a delay. With an instant in the past, one run is due at once;
    /// other runs are not missed. With [`Monotonic::MAX`], the task never runs.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use tickwheel::{Job, ManualClock, Monotonic, Timer};
    ///
    /// let clock = ManualClock::starting_at(Monotonic::from_nanos(25_000_000_000));
    /// let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
    /// let (sender, runs) = mpsc::channel();
    /// timer.fixed_delay(Duration::from_secs(10)).first_at(Monotonic::ZERO).start(move || sender.send(()).unwrap()).unwrap();
    /// clock.advance_through(Duration::from_secs(9));
    /// assert_eq!(runs.try_iter().count(), 1);
    /// # Ok::<(), tickwheel::BuildError>(())
    /// ```
    pub fn first_at(self, at: Monotonic) -> Self {
        Self { first: First::At(at), ..self }
    }

    /// Starts the task. If a run panics, the panic is counted, and the task runs again.
    ///
    /// # Errors
    /// Gives the task back: [`NoPeriod`](Refusal::NoPeriod) for a delay of zero,
    /// [`Full`](Refusal::Full) or [`ShutDown`](Refusal::ShutDown).
    pub fn start<F: FnMut() + Send + 'static>(self, task: F) -> Result<Timeout, Refused<F>> {
        start(self.timer, self.delay, self.first, Rule::Delay(self.delay), task)
    }
}

/// The period of a grid. A timer wakes up once in a tick, so a shorter period would only make runs that are missed at once. Zero stays zero,
/// and is refused later.
pub(crate) fn at_least_a_tick(period: Duration, tick_nanos: NonZeroU64) -> Duration {
    if period.is_zero() { period } else { period.max(Duration::from_nanos(tick_nanos.get())) }
}

fn start<F: FnMut() + Send + 'static>(
    timer: &Timer,
    period: Duration,
    first: First,
    rule: Rule,
    task: F,
) -> Result<Timeout, Refused<F>> {
    let core = timer.core();
    if period.is_zero() {
        return Err(Refused { task, why: core.common.refuse(Refusal::NoPeriod) });
    }
    let now = core.now();
    let scheduled = match first {
        First::After(delay) => now.saturating_add(delay),
        First::At(at) => at,
    };
    let at_once = scheduled.has_come(now);
    let body = Periodic {
        task: Mutex::new(Some(task)),
        scheduled: Mutex::new(scheduled),
        rule,
        at_once: AtomicBool::new(at_once),
        tick_nanos: core.common.tick_nanos,
    };
    let shard = core.shard();
    let accepted = if at_once {
        shard.accept_at_once(round_down(scheduled), body)
    } else {
        shard.accept(scheduled, body)
    };
    accepted.map(Timeout::new).map_err(|(body, why)| {
        let task = body.take_task().expect("a task that was refused has not run");
        Refused { task, why }
    })
}

/// A body that runs repeatedly.
///
/// Ground rule: the thread that runs the body has exclusive access; the locks exist only because the compiler needs them. The task is taken
/// out while it runs, so that no lock is held meanwhile.
struct Periodic<F> {
    task: Mutex<Option<F>>,
    /// The exact instant of the next run; the deadline of the entry is rounded.
    scheduled: Mutex<Monotonic>,
    rule: Rule,
    /// The task began at once, and has not run.
    at_once: AtomicBool,
    tick_nanos: NonZeroU64,
}

#[derive(Clone, Copy)]
enum Rule {
    Rate { period: Duration, missed: Missed },
    Delay(Duration),
}

impl<F> Periodic<F> {
    fn take_task(&self) -> Option<F> {
        lock(&self.task).take()
    }
}

/// Puts the task back after its run, also after a panic.
struct PutBack<'a, F> {
    slot: &'a Mutex<Option<F>>,
    task: Option<F>,
}

impl<F> Drop for PutBack<'_, F> {
    fn drop(&mut self) {
        *lock(self.slot) = self.task.take();
    }
}

impl<F: FnMut() + Send + 'static> Body for Periodic<F> {
    fn run(&self, deadline: Monotonic, started: Monotonic) {
        // Each change of the entry's word, before and after the run, orders this store.
        self.at_once.store(false, Ordering::Relaxed);
        if let Rule::Rate { period, missed } = self.rule {
            let mut scheduled = lock(&self.scheduled);
            // A difference of 16 ns or more means that a reschedule moved the run, so the grid continues from the new deadline.
            let moved = deadline.as_nanos().abs_diff(scheduled.as_nanos()) >= 16;
            let this = if moved { deadline } else { *scheduled };
            *scheduled = missed.next(this, started, period, self.tick_nanos);
        }
        let mut running = PutBack { slot: &self.task, task: self.take_task() };
        if let Some(task) = &mut running.task {
            task();
        }
    }

    fn next(&self, ended: Monotonic) -> Option<Monotonic> {
        match self.rule {
            Rule::Rate { .. } => Some(*lock(&self.scheduled)),
            Rule::Delay(delay) => Some(ended.saturating_add(delay)),
        }
    }

    fn is_periodic(&self) -> bool {
        true
    }

    fn begins_at_once(&self) -> bool {
        self.at_once.load(Ordering::Relaxed)
    }

    fn give_up(&self) {
        drop(self.take_task());
    }

    fn take(&self) -> Option<Task> {
        self.take_task().map(|task| Box::new(task) as Task)
    }
}
