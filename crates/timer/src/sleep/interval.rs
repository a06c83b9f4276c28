//! [`Interval`]: ticks at a fixed rate.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::{Sleep, SleepError};
use crate::timer::at_least_a_tick;
use crate::{Missed, Monotonic, Timer};

/// Ticks at a fixed rate, made by [`Timer::interval`]. The first tick is at once. Each further tick is scheduled one period after the
/// scheduled time of the previous one. [`missed`](Self::missed) sets what happens to ticks that were not awaited in time. The interval
/// keeps its timer alive, as a clone of the [`Timer`] does.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Missed, Timer};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let timer = Timer::new().unwrap();
/// let mut interval = timer.interval(Duration::from_millis(1)).missed(Missed::Delay);
/// let first = interval.tick().await?;
/// let second = interval.tick().await?;
/// assert!(second >= first.saturating_add(Duration::from_millis(1)));
/// # Ok::<(), tickwheel::SleepError>(())
/// # }).unwrap();
/// ```
#[must_use = "an interval ticks when it is asked to"]
pub struct Interval {
    timer: Timer,
    period: Duration,
    missed: Missed,
    sleep: Sleep,
}

impl Interval {
    pub(crate) fn new(timer: Timer, period: Duration) -> Self {
        assert!(!period.is_zero(), "an interval of zero has no next tick");
        let period = at_least_a_tick(period, timer.core().tick_nanos());
        let sleep = timer.sleep(Duration::ZERO);
        Self { timer, period, missed: Missed::default(), sleep }
    }

    /// Sets what happens to ticks that were not awaited in time. The default is [`Missed::Skip`].
    pub fn missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }

    /// Moves the next tick to one period from now; the grid continues from there. A tick that was due and was not awaited is left out.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Monotonic, ManualClock, Timer};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    /// let mut ping = timer.interval(Duration::from_secs(10));
    /// ping.tick().await?;
    /// // Traffic at 7 s: the next ping is due at 17 s.
    /// clock.advance(Duration::from_secs(7));
    /// ping.reset();
    /// clock.advance(Duration::from_secs(10));
    /// assert_eq!(ping.tick().await?, Monotonic::from_nanos(17_000_000_000));
    /// # Ok::<(), tickwheel::SleepError>(())
    /// # }).unwrap();
    /// ```
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// Moves the next tick to now. The grid continues from there: the following tick is due one period from now.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{ManualClock, Monotonic, Timer};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let clock = ManualClock::starting_at(Monotonic::from_nanos(5));
    /// let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    /// let mut sync = timer.interval(Duration::from_secs(3_600));
    /// sync.tick().await?;
    /// clock.advance(Duration::from_secs(60));
    /// sync.reset_immediately();
    /// assert_eq!(sync.tick().await?, clock.advance(Duration::ZERO));
    /// # Ok::<(), tickwheel::SleepError>(())
    /// # }).unwrap();
    /// ```
    pub fn reset_immediately(&mut self) {
        self.reset_after(Duration::ZERO);
    }

    /// Moves the next tick to `delay` from now, earlier or later; the grid continues from there, with the same period. Zero is at once; a
    /// delay of more than 584 years (the range of the clock) is never.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{ManualClock, Monotonic, Timer};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    /// let mut interval = timer.interval(Duration::from_secs(10));
    /// interval.reset_after(Duration::from_secs(1));
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(interval.tick().await?, Monotonic::from_nanos(1_000_000_000));
    /// clock.advance(Duration::from_secs(10));
    /// assert_eq!(interval.tick().await?, Monotonic::from_nanos(11_000_000_000));
    /// # Ok::<(), tickwheel::SleepError>(())
    /// # }).unwrap();
    /// ```
    pub fn reset_after(&mut self, delay: Duration) {
        self.sleep.reset(delay);
    }

    /// Moves the next tick to the reading `at` of the timer's clock, earlier or later; the grid continues from there. A reading in the past
    /// is due at once, and [`missed`](Self::missed) sets what happens to the ticks between it and now. With [`Monotonic::MAX`], the tick is
    /// never due.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{ManualClock, Missed, Monotonic, Timer};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let second = |n: u64| Monotonic::from_nanos(n * 1_000_000_000);
    /// let clock = ManualClock::starting_at(second(25));
    /// let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    /// let mut interval = timer.interval(Duration::from_secs(10)).missed(Missed::Burst);
    /// // The ticks of 0, 10 and 20 s were missed: a burst makes up for all of them.
    /// interval.reset_at(second(0));
    /// for due in [0, 10, 20] {
    ///     assert_eq!(interval.tick().await?, second(due));
    /// }
    /// # Ok::<(), tickwheel::SleepError>(())
    /// # }).unwrap();
    /// ```
    pub fn reset_at(&mut self, at: Monotonic) {
        self.sleep.reset_at(at);
    }

    /// Waits for the next tick and returns the reading at which it was scheduled. Dropping the future loses no tick.
    ///
    /// # Errors
    /// [`SleepError`] if the timer was shut down, or was full.
    pub async fn tick(&mut self) -> Result<Monotonic, SleepError> {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Like [`tick`](Self::tick), for hand-written futures.
    ///
    /// # Errors
    /// The same as those of [`tick`](Self::tick).
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Result<Monotonic, SleepError>> {
        ready!(Pin::new(&mut self.sleep).poll(context))?;
        let scheduled = self.sleep.deadline();
        let next = self.missed.next(scheduled, self.timer.now(), self.period, self.timer.core().tick_nanos());
        self.sleep.reset_at(next);
        Poll::Ready(Ok(scheduled))
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("period", &self.period)
            .field("next", &self.sleep.deadline())
            .finish_non_exhaustive()
    }
}
