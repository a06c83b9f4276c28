//! [`Purgatory`]: operations that wait on keys, each for a condition or its timeout.

mod alarm;
mod completions;
mod delayed;
mod handover;
mod operation;
mod panics;
mod room;
mod state;
mod submission;
mod submitted;
mod waiting;
mod watchers;

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

pub use operation::Operation;
pub use submitted::{SubmitError, SubmitRefusal, Submitted};
pub use waiting::Waiting;

use crate::Timer;
use room::Room;
use submission::Submission;

/// Holds each [`Operation`] until its condition is true or its time is up, whichever comes first.
///
/// A request that cannot be answered yet should not block a thread. The caller submits it as an operation that can check its condition,
/// together with *keys*: the things that the condition depends on. Code that changes such a thing then checks its key, and this tries the
/// operations that wait on the key. The timeout ends operations whose condition does not become true. The idea and the name are Apache
/// Kafka's: a produce request waits in its purgatory for its replicas, a fetch for bytes, and the members of a group for each other.
///
/// # Families
/// - *Wait*: [`submit`](Self::submit).
/// - *Report a change*: [`check`](Self::check) a key; or [`Waiting::check`] one operation.
/// - *End without the condition*: [`Waiting::complete`], [`cancel_key`](Self::cancel_key), [`shutdown`](Self::shutdown).
/// - *Queries*: [`delayed`](Self::delayed), [`watched`](Self::watched).
///
/// # Guarantees
/// - `on_complete` runs exactly once, unless the operation is cancelled. If and only if the timeout or a shutdown ended the operation,
///   `on_expire` runs before it.
/// - Attempts at one operation never overlap with each other or with its end. No thread waits for another: a check during a running attempt
///   makes the running thread look again, and returns. So a caller may hold its own locks.
/// - Each call returns, however often other threads check: it looks once more, and leaves further looks to the executor of the timer. An
///   executor that runs jobs at once, such as [`Job::run`](crate::Job::run), looks on the thread of the caller, as long as the checks come.
/// - *Change, then check* is enough. If the condition of an operation is true when the check returns, the operation does not wait until its
///   timeout. This holds for operations that were submitted before the check, or at the same time. The operation completes on the thread
///   that checks, on the thread that was trying it at that time, or on the executor.
/// - An operation that has ended leaves all its keys at once, and a key on which no operation waits takes no memory.
/// - Operations on one key are tried in the order of their submission.
/// - Completions of one thread do not nest. If a completion ends further operations, by a check or in another way, they are told after it has
///   returned, in the order of their ends. So a chain of completions may have any length.
/// - No lock is held while a method of the operation runs. `Hash` and `Eq` of keys do run under a lock, so they must neither block nor call
///   the purgatory.
///
/// # Cost
/// For n operations on a key, `submit` and the end of an operation cost O(log n) for each key of the operation; `check` tries all n. Keys
/// are spread over 64 locks, which are held for short times only.
///
/// # Threads and panics
/// Attempts and completions run on the thread that submits or checks; expiries, and attempts that a call left, run on the executor of the
/// timer. If an operation panics, the panic passes through to that caller after all other operations were tried; on the executor it is caught
/// and counted. The operation then still waits, or is complete, as if the method had returned; a `try_complete` that panics counts as `false`.
///
/// # The end
/// Clones are the same purgatory. Dropping the last clone ends no operation: operations keep their timeouts and their [`Waiting`]. When a
/// timer is shut down, its operations expire: an operation expires when its timeout is dropped, by the timer or by the
/// [`Unfired`](crate::Unfired) that the shutdown returned.
///
/// # Example
/// A write to partitions 1 and 2 is answered when both are replicated. After 30 s it is answered with the list of missing partitions:
///
/// ```
/// use std::collections::BTreeSet;
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
/// use tickwheel::{Job, ManualClock, Operation, Purgatory, Submitted, Timer};
///
/// struct Write {
///     partitions: [u32; 2],
///     replicated: Arc<Mutex<BTreeSet<u32>>>,
///     answer: Mutex<Option<String>>,
/// }
///
/// impl Write {
///     fn missing(&self) -> Vec<u32> {
///         let replicated = self.replicated.lock().unwrap();
///         self.partitions.into_iter().filter(|partition| !replicated.contains(partition)).collect()
///     }
/// }
///
/// impl Operation for Write {
///     fn try_complete(&self) -> bool {
///         self.missing().is_empty()
///     }
///     fn on_complete(&self) {
///         let answer = match &self.missing()[..] {
///             [] => "written".to_owned(),
///             missing => format!("timed out on {missing:?}"),
///         };
///         *self.answer.lock().unwrap() = Some(answer);
///     }
/// }
///
/// let clock = ManualClock::new();
/// let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
/// let purgatory = Purgatory::new(&timer);
/// let replicated = Arc::new(Mutex::new(BTreeSet::new()));
/// let write = |partitions| {
///     Arc::new(Write { partitions, replicated: Arc::clone(&replicated), answer: Mutex::new(None) })
/// };
///
/// let (both, late) = (write([1, 2]), write([2, 3]));
/// for write in [&both, &late] {
///     let submitted = purgatory.submit(Arc::clone(write), write.partitions, Duration::from_secs(30))?;
///     assert!(matches!(submitted, Submitted::Waiting(_)));
/// }
/// assert_eq!((purgatory.delayed(), purgatory.watched()), (2, 4));
///
/// // Change, then check.
/// replicated.lock().unwrap().insert(1);
/// assert_eq!(purgatory.check(&1), 0);
/// replicated.lock().unwrap().insert(2);
/// assert_eq!(purgatory.check(&2), 1);
/// assert_eq!(both.answer.lock().unwrap().as_deref(), Some("written"));
///
/// clock.advance(Duration::from_secs(30));
/// assert_eq!(late.answer.lock().unwrap().as_deref(), Some("timed out on [3]"));
/// assert_eq!((purgatory.delayed(), purgatory.watched()), (0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Purgatory<K, O> {
    room: Arc<Room<K, O>>,
}

impl<K, O> Purgatory<K, O>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    O: Operation,
{
    /// An empty purgatory whose timeouts are in `timer`. The purgatory keeps `timer` alive.
    #[must_use]
    pub fn new(timer: &Timer) -> Self {
        Self { room: Arc::new(Room::new(timer.clone())) }
    }

    /// Completes an operation if its condition is true (within a completion, `on_complete` runs after that one), and otherwise lets it wait on `keys` for at most `timeout`.
    ///
    /// The call checks the condition, puts the operation on its keys, checks the condition again, and sets the timeout. So a condition that
    /// becomes true meanwhile is not missed if its key is checked after the change. A key that is given twice counts once. Submit each
    /// operation only once: two submissions of one operation would try it at the same time.
    ///
    /// The timeout is never early; with zero, the operation expires as soon as the timer can do it.
    ///
    /// # Errors
    /// Gives the operation back, without calling its `on_` methods: [`NoKeys`](SubmitRefusal::NoKeys) if there is no key,
    /// [`Full`](SubmitRefusal::Full) or [`ShutDown`](SubmitRefusal::ShutDown) if the timer refuses the timeout; `ShutDown` also after
    /// [`shutdown`](Self::shutdown).
    ///
    /// # Panics
    /// If the operation panics. It is then withdrawn as if it had not been submitted, unless it is complete already.
    pub fn submit(
        &self,
        operation: Arc<O>,
        keys: impl IntoIterator<Item = K>,
        timeout: Duration,
    ) -> Result<Submitted<O>, SubmitError<O>> {
        Submission::submit(&self.room, operation, keys.into_iter().collect(), timeout)
    }

    /// Tries the operations that wait on a key, in the order of their submission, and returns how many this call
    /// completed.
    ///
    /// If another thread is trying an operation at this time, this call does not wait for it: that thread looks again, and counts the
    /// completion. If that thread leaves the look to the executor, no call counts the completion. Operations that are submitted after the check began are not tried, because their submission checks the condition itself.
    ///
    /// # Panics
    /// If an operation panics. The first panic is passed on after all operations have been tried.
    pub fn check<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.room.check(key)
    }

    /// Removes the operations that wait on a key, also from their other keys and from the timer, and returns them in the order of their
    /// submission. None of their methods is called after that; the result of a running attempt is ignored.
    ///
    /// An operation whose end was decided before this call is not returned.
    pub fn cancel_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Vec<Arc<O>>
    where
        K: Borrow<Q>,
    {
        self.room.cancel_key(key)
    }

    /// The number of operations that wait. O(1).
    #[must_use]
    pub fn delayed(&self) -> usize {
        self.room.delayed()
    }

    /// The sum of the numbers of keys of all operations that wait. O(1).
    #[must_use]
    pub fn watched(&self) -> usize {
        self.room.watched()
    }

    /// Expires every operation as if its timeout had passed, in the order of their submission, and refuses later submissions. Returns how
    /// many operations this call expired. If another thread is trying an operation at this time, that thread expires it.
    ///
    /// A submission at the same time is either refused or expired. The timer goes on, because other code may use it.
    ///
    /// # Panics
    /// If an operation panics. The first panic is passed on after all operations have been expired.
    pub fn shutdown(&self) -> usize {
        self.room.shut_down()
    }
}

impl<K, O> Clone for Purgatory<K, O> {
    fn clone(&self) -> Self {
        Self { room: Arc::clone(&self.room) }
    }
}

impl<K, O> fmt::Debug for Purgatory<K, O>
where
    K: Hash + Eq + Send + Sync + 'static,
    O: Operation,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Purgatory")
            .field("delayed", &self.room.delayed())
            .field("watched", &self.room.watched())
            .field("is_shut_down", &self.room.is_closed())
            .finish_non_exhaustive()
    }
}
