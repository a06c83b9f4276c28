//! [`Sleep`]: a future that is ready at a deadline.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::timer::{AnyEntry, Phase, Shard, Waiter};
use crate::{Monotonic, Refusal, Timer};

/// A future that is ready at a deadline, made by [`Timer::sleep`].
///
/// A sleep enters the timer when it is first polled, and leaves it when it is dropped. It needs no runtime: the timer's driver wakes the
/// task that polled the sleep last. A sleep does not keep the timer alive: when the last [`Timer`] is dropped, the sleep ends with an
/// error.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::Timer;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let timer = Timer::new().unwrap();
/// let mut idle = timer.sleep(Duration::from_secs(60));
/// // Traffic: the connection is not idle.
/// idle.reset(Duration::from_millis(1));
/// (&mut idle).await?;
/// # Ok::<(), tickwheel::SleepError>(())
/// # }).unwrap();
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    /// The shard of the thread that made the sleep. A reference count on the timer itself would be shared by all threads.
    home: Arc<Shard>,
    deadline: Monotonic,
    /// Whether the timer accepts the sleep even if it is full.
    anyway: bool,
    /// The entry in the timer, from the first poll to the end.
    entry: Option<Arc<AnyEntry>>,
    /// The last reset moved the deadline of the entry to a time that had come. The driver wakes the entry only at the next tick.
    has_come: bool,
}

/// The error of a sleep that ended before its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SleepError {
    /// The timer was shut down, or was full.
    pub why: Refusal,
}

impl Sleep {
    pub(crate) fn new(timer: &Timer, deadline: Monotonic) -> Self {
        Self { home: Arc::clone(timer.core().shard()), deadline, anyway: false, entry: None, has_come: false }
    }

    /// A sleep that a full timer does not refuse.
    pub(crate) fn alarm(timer: &Timer, deadline: Monotonic) -> Self {
        Self { home: Arc::clone(timer.core().shard()), deadline, anyway: true, entry: None, has_come: false }
    }

    /// The deadline, by the timer's clock.
    #[must_use]
    pub fn deadline(&self) -> Monotonic {
        self.deadline
    }

    /// Moves the deadline to `delay` from now, earlier or later. A sleep that has ended starts again.
    pub fn reset(&mut self, delay: Duration) {
        let now = self.home.common.now();
        self.move_to(now.saturating_add(delay), now);
    }

    /// Like [`reset`](Self::reset), with a reading of the timer's clock as the deadline. With a reading in the past, the sleep is ready at
    /// the next poll, also between two ticks, and its task is woken at the next tick; with [`Monotonic::MAX`], never.
    pub fn reset_at(&mut self, deadline: Monotonic) {
        if self.entry.is_some() {
            self.move_to(deadline, self.home.common.now());
        } else {
            // The poll that enters the timer reads the clock.
            self.deadline = deadline;
            self.has_come = false;
        }
    }

    fn move_to(&mut self, deadline: Monotonic, now: Monotonic) {
        self.deadline = deadline;
        if self.entry.as_ref().is_some_and(|entry| !entry.reschedule(deadline)) {
            self.entry = None;
        }
        // The entry stays in the timer: if the sleep is not polled now, the driver wakes its task.
        self.has_come = self.entry.is_some() && deadline.has_come(now);
    }

    /// Enters the timer.
    fn enter(&mut self, context: &Context<'_>) -> Poll<Result<(), SleepError>> {
        if self.deadline.has_come(self.home.common.now()) {
            return Poll::Ready(Ok(()));
        }
        let waiter = Waiter::new(context.waker().clone());
        let accepted = if self.anyway {
            self.home.accept_anyway(self.deadline, waiter)
        } else {
            self.home.accept(self.deadline, waiter)
        };
        match accepted {
            Ok(entry) => {
                self.entry = Some(entry);
                Poll::Pending
            }
            Err((_, why)) => Poll::Ready(Err(SleepError { why })),
        }
    }
}

impl Future for Sleep {
    type Output = Result<(), SleepError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(entry) = &self.entry else { return self.enter(context) };
        if self.has_come && entry.cancel() {
            self.entry = None;
            return Poll::Ready(Ok(()));
        }
        let waiter = entry.body.waiter();
        if let Some(waiter) = waiter {
            waiter.set(context.waker());
        }
        // The word is read after the waker was stored: see the rule of `Waiter`.
        let ended = match entry.word.look().phase() {
            Phase::Fired => Ok(()),
            Phase::Returned | Phase::Cancelled => Err(SleepError { why: Refusal::ShutDown }),
            Phase::Pending | Phase::Due | Phase::Firing | Phase::Stopping => return Poll::Pending,
        };
        // The entry will not be woken. The timer may still hold the entry, and would drop the waker under its lock.
        drop(waiter.and_then(|waiter| waiter.take_waker()));
        self.entry = None;
        Poll::Ready(ended)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(entry) = &self.entry {
            entry.cancel();
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl fmt::Display for SleepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the sleep ended before its time: {}", self.why)
    }
}

impl Error for SleepError {}
