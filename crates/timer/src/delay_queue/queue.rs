//! [`DelayQueue`]: elements that can be taken when their delay has passed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::closed::Closed;
use super::handle::DelayHandle;
use super::line::Wish;
use super::next::Next;
use super::park;
use super::shared::Shared;
use super::wait::Wait;
use crate::{Monotonic, Motion, Timer};

/// Elements that can be taken when their delay has passed, and not before.
///
/// A clone is cheap; all clones are one queue. Threads and futures may wait on one queue at the same time.
///
/// - [`push`](Self::push) and [`push_at`](Self::push_at) add an element and return its [`DelayHandle`].
/// - [`take`](Self::take), [`poll`](Self::poll) and [`try_take`](Self::try_take) take the next element: they wait without limit, for a
///   time, or not at all. [`wait_next`](Self::wait_next) and [`next`](Self::next) are futures. [`drain_due`](Self::drain_due) takes all
///   elements that are due.
/// - [`remove`](Self::remove), [`reschedule`](Self::reschedule) and [`deadline`](Self::deadline) take a handle; [`peek`](Self::peek)
///   returns the handle of the head.
/// - [`drain`](Self::drain), [`clear`](Self::clear), [`compact`](Self::compact) and [`close`](Self::close) concern all elements.
///
/// # Order
/// Elements are ordered by deadline, exact to the nanosecond. Elements with equal deadlines are in the order of their pushes; a reschedule
/// does not change the number of the push. Elements whose delay has passed stay in the queue until they are taken.
///
/// # Waiters
/// Waiters stand in a line in the order of their arrival. Only the first waiter waits for the deadline of the head. The other waiters sleep
/// without a limit, and move up when the first one leaves. This is the leader-follower pattern of the JDK's `DelayQueue`; here the leader
/// is the waiter that came first. The line is an order of waking and not a right: a caller that arrives when an element is due may take it
/// before the first waiter.
///
/// On a clock that runs by itself, a waiting thread wakes without the timer. The timer wakes futures, and on a clock that is moved by hand
/// also threads, at most one tick after the deadline. These waiters need the timer: once it is closed or shut down, they take what is due
/// and otherwise get `None` at once.
///
/// # Cost
/// An operation takes O(log n) for n elements, and one lock. The lock is not held while a waker or a clock runs, or while a value is
/// dropped. The memory grows and shrinks with the number of elements.
///
/// # What it is not
/// A delay queue is not durable: its elements are lost when the process ends. It is not a channel: it ends when [`close`](Self::close) is
/// called, and not when its producers are gone. It is not bounded: until it is closed, a push always succeeds.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use tickwheel::{DelayQueue, ManualClock, Timer};
///
/// let clock = ManualClock::new();
/// let timer = Timer::builder().clock(clock.clone()).build()?;
/// let queue = DelayQueue::new(&timer);
///
/// let retry = queue.push("retry", Duration::from_secs(30))?;
/// queue.push("ping", Duration::from_secs(10))?;
/// queue.push("pong", Duration::from_secs(10))?;
/// assert_eq!(queue.try_take(), None);
///
/// clock.advance(Duration::from_secs(10));
/// assert_eq!(queue.take(), Some("ping"));
///
/// // The retry is brought forward to now. It was pushed before the pong, which is due now, too.
/// queue.reschedule(retry, Duration::ZERO);
/// assert_eq!((queue.take(), queue.take()), (Some("retry"), Some("pong")));
/// assert_eq!(queue.remove(retry), None);
///
/// // The end.
/// queue.push("too late", Duration::from_secs(60))?;
/// assert_eq!(queue.close(), ["too late"]);
/// assert_eq!(queue.take(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DelayQueue<T> {
    shared: Arc<Shared<T>>,
}

impl<T> DelayQueue<T> {
    /// An empty queue on the clock of `timer`. The queue keeps `timer` alive, and `timer` wakes the queue's waiters.
    #[must_use]
    pub fn new(timer: &Timer) -> Self {
        Self { shared: Arc::new(Shared::new(timer.clone())) }
    }

    /// Adds `value`, which is due after `delay` and can be taken from then on; with a zero `delay` it is due at once. The call waits only
    /// for the lock.
    ///
    /// # Errors
    /// [`Closed`], with the value, if the queue is closed.
    pub fn push(&self, value: T, delay: Duration) -> Result<DelayHandle, Closed<T>> {
        self.push_at(value, self.shared.now().saturating_add(delay))
    }

    /// Adds `value`, which is due at the reading `at` of the timer's clock and can be taken from then on. If `at` is in the past, the
    /// element is due at once, before all elements with a later deadline. With [`Monotonic::MAX`] it is never due: it leaves the queue only
    /// by [`remove`](Self::remove), [`drain`](Self::drain), [`clear`](Self::clear) or [`close`](Self::close), or after a reschedule.
    ///
    /// # Errors
    /// [`Closed`], with the value, if the queue is closed.
    pub fn push_at(&self, value: T, at: Monotonic) -> Result<DelayHandle, Closed<T>> {
        self.shared.with(|state, called| {
            if state.closed {
                return Err(Closed(value));
            }
            Ok(state.change(called, |elements| elements.push(at, value)))
        })
    }

    /// Takes the next element, and blocks until an element is due. `None` once the queue is closed.
    ///
    /// This call blocks only its own thread. If this thread is the one that would advance a manual clock, the clock is never moved and the
    /// call never returns.
    pub fn take(&self) -> Option<T> {
        self.poll(Duration::MAX)
    }

    /// Takes the next element, and blocks for at most `wait`. With zero, takes an element that is due now, or returns `None` at once.
    /// `None` also if no element was due in time, and once the queue is closed. The name is the JDK's; async code uses
    /// [`next`](Self::next).
    pub fn poll(&self, wait: Duration) -> Option<T> {
        if let Some(taken) = self.try_take() {
            return Some(taken);
        }
        let limit = match wait {
            Duration::MAX => Monotonic::MAX,
            // A limited wait must end on this clock, so its limit is never `MAX`.
            wait => self.shared.now().saturating_add(wait).min(Monotonic::from_nanos(u64::MAX - 1)),
        };
        match self.shared.timer.motion() {
            Motion::Real => park::by_itself(self.wait(Wish { empty: false, first: false }, limit)),
            Motion::ByHand => park::by_timer(Next::new(self.wait(Wish { empty: false, first: true }, limit))),
        }
    }

    /// Takes the next element if it is due. Never waits.
    pub fn try_take(&self) -> Option<T> {
        let now = self.shared.now();
        self.shared.with(|state, called| state.change(called, |elements| elements.take_due(now)))
    }

    /// Takes the elements that are due now, in order, at most `max`, with one reading of the clock and one lock for all of them. Never
    /// waits. The order is that of [`try_take`](Self::try_take): by deadline, and for equal deadlines in the order of the pushes.
    ///
    /// Cost: O(k log n) for k elements taken of n, under the lock. `max` bounds how long other threads wait for the
    /// lock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{DelayQueue, ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let queue = DelayQueue::new(&Timer::builder().clock(clock.clone()).build()?);
    /// for (name, seconds) in [("c", 3), ("a", 1), ("b", 1), ("later", 9)] {
    ///     queue.push(name, Duration::from_secs(seconds))?;
    /// }
    /// clock.advance(Duration::from_secs(3));
    /// assert_eq!(queue.drain_due(2), ["a", "b"]);
    /// assert_eq!(queue.drain_due(usize::MAX), ["c"]);
    /// assert!(queue.drain_due(usize::MAX).is_empty());
    /// assert_eq!(queue.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "what was taken is dropped with this list"]
    pub fn drain_due(&self, max: usize) -> Vec<T> {
        let now = self.shared.now();
        self.shared.with(|state, called| state.change(called, |elements| elements.take_all_due(now, max)))
    }

    /// The next element, for use like a stream: `None` as soon as the queue is closed or empty, also if it becomes empty during the wait.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{DelayQueue, Timer};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// let timer = Timer::new()?;
    /// let (queue, start) = (DelayQueue::new(&timer), timer.now());
    /// queue.push_at("second", start.saturating_add(Duration::from_millis(2)))?;
    /// queue.push_at("first", start.saturating_add(Duration::from_millis(1)))?;
    /// let mut order = vec![];
    /// while let Some(next) = queue.next().await {
    ///     order.push(next);
    /// }
    /// assert_eq!(order, ["first", "second"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next(&self) -> Next<'_, T> {
        Next::new(self.wait(Wish { empty: true, first: true }, Monotonic::MAX))
    }

    /// The next element, also if it is pushed later than this call: an async [`take`](Self::take). `None` once the queue is closed.
    pub fn wait_next(&self) -> Next<'_, T> {
        Next::new(self.wait(Wish { empty: false, first: true }, Monotonic::MAX))
    }

    /// Removes an element, due or not, and returns its value. `None` if the handle is stale.
    pub fn remove(&self, handle: DelayHandle) -> Option<T> {
        self.shared.with(|state, called| state.change(called, |elements| elements.remove(handle)))
    }

    /// Moves an element, due or not, to `delay` from now, and returns its new deadline. `None` if the handle is stale. The handle does not
    /// change.
    pub fn reschedule(&self, handle: DelayHandle, delay: Duration) -> Option<Monotonic> {
        self.reschedule_at(handle, self.shared.now().saturating_add(delay))
    }

    /// Moves an element, due or not, to the reading `at`, and returns `at`. With [`Monotonic::MAX`] it is never due. `None` if the handle
    /// is stale.
    pub fn reschedule_at(&self, handle: DelayHandle, at: Monotonic) -> Option<Monotonic> {
        let moved = self
            .shared
            .with(|state, called| state.change(called, |elements| elements.reschedule(handle, at)));
        moved.then_some(at)
    }

    /// The deadline of an element. `None` if the handle is stale.
    #[must_use]
    pub fn deadline(&self, handle: DelayHandle) -> Option<Monotonic> {
        self.shared.with(|state, _| state.elements.deadline(handle))
    }

    /// The handle and the deadline of the next element, without taking it. An element that is due comes before one that is not. `None` if
    /// the queue is empty.
    ///
    /// The method does not return the value, because cloning it would run user code under the lock; [`remove`](Self::remove) takes the same
    /// element.
    #[must_use]
    pub fn peek(&self) -> Option<(DelayHandle, Monotonic)> {
        let head = self.shared.with(|state, _| state.elements.head_handle())?;
        Some((head, head.deadline))
    }

    /// The number of elements, due or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.with(|state, _| state.elements.len())
    }

    /// Whether the queue has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes all elements, due or not, in the order in which they would have been taken. The queue stays open.
    #[must_use = "to drop what is in the queue, clear it"]
    pub fn drain(&self) -> Vec<T> {
        let all = self.shared.with(|state, called| state.change(called, |elements| elements.take_all()));
        all.collect()
    }

    /// Drops all elements, due or not. The queue stays open.
    pub fn clear(&self) {
        drop(self.drain());
    }

    /// Packs the elements together, to free memory after many scattered removals: up to half of the memory of the elements. Handles do not
    /// change. O(n), under the lock.
    pub fn compact(&self) {
        self.shared.with(|state, _| state.elements.compact());
    }

    /// Closes the queue, and returns the remaining elements, due or not, in order. Present and later waiters get `None`. A second close
    /// returns nothing.
    #[must_use = "the elements that are left in the queue are dropped unless the caller keeps them"]
    pub fn close(&self) -> Vec<T> {
        let left = self.shared.with(|state, called| state.close(called));
        left.collect()
    }

    /// Whether the queue was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.with(|state, _| state.closed)
    }

    fn wait(&self, wish: Wish, limit: Monotonic) -> Wait<'_, T> {
        Wait::new(&self.shared, wish, limit)
    }
}

impl<T> Clone for DelayQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, closed) = self.shared.with(|state, _| (state.elements.len(), state.closed));
        f.debug_struct("DelayQueue").field("len", &len).field("closed", &closed).finish_non_exhaustive()
    }
}
