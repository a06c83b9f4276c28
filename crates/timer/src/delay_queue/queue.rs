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
/// Cheap to clone; all clones are one queue. Threads and futures may wait side by side.
///
/// - [`push`](Self::push) and [`push_at`](Self::push_at) add an element and return its [`DelayHandle`].
/// - [`take`](Self::take), [`poll`](Self::poll) and [`try_take`](Self::try_take) take the next one: without limit, for a while,
///   at once. [`wait_next`](Self::wait_next) and [`next`](Self::next) are awaited. [`drain_due`](Self::drain_due) takes all that are due.
/// - [`remove`](Self::remove), [`reschedule`](Self::reschedule) and [`deadline`](Self::deadline) go by the handle;
///   [`peek`](Self::peek) names the head.
/// - [`drain`](Self::drain), [`clear`](Self::clear), [`compact`](Self::compact) and [`close`](Self::close) concern all.
///
/// # Order
/// By deadline, to the nanosecond; equal deadlines first in, first out. A rescheduled element keeps its place among its equals.
/// Elements whose delay has passed stay in the queue until they are taken.
///
/// # Who waits
/// Waiters stand in line by their arrival. Only the first waits for the deadline of the head. The others sleep
/// without a limit, and move up when the first one leaves. This is the leader-follower pattern of the JDK's
/// `DelayQueue`; the leader here is the waiter that came first. The line is an order of waking, not a right: a caller
/// that arrives just when an element is due may take it.
///
/// On a clock that runs by itself a waiting thread wakes on its own. The timer wakes futures, and threads on a clock
/// that is moved by hand, up to one of its ticks after the deadline. They need the timer: once it is closed or shut
/// down, they take what is due and otherwise get `None` at once.
///
/// # Cost
/// O(log n) for n elements, and one lock. The lock is not held while a waker or a clock runs, or while a value is
/// dropped. Memory grows and shrinks with the number of elements.
///
/// # What it is not
/// Not durable: its elements die with the process. Not a channel: it does not end when its producers are gone, but
/// when [`close`](Self::close) is called. Not bounded: a push always succeeds until then.
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
    /// An empty queue on the clock of `timer`, which it keeps alive and which wakes its waiters.
    #[must_use]
    pub fn new(timer: &Timer) -> Self {
        Self { shared: Arc::new(Shared::new(timer.clone())) }
    }

    /// Adds `value`, which is due after `delay` and can be taken from then on; with a zero `delay` it is due at once. The
    /// call waits for nothing but the lock.
    ///
    /// # Errors
    /// [`Closed`], with the value, if the queue is closed.
    pub fn push(&self, value: T, delay: Duration) -> Result<DelayHandle, Closed<T>> {
        self.push_at(value, self.shared.now().saturating_add(delay))
    }

    /// Adds `value`, which is due at the instant `at` of the timer's clock and can be taken from then on. With an
    /// instant in the past it is due at once, before all elements with a later deadline. With [`Monotonic::MAX`] it is
    /// never due: it can be removed or rescheduled, or leaves with all others by [`drain`](Self::drain),
    /// [`clear`](Self::clear) or [`close`](Self::close).
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

    /// Takes the next element, and blocks until one is due. `None` once the queue is closed.
    ///
    /// A thread that waits here blocks only itself. If that thread is the one that would advance a manual clock,
    /// nothing moves the clock.
    pub fn take(&self) -> Option<T> {
        self.poll(Duration::MAX)
    }

    /// Takes the next element, and blocks for at most `wait`. Zero takes what is due now, or nothing. `None` also once the
    /// queue is closed. The name is the JDK's; async code wants [`next`](Self::next).
    pub fn poll(&self, wait: Duration) -> Option<T> {
        if let Some(taken) = self.try_take() {
            return Some(taken);
        }
        let limit = match wait {
            Duration::MAX => Monotonic::MAX,
            // A limited wait must end with the clock, so its deadline is never `MAX`.
            wait => self.shared.now().saturating_add(wait).min(Monotonic::from_nanos(u64::MAX - 1)),
        };
        match self.shared.timer.motion() {
            Motion::Real => park::by_itself(self.wait(Wish { empty: false, first: false }, limit)),
            Motion::ByHand => park::by_timer(Next::new(self.wait(Wish { empty: false, first: true }, limit))),
        }
    }

    /// Takes the next element if one is due. Never waits.
    pub fn try_take(&self) -> Option<T> {
        let now = self.shared.now();
        self.shared.with(|state, called| state.change(called, |elements| elements.take_due(now)))
    }

    /// Takes the elements that are due now, in order, and `max` at most, with one look at the clock and one lock for
    /// all of them. Never waits. The order is that of [`try_take`](Self::try_take): by deadline, and among equal
    /// deadlines the first push first.
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

    /// The next element, as the items of a stream: `None` as soon as the queue is closed or empty, also if it becomes
    /// empty while waiting.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{DelayQueue, Timer};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// let queue = DelayQueue::new(&Timer::new()?);
    /// queue.push("second", Duration::from_millis(2))?;
    /// queue.push("first", Duration::from_millis(1))?;
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

    /// The next element, also if it is yet to be pushed: the [`take`](Self::take) of a future. `None` once the queue is closed.
    pub fn wait_next(&self) -> Next<'_, T> {
        Next::new(self.wait(Wish { empty: false, first: true }, Monotonic::MAX))
    }

    /// Takes one element out, due or not. `None` if the handle is stale.
    pub fn remove(&self, handle: DelayHandle) -> Option<T> {
        self.shared.with(|state, called| state.change(called, |elements| elements.remove(handle)))
    }

    /// Moves an element, due or not, to `delay` from now, and returns its new deadline. `None` if the handle is stale. The
    /// handle stays as it is.
    pub fn reschedule(&self, handle: DelayHandle, delay: Duration) -> Option<Monotonic> {
        self.reschedule_at(handle, self.shared.now().saturating_add(delay))
    }

    /// Moves an element, due or not, to the instant `at`, and returns it. [`Monotonic::MAX`] is never. `None` if the handle is stale.
    pub fn reschedule_at(&self, handle: DelayHandle, at: Monotonic) -> Option<Monotonic> {
        let moved = self
            .shared
            .with(|state, called| state.change(called, |elements| elements.reschedule(handle, at)));
        moved.then_some(at)
    }

    /// When an element is due. `None` if the handle is stale.
    #[must_use]
    pub fn deadline(&self, handle: DelayHandle) -> Option<Monotonic> {
        self.shared.with(|state, _| state.elements.deadline(handle))
    }

    /// Handle and deadline of the next element, without taking it. Elements whose delay has passed come first. `None`
    /// if the queue is empty.
    ///
    /// The method does not show the value, since no user code may run under the lock; [`remove`](Self::remove) takes
    /// that very element.
    #[must_use]
    pub fn peek(&self) -> Option<(DelayHandle, Monotonic)> {
        let head = self.shared.with(|state, _| state.elements.head_handle())?;
        Some((head, head.deadline))
    }

    /// How many elements there are, due or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.with(|state, _| state.elements.len())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes all elements, due or not, in the order in which they would have come. The queue stays open.
    #[must_use = "to drop what is in the queue, clear it"]
    pub fn drain(&self) -> Vec<T> {
        let all = self.shared.with(|state, called| state.change(called, |elements| elements.take_all()));
        all.collect()
    }

    /// Drops all elements, due or not. The queue stays open.
    pub fn clear(&self) {
        drop(self.drain());
    }

    /// Packs the elements together, to give memory back after many scattered removals: up to half of what the
    /// elements take. Handles stay as they are. O(n), under the lock.
    pub fn compact(&self) {
        self.shared.with(|state, _| state.elements.compact());
    }

    /// Closes the queue, and returns the elements that are left, due or not, in order. Present and later waiters get
    /// `None`. Closing a closed queue returns nothing.
    #[must_use = "the elements that are left in the queue are dropped unless the caller keeps them"]
    pub fn close(&self) -> Vec<T> {
        let left = self.shared.with(|state, called| state.close(called));
        left.collect()
    }

    /// Whether it was closed.
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
