//! [`Next`]: the future of an element.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::state::Look;
use super::wait::Wait;
use crate::{Monotonic, Sleep};

/// The future of an element, made by [`DelayQueue::next`](crate::DelayQueue::next) and
/// [`DelayQueue::wait_next`](crate::DelayQueue::wait_next).
///
/// The timer wakes the future, on any executor, at most one tick of the timer late. A future that waits may have one entry in the timer;
/// the timer accepts this entry even if it is full.
///
/// A future that is dropped leaves the line, and no element is lost: an element is taken only by the poll that returns it. A future that is
/// polled again after it returned an element waits for another element.
///
/// The first waiter in the line watches the head for all waiters. So a future that has been polled must be polled again when it is woken,
/// or be dropped. If it is kept without being polled, other waiters may wait for ever.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Next<'a, T> {
    wait: Wait<'a, T>,
    alarm: Option<Sleep>,
}

impl<'a, T> Next<'a, T> {
    pub(super) fn new(wait: Wait<'a, T>) -> Self {
        Self { wait, alarm: None }
    }

    /// The alarm of the future, set to the reading `at`. A future has one alarm at a time.
    fn alarm(&mut self, at: Monotonic) -> &mut Sleep {
        let timer = &self.wait.shared.timer;
        // The alarm is set by its reading: a delay would count from the present reading of the clock, which may be later.
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
                // The alarm has ended, so the future looks again. The next alarm is a new sleep.
                Poll::Ready(Ok(())) => self.alarm = None,
                // The timer is shut down and would not wake this waiter again.
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
