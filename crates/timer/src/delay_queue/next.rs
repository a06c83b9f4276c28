//! [`Next`]: the future of an element.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::state::Look;
use super::wait::Wait;
use crate::{Monotonic, Sleep};

/// Waits for an element; from [`DelayQueue::next`](crate::DelayQueue::next) and
/// [`DelayQueue::wait_next`](crate::DelayQueue::wait_next).
///
/// The timer wakes the future, on any executor, up to one tick of the timer late. A future that waits may have one
/// entry in the timer, which accepts it even if the timer is full.
///
/// A future that is dropped leaves the line, and no element is lost: an element is taken only by the poll that
/// returns it. A future that is polled again after it was ready waits for another element.
///
/// The first waiter in the line watches the queue for the others. So a future that has been polled must be polled
/// again when it is woken, or dropped; one that is kept without being polled may hold the others up.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Next<'a, T> {
    wait: Wait<'a, T>,
    alarm: Option<Sleep>,
}

impl<'a, T> Next<'a, T> {
    pub(super) fn new(wait: Wait<'a, T>) -> Self {
        Self { wait, alarm: None }
    }

    /// The future's one alarm, set to `at`.
    fn alarm(&mut self, at: Monotonic) -> &mut Sleep {
        let timer = &self.wait.shared.timer;
        // Set by the instant: a delay would count from a clock that has moved on.
        let alarm = self.alarm.get_or_insert_with(|| Sleep::alarm(timer, at));
        if alarm.deadline() != at {
            alarm.reset_at(at);
        }
        alarm
    }
}

impl<T> Future for Next<'_, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        loop {
            let until = match self.wait.look(context.waker()) {
                Look::Wait(Some(until)) => until,
                Look::Wait(None) => {
                    self.alarm = None;
                    return Poll::Pending;
                }
                Look::Taken(value) => {
                    self.alarm = None;
                    return Poll::Ready(Some(value));
                }
                Look::End => {
                    self.alarm = None;
                    return Poll::Ready(None);
                }
            };
            match Pin::new(self.alarm(until)).poll(context) {
                Poll::Pending => return Poll::Pending,
                // The alarm came: look again. The next alarm is another sleep.
                Poll::Ready(Ok(())) => self.alarm = None,
                // The timer is shut down and would not wake this waiter any more.
                Poll::Ready(Err(_)) => {
                    self.alarm = None;
                    self.wait.leave();
                    return Poll::Ready(None);
                }
            }
        }
    }
}

impl<T> fmt::Debug for Next<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next")
            .field("until", &self.alarm.as_ref().map(Sleep::deadline))
            .finish_non_exhaustive()
    }
}
