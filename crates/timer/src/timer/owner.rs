//! [`Timer`]: the public type, which owns the timer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::body::OneShot;
use super::builder::{BuildError, TimerBuilder};
use super::core::Core;
use super::firing::guarded;
use super::metrics::Metrics;
use super::periodic::{Every, FixedDelay};
use super::refused::Refused;
use super::timeout::Timeout;
use super::unfired::{OnClose, Unfired};
use crate::{Interval, Monotonic, Motion, Sleep, TimeoutError};

/// Many timeouts on one thread: runs tasks later, never early, and gives each exactly one end.
///
/// Any number of threads schedule, cancel and reschedule; they do not meet on one lock. One thread,
/// the driver, sleeps until the next deadline and hands what is due to an
/// [`Executor`](crate::Executor), where bodies run. It does not wake up in between: a timer with a
/// million far deadlines does nothing.
///
/// # What it promises
/// - *Never early*: a body begins at its deadline or later, by the timer's [`Clock`](crate::Clock).
///   A deadline is rounded up to the [tick](TimerBuilder::tick), 1 ms unless set. Tasks go to the
///   executor in order of their ticks; within a tick, those of one thread in the order in which
///   they were scheduled. A driver that is late, and finds more than 4,096 new tasks that are due
///   already, takes those beyond in the order in which they came.
/// - *One end*: of *it ran once*, *`cancel` said yes* and *`shutdown` returned it* exactly one is true.
///   It is decided when the body begins: until then even a task that waits in an executor can be
///   cancelled.
/// - *A panic is contained*: it is caught and counted; everything else goes on, a periodic task too. One limit of
///   Rust remains: a body that panics and drops a value that panics, too, ends the process.
/// - *No call waits for a body*: all calls may be made from bodies.
///
/// # Families
/// - *Schedule*: [`schedule`](Self::schedule), [`schedule_at`](Self::schedule_at); then the
///   [`Timeout`] they give.
/// - *Again and again*: [`every`](Self::every), [`fixed_delay`](Self::fixed_delay).
/// - *In async code, on any runtime*: [`sleep`](Self::sleep), [`timeout`](Self::timeout),
///   [`interval`](Self::interval).
/// - *Ask*: [`now`](Self::now), [`pending`](Self::pending), [`metrics`](Self::metrics).
/// - *End*: [`shutdown`](Self::shutdown), [`close`](Self::close).
///
/// Clones are the same timer. When the last one is dropped the timer is shut down, and tasks that
/// have not begun are dropped with it: call `shutdown` to have them back. A task that holds a
/// clone of its own timer keeps it, so call `shutdown` there, too.
///
/// # What it is not
/// Not durable: what is pending dies with the process. Not a calendar: delays are by a monotonic
/// clock, which stands still while the machine is suspended.
///
/// # Cost
/// A `schedule` reads the clock, allocates once and takes a lock that other threads rarely want;
/// a `cancel` is a compare-and-set and a counter. About 0.1 us for both. A task that is cancelled
/// soon after it was scheduled never reaches the driver. One that does costs what an entry of the
/// [`Wheel`](tickwheel_core::Wheel) costs. The memory of the greatest number that were pending at once is kept for the next
/// ones, about 30 bytes for each.
///
/// # Where it comes from
/// States and a compare-and-set are Netty's `HashedWheelTimer`, and so is giving back what did not
/// run; bodies on an executor of their own are Kafka's `SystemTimer`. Cancelled tasks that never
/// reach the wheel, and sleeping to the next wake instead of ticking, are ours.
///
/// # Example
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tickwheel::Timer;
///
/// let timer = Timer::new()?;
/// let (sender, receiver) = mpsc::channel();
/// let late = sender.clone();
/// timer.schedule(Duration::from_millis(2), move || late.send("second").unwrap()).unwrap();
/// timer.schedule(Duration::from_millis(1), move || sender.send("first").unwrap()).unwrap();
/// assert_eq!(receiver.iter().collect::<Vec<_>>(), ["first", "second"]);
/// # Ok::<(), tickwheel::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Timer {
    owner: Arc<Owner>,
}

/// A task of more bytes gets an allocation of its own, which is freed as soon as it has run or was cancelled. The
/// allocation of an entry is freed when the last list has dropped it, which may be at the driver's next turn.
const LARGE: usize = 128;

/// Shuts the timer down when its last clone is gone. The driver and the handles hold only the core.
struct Owner {
    core: Arc<Core>,
    motion: Motion,
}

impl Drop for Owner {
    fn drop(&mut self) {
        for task in self.core.shut_down() {
            // Each task is dropped by itself: two tasks that panic in one unwinding would end the process.
            guarded(|| drop(task));
        }
    }
}

impl Timer {
    /// A timer with the defaults of [`builder`](Self::builder).
    ///
    /// # Errors
    /// [`BuildError::Thread`] if the system has no thread left.
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// Sets up a timer.
    pub fn builder() -> TimerBuilder {
        TimerBuilder::new()
    }

    pub(super) fn of(core: Arc<Core>, motion: Motion) -> Self {
        Self { owner: Arc::new(Owner { core, motion }) }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.owner.core
    }

    /// How the timer's clock moves.
    pub(crate) fn motion(&self) -> Motion {
        self.owner.motion
    }

    /// Runs `task` once, `delay` from now or up to a tick later. With no delay it runs on the next
    /// tick; more than the 584 years of the clock is never.
    ///
    /// # Errors
    /// Gives the task back: [`Full`](crate::Refusal::Full) or [`ShutDown`](crate::Refusal::ShutDown).
    pub fn schedule<F: FnOnce() + Send + 'static>(
        &self,
        delay: Duration,
        task: F,
    ) -> Result<Timeout, Refused<F>> {
        self.schedule_at(self.now().saturating_add(delay), task)
    }

    /// Runs `task` once, when the timer's clock reads `deadline` or up to a tick later; a deadline in
    /// the past is now, and [`Monotonic::MAX`] is never. For an [`Instant`](std::time::Instant), give the timer a
    /// [`SystemClock`](crate::SystemClock), keep a copy, and ask its [`at`](crate::SystemClock::at).
    ///
    /// # Errors
    /// As [`schedule`](Self::schedule).
    pub fn schedule_at<F: FnOnce() + Send + 'static>(
        &self,
        deadline: Monotonic,
        task: F,
    ) -> Result<Timeout, Refused<F>> {
        let shard = self.core().shard();
        if const { size_of::<F>() > LARGE } {
            return match shard.accept(deadline, OneShot::new(Box::new(task))) {
                Ok(entry) => Ok(Timeout::new(entry)),
                Err((body, why)) => Err(Refused { task: *body.into_task(), why }),
            };
        }
        match shard.accept(deadline, OneShot::new(task)) {
            Ok(entry) => Ok(Timeout::new(entry)),
            Err((body, why)) => Err(Refused { task: body.into_task(), why }),
        }
    }

    /// Sets up a task that runs at a fixed rate. [`missed`](Every::missed) sets what happens to missed runs, and
    /// [`start`](Every::start) starts the task.
    pub fn every(&self, period: Duration) -> Every<'_> {
        Every::new(self, period)
    }

    /// Sets up a task that runs again and again, each time `delay` after the end of the run before.
    /// [`start`](FixedDelay::start) starts it.
    pub fn fixed_delay(&self, delay: Duration) -> FixedDelay<'_> {
        FixedDelay::new(self, delay)
    }

    /// A future that is ready `delay` from now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::Timer;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let timer = Timer::new().unwrap();
    /// timer.sleep(Duration::from_millis(1)).await?;
    /// # Ok::<(), tickwheel::SleepError>(())
    /// # }).unwrap();
    /// ```
    pub fn sleep(&self, delay: Duration) -> Sleep {
        self.sleep_until(self.now().saturating_add(delay))
    }

    /// A future that is ready when the timer's clock reads `deadline`.
    pub fn sleep_until(&self, deadline: Monotonic) -> Sleep {
        Sleep::new(self, deadline)
    }

    /// Waits for a future, at most `delay` from now.
    ///
    /// The future is polled before the deadline is checked: its value wins if it is ready together with the deadline,
    /// or later at the first poll. As a [`Sleep`], it does not keep the timer alive.
    ///
    /// # Errors
    /// [`Elapsed`](TimeoutError::Elapsed) if it was not ready in time, or
    /// [`Refused`](TimeoutError::Refused). The future is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Timer, TimeoutError};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let timer = Timer::new().unwrap();
    /// let never = std::future::pending::<()>();
    /// assert_eq!(timer.timeout(Duration::from_millis(1), never).await, Err(TimeoutError::Elapsed));
    /// # });
    /// ```
    pub fn timeout<F: Future>(
        &self,
        delay: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, TimeoutError>> + use<F> {
        crate::sleep::within(self.sleep(delay), future)
    }

    /// Ticks at a fixed rate, the first at once.
    ///
    /// # Panics
    /// If the period is zero.
    pub fn interval(&self, period: Duration) -> Interval {
        Interval::new(self.clone(), period)
    }

    /// The reading of the timer's clock.
    #[must_use]
    pub fn now(&self) -> Monotonic {
        self.core().now()
    }

    /// The number of tasks and sleeps that wait for their deadline, or are due and have not begun.
    ///
    /// Exact whenever no other thread is in a call. The call visits every shard.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.core().pending()
    }

    /// The counters of the timer. The call visits every shard.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.core().metrics()
    }

    /// Ends the timer now. No body begins after this has returned, and nothing is accepted any more. Tasks that had
    /// not begun are given back; sleeps end with an error. The call does not wait for running bodies, so a body may
    /// call it.
    ///
    /// A second call, or one at the same time, gives back what is left: nothing.
    pub fn shutdown(&self) -> Unfired {
        self.core().shut_down()
    }

    /// Accepts nothing new, and lets pending tasks end as `on_close` says; gives back those that are not to run. It
    /// may be called again, to end more of them, until [`shutdown`](Self::shutdown) ends all. When
    /// [`pending`](Self::pending) is 0, only running bodies are left.
    pub fn close(&self, on_close: OnClose) -> Unfired {
        self.core().close(on_close)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("now", &self.now()).field("pending", &self.pending()).finish()
    }
}
