//! [`Interval`]: ticks at a fixed rate.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::{Sleep, SleepError};
use crate::{Missed, Monotonic, Timer};

/// Ticks at a fixed rate, by [`Timer::interval`]: the first at once, the next one period after it was
/// scheduled. What happens to ticks that nobody asked for in time is said by
/// [`missed`](Self::missed). It keeps its timer, as a clone of the [`Timer`] does.
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
        let sleep = timer.sleep(Duration::ZERO);
        Self { timer, period, missed: Missed::default(), sleep }
    }

    /// What happens to ticks that nobody asked for in time. The default is [`Missed::Skip`].
    pub fn missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }

    /// Waits for the next tick and returns when it was scheduled. Dropping the future loses no tick.
    ///
    /// # Errors
    /// [`SleepError`] if the timer was shut down, or had no place for it.
    pub async fn tick(&mut self) -> Result<Monotonic, SleepError> {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// As [`tick`](Self::tick), for those who write futures by hand.
    ///
    /// # Errors
    /// As [`tick`](Self::tick).
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
