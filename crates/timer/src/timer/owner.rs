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

/// Many timeouts on one thread: runs tasks at their deadline or later, never early, and each task ends in exactly one way.
///
/// Any number of threads schedule, cancel and reschedule; they rarely share a lock. One thread, the driver, sleeps until the next deadline
/// and hands what is due to an [`Executor`](crate::Executor), which runs the bodies. It does not wake up in between: a timer with a million
/// far deadlines uses no processor time.
///
/// # Guarantees
/// - *Never early*: a body begins at its deadline or later, by the timer's [`Clock`](crate::Clock). A deadline is rounded up to the
///   [tick](TimerBuilder::tick), 1 ms by default. Tasks go to the executor in the order of their ticks; within a tick, tasks of one thread
///   go in the order in which they were scheduled. A periodic task that begins at once belongs to the tick that has begun. One exception: if a
///   late driver finds more than 4,096 new tasks of one thread, some of them due already, it takes the tasks beyond this number in the order in
///   which they were scheduled. With more threads than processors, some threads have this number together.
/// - *One end*: exactly one of these is true: the task ran once, `cancel` returned true, or `shutdown` returned the task. It is decided
///   when the body begins: until then even a task that waits in an executor can be cancelled.
/// - *A panic is contained*: it is caught and counted; all other tasks go on, and so does a periodic task that panicked. One limit of Rust
///   remains: if a body panics, and a value that it drops panics, too, the process ends.
/// - *No call waits for a body*: so bodies may make all calls.
///
/// # Families
/// - *Schedule*: [`schedule`](Self::schedule) and [`schedule_at`](Self::schedule_at) return a [`Timeout`].
/// - *Repeat*: [`every`](Self::every), [`fixed_delay`](Self::fixed_delay).
/// - *In async code, on any runtime*: [`sleep`](Self::sleep), [`timeout`](Self::timeout),
///   [`interval`](Self::interval).
/// - *Queries*: [`now`](Self::now), [`pending`](Self::pending), [`metrics`](Self::metrics).
/// - *End*: [`shutdown`](Self::shutdown), [`close`](Self::close).
///
/// Clones are the same timer. When the last clone is dropped, the timer is shut down, and tasks that have not begun are dropped: call
/// `shutdown` to get them back. A task that holds a clone of its own timer keeps the timer alive; in this case, too, call `shutdown`.
///
/// # What it is not
/// A timer is not durable: pending tasks are lost when the process ends. It is not a calendar: delays are measured by a monotonic clock,
/// which stands still while the machine is suspended.
///
/// # Cost
/// A `schedule` reads the clock, allocates once and takes a lock that other threads rarely need; a `cancel` is a compare-and-swap and a
/// counter. Both together take about 0.1 us. A task that is cancelled soon after it was scheduled never reaches the driver. A task that
/// reaches it costs what an entry of the [`Wheel`](tickwheel_core::Wheel) costs. The timer keeps the memory of the largest number of tasks
/// that were pending at once, about 30 bytes for each, and uses it again.
///
/// # Origins
/// The states and the compare-and-swap come from Netty's `HashedWheelTimer`, and so does the return of tasks that did not run. The separate
/// executor for bodies comes from Kafka's `SystemTimer`. New are cancelled tasks that never reach the wheel, and a driver that sleeps until
/// the next wake instead of waking at each tick.
///
/// # Example
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tickwheel::Timer;
///
/// let timer = Timer::new()?;
/// let (sender, receiver) = mpsc::channel();
/// let late = timer.schedule(Duration::from_secs(3_600), || println!("no answer")).unwrap();
/// timer.schedule(Duration::from_millis(1), move || sender.send("answer").unwrap()).unwrap();
/// assert_eq!(receiver.recv(), Ok("answer"));
/// assert!(late.cancel());
/// # Ok::<(), tickwheel::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Timer {
    owner: Arc<Owner>,
}

/// The size above which a task gets a separate allocation (bytes). This allocation is freed as soon as the task has run or was cancelled.
/// The allocation of an entry is freed when the last list has dropped it, which may be at the driver's next turn.
const LARGE: usize = 128;

/// Shuts the timer down when its last clone is gone. The driver and the handles hold only the core.
struct Owner {
    core: Arc<Core>,
    motion: Motion,
}

impl Drop for Owner {
    fn drop(&mut self) {
        for task in self.core.shut_down() {
            // Each task is dropped in a separate guard: two tasks that panic during one unwinding would end the process.
            guarded(|| drop(task));
        }
    }
}

impl Timer {
    /// A timer with the defaults of [`builder`](Self::builder).
    ///
    /// # Errors
    /// [`BuildError::Thread`] if the system cannot start a thread.
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// Settings for a new timer.
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

    /// Runs `task` once, `delay` from now or up to one tick later. With a delay of zero it runs at the next tick; with a delay of more than
    /// 584 years (the range of the clock), never.
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

    /// Runs `task` once, when the timer's clock reads `deadline` or up to one tick later. A deadline in the past counts as now; with
    /// [`Monotonic::MAX`] the task never runs. To use an [`Instant`](std::time::Instant), give the timer a
    /// [`SystemClock`](crate::SystemClock), keep a copy of this clock, and convert with its [`at`](crate::SystemClock::at).
    ///
    /// # Errors
    /// The same as those of [`schedule`](Self::schedule).
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

    /// Settings for a task that runs at a fixed rate. [`missed`](Every::missed) sets what happens to missed runs, and
    /// [`start`](Every::start) starts the task. A period below the [tick](TimerBuilder::tick) counts as one tick.
    pub fn every(&self, period: Duration) -> Every<'_> {
        Every::new(self, period)
    }

    /// Settings for a task that runs repeatedly, each time `delay` after the end of the previous run. [`start`](FixedDelay::start) starts
    /// it. With a delay below the [tick](TimerBuilder::tick), it runs once in each tick at most.
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
    /// The future is polled before the deadline is checked. So if both are ready at the same poll, the value is returned, even if the first
    /// poll is after the deadline. The call does not keep the timer alive, as a [`Sleep`] does not.
    ///
    /// # Errors
    /// [`Elapsed`](TimeoutError::Elapsed) if the future was not ready in time, or [`Refused`](TimeoutError::Refused). In both cases the
    /// future is dropped.
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

    /// Ticks at a fixed rate. The first tick is at once. A period below the [tick of the timer](TimerBuilder::tick) counts as one such tick.
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
    /// The number is exact if no other thread is in a call. The call visits every shard.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.core().pending()
    }

    /// The counters of the timer. The call visits every shard.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.core().metrics()
    }

    /// Ends the timer now. After this call has returned, no body begins and nothing is accepted. Tasks that had not begun are given back;
    /// sleeps end with an error. The call does not wait for running bodies, so a body may call it.
    ///
    /// A second call returns no tasks, because the first one returned all of them; so do all but one of several calls at the same time.
    pub fn shutdown(&self) -> Unfired {
        self.core().shut_down()
    }

    /// Accepts nothing new, and treats pending tasks as `on_close` says; gives back the tasks that will not run. The call may be repeated
    /// with other settings, to end more tasks, until [`shutdown`](Self::shutdown) ends all. When [`pending`](Self::pending) is 0, only
    /// bodies that are running are left.
    pub fn close(&self, on_close: OnClose) -> Unfired {
        self.core().close(on_close)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("now", &self.now()).field("pending", &self.pending()).finish()
    }
}
