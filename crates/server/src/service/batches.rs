//! The open batches: which callers may open one more, and which batch gives up its permit.
//!
//! All batches together have a number of permits, and each caller has a share of them. A caller that finds no permit
//! waits a moment. Meanwhile a batch that sends too little gives its permit to a waiting call.
//!
//! Ground rules: `State` is read and written under its lock only. Permits are handed over under the lock. A permit that
//! no waiter takes is dropped outside of the lock, because its drop takes the lock again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_api::Problem;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout};

use crate::access::producer::Producer;

/// The number of bytes that a batch must send in each [`PACE_TIME`] while the server waits for it: 1 KiB a second.
pub(crate) const PACE_BYTES: usize = 5 << 10;
/// The time over which the pace is measured; a client with a short pause is not slow.
pub(crate) const PACE_TIME: Duration = Duration::from_secs(5);
/// The longest wait for a permit: longer than [`PACE_TIME`], after which a silent batch is known to be slow.
const WAIT_MAX: Duration = Duration::from_secs(6);
/// The largest number of waiting callers; each change of a permit looks at all of them.
const WAITING_MAX: usize = 256;
/// The largest number of waiting calls of one producer, so that it cannot fill the line.
const WAITING_OF_ONE_MAX: usize = WAITING_MAX / 4;

/// The permits of all batches. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Batches(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    share_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: BTreeMap<u64, Open>,
    /// Waiting callers, in the order of their arrival.
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
}

#[derive(Debug)]
struct Open {
    producer: Producer,
    /// The batch sent too little in its last [`PACE_TIME`].
    slow: bool,
    /// The batch was told to give up its permit.
    leaves: bool,
    leave: Arc<Notify>,
}

#[derive(Debug)]
struct Waiting {
    producer: Producer,
    permit: oneshot::Sender<BatchPermit>,
}

/// The permit of an open batch. Dropping it frees the permit.
#[derive(Debug)]
pub(crate) struct BatchPermit {
    id: u64,
    leave: Arc<Notify>,
    batches: Batches,
}

impl Batches {
    /// Makes `max` permits, of which one producer has at most `share_max`.
    pub(crate) fn new(max: usize, share_max: usize) -> Self {
        Self(Arc::new(Shared { max, share_max, state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit for one more batch; waits a moment for it.
    ///
    /// # Errors
    /// 429, which names the limit.
    pub(crate) async fn enter(&self, producer: Producer) -> Result<BatchPermit, Problem> {
        let (permit, granted) = oneshot::channel();
        let id = {
            let mut state = self.state();
            if !self.has_room(&state, producer) && self.is_line_full(&state, producer) {
                return Err(self.refusal(&state, producer));
            }
            let id = state.next();
            state.waiting.insert(id, Waiting { producer, permit });
            id
        };
        // A caller that leaves stops waiting.
        let _waits = Waits { id, batches: self };
        self.settle();
        match timeout(WAIT_MAX, granted).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => unreachable!("who waits is there until it is given something or leaves"),
            Err(_) => Err(self.refusal(&self.state(), producer)),
        }
    }

    fn refusal(&self, state: &State, producer: Producer) -> Problem {
        let Shared { max, share_max, .. } = *self.0;
        let what = if self.is_at_share(state, producer) {
            format!("the caller has {share_max} open batches, which is its limit (--max-batches-per-caller)")
        } else {
            format!("the server has {max} open batches, which is its limit (--max-batches)")
        };
        Problem::busy(what, 1).with_hint("try again later, or put more lines into each batch")
    }

    fn is_at_share(&self, state: &State, producer: Producer) -> bool {
        producer.has_share() && state.count(|open| open.producer == producer) >= self.0.share_max
    }

    /// Whether there is a free permit that this producer may have. No waiter could take it, or it would be taken
    /// already.
    fn has_room(&self, state: &State, producer: Producer) -> bool {
        state.open.len() < self.0.max && !self.is_at_share(state, producer)
    }

    /// Whether a further call of this producer is refused at once, without a wait.
    fn is_line_full(&self, state: &State, producer: Producer) -> bool {
        let of_one = || state.waiting.values().filter(|one| one.producer == producer).count();
        state.waiting.len() >= WAITING_MAX || producer.has_share() && of_one() >= WAITING_OF_ONE_MAX
    }

    /// Gives free permits to waiting callers, and tells slow batches to give up theirs.
    fn settle(&self) {
        // The list is dropped after the lock is released.
        let mut untaken = Vec::new();
        let mut state = self.state();
        let waiting: Vec<(u64, Producer)> =
            state.waiting.iter().map(|(id, one)| (*id, one.producer)).collect();
        // The number of batches that were told to give up their permits. Each does so for one waiting caller.
        let mut leaving: Vec<(u64, Producer)> = state
            .open
            .iter()
            .filter(|(_, open)| open.leaves)
            .map(|(id, open)| (*id, open.producer))
            .collect();
        for (waiter, producer) in waiting {
            let at_share = self.is_at_share(&state, producer);
            if self.has_room(&state, producer) {
                untaken.extend(self.grant(&mut state, waiter, producer));
                continue;
            }
            let helps = |other: Producer| !at_share || other == producer;
            if let Some(at) = leaving.iter().position(|(_, other)| helps(*other)) {
                leaving.swap_remove(at);
                continue;
            }
            let slow = state.open.values_mut().find(|open| open.slow && !open.leaves && helps(open.producer));
            if let Some(slow) = slow {
                slow.leaves = true;
                slow.leave.notify_one();
            }
        }
        drop(state);
        drop(untaken);
    }

    /// Gives a permit to a waiter. Returns the permit if the waiter is gone.
    fn grant(&self, state: &mut State, waiter: u64, producer: Producer) -> Option<BatchPermit> {
        let waiting = state.waiting.remove(&waiter)?;
        let (id, leave) = (state.next(), Arc::new(Notify::new()));
        let permit = BatchPermit { id, leave: Arc::clone(&leave), batches: self.clone() };
        state.open.insert(id, Open { producer, slow: false, leaves: false, leave });
        waiting.permit.send(permit).err()
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn count(&self, is_one: impl Fn(&Open) -> bool) -> usize {
        self.open.values().filter(|open| is_one(open)).count()
    }
}

/// A waiting call. Dropping it ends the wait.
struct Waits<'a> {
    id: u64,
    batches: &'a Batches,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        drop(self.batches.state().waiting.remove(&self.id));
    }
}

impl BatchPermit {
    /// Notes whether the batch was slow in its last [`PACE_TIME`].
    pub(crate) fn paced(&self, slow: bool) {
        let changed = {
            let mut state = self.batches.state();
            let open = state.open.get_mut(&self.id).expect("it is open until this is dropped");
            std::mem::replace(&mut open.slow, slow) != slow
        };
        if changed && slow {
            self.batches.settle();
        }
    }

    /// The signal that the batch must give up its permit.
    pub(crate) fn leave(&self) -> Arc<Notify> {
        Arc::clone(&self.leave)
    }
}

impl Drop for BatchPermit {
    fn drop(&mut self) {
        drop(self.batches.state().open.remove(&self.id));
        self.batches.settle();
    }
}

/// Measures how much a batch sends while the server waits for it.
#[derive(Debug)]
pub(crate) struct Pace {
    since: Instant,
    bytes: usize,
}

impl Pace {
    /// Begins to measure a body of which `bytes` were read.
    pub(crate) fn from(bytes: usize) -> Self {
        Self { since: Instant::now(), bytes }
    }

    /// Leaves out a time in which the server did not wait for the client.
    pub(crate) fn put_off(&mut self, by: Duration) {
        self.since += by;
    }

    /// When the next measurement ends.
    pub(crate) fn ends(&self) -> Instant {
        self.since + PACE_TIME
    }

    /// Whether the body, of which `bytes` are read now, came too slowly. Begins the next measurement.
    pub(crate) fn is_slow(&mut self, bytes: usize) -> bool {
        let slow = bytes.saturating_sub(self.bytes) < PACE_BYTES;
        *self = Self::from(bytes);
        slow
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};

    use tokio::time::sleep;

    use super::*;

    const A: Producer = Producer::Token([1; 32]);
    const B: Producer = Producer::Token([2; 32]);

    async fn permits(batches: &Batches, producer: Producer, count: usize) -> Vec<BatchPermit> {
        let mut permits = Vec::new();
        for _ in 0..count {
            permits.push(batches.enter(producer).await.expect("a free permit"));
        }
        permits
    }

    async fn refused(batches: &Batches, producer: Producer) -> String {
        let begun = Instant::now();
        let problem = batches.enter(producer).await.expect_err("no free permit");
        assert_eq!((problem.status, problem.retry_after_s, begun.elapsed()), (429, Some(1), WAIT_MAX));
        problem.detail.to_string()
    }

    /// A call that waits.
    async fn waits(
        batches: &Batches,
        producer: Producer,
    ) -> Pin<Box<dyn Future<Output = Result<BatchPermit, Problem>> + '_>> {
        let mut waiting: Pin<Box<dyn Future<Output = _>>> = Box::pin(batches.enter(producer));
        assert!(timeout(Duration::ZERO, &mut waiting).await.is_err(), "it did not wait");
        waiting
    }

    async fn is_refused_at_once(batches: &Batches, producer: Producer) -> bool {
        let refused = timeout(Duration::ZERO, batches.enter(producer)).await;
        refused.is_ok_and(|refused| refused.is_err_and(|problem| problem.status == 429))
    }

    async fn is_told_to_leave(permit: &BatchPermit) -> bool {
        timeout(Duration::ZERO, permit.leave().notified()).await.is_ok()
    }

    /// The result of a future that is polled once and then left alone for `wait`.
    async fn after<T>(waiting: impl Future<Output = T>, wait: Duration, then: impl FnOnce()) -> T {
        let mut waiting = pin!(waiting);
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("it did not wait"),
            () = sleep(wait) => then(),
        }
        waiting.await
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_has_its_share_and_others_the_rest() {
        let batches = Batches::new(3, 2);
        let mut held = permits(&batches, A, 2).await;
        assert!(
            refused(&batches, A)
                .await
                .contains("2 open batches, which is its limit (--max-batches-per-caller)")
        );
        let other = permits(&batches, B, 1).await;
        assert!(refused(&batches, B).await.contains("3 open batches, which is its limit (--max-batches)"));
        let first = held.pop().expect("two");
        let next = after(batches.enter(A), Duration::from_secs(1), || drop(first)).await;
        assert!(next.is_ok(), "its own permit is free again");
        drop((held, other, next));
        assert!(batches.state().open.is_empty() && batches.state().waiting.is_empty());
    }

    /// All clients of a proxy on this computer have one address.
    #[tokio::test(start_paused = true)]
    async fn callers_of_this_machine_share_all_places() {
        let batches = Batches::new(3, 1);
        let from = |address: &str| Producer::new(None, Some(address.parse().expect("an address")));
        let _held = permits(&batches, from("127.0.0.1"), 2).await;
        let _other = permits(&batches, Producer::new(None, None), 1).await;
        assert!(refused(&batches, from("::1")).await.contains("--max-batches)"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_batch_makes_way_for_a_waiting_one() {
        let batches = Batches::new(2, 2);
        let mut held = permits(&batches, A, 2).await;
        held[0].paced(true);
        assert!(!is_told_to_leave(&held[0]).await, "nobody waits");
        held[0].paced(false);
        assert!(timeout(Duration::from_secs(1), batches.enter(B)).await.is_err());
        held[1].paced(true);
        assert!(!is_told_to_leave(&held[1]).await, "the one that waited has left");
        let slow = held.pop().expect("two");
        let mut waiting = pin!(batches.enter(B));
        assert!(timeout(Duration::from_secs(1), &mut waiting).await.is_err());
        assert!(is_told_to_leave(&slow).await && !is_told_to_leave(&held[0]).await);
        drop(slow);
        let permit = waiting.await.expect("its permit");
        assert!(!is_told_to_leave(&permit).await);
    }

    #[tokio::test(start_paused = true)]
    async fn for_a_caller_with_its_share_only_its_own_slow_batch_makes_way() {
        let batches = Batches::new(4, 1);
        let (own, other) = (permits(&batches, A, 1).await, permits(&batches, B, 1).await);
        other[0].paced(true);
        assert!(timeout(Duration::from_secs(1), batches.enter(A)).await.is_err());
        assert!(!is_told_to_leave(&other[0]).await, "that would not help");
        own[0].paced(true);
        assert!(timeout(Duration::from_secs(1), batches.enter(A)).await.is_err());
        assert!(is_told_to_leave(&own[0]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_comes_too_late_goes_on_to_the_next() {
        let batches = Batches::new(1, 1);
        let held = permits(&batches, A, 1).await;
        let mut first = Box::pin(batches.enter(B));
        assert!(timeout(Duration::from_secs(1), &mut first).await.is_err());
        drop(held);
        // The call got its permit and leaves without using it.
        drop(first);
        assert!(batches.enter(A).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_waiting_calls_is_limited() {
        let batches = Batches::new(1, 1);
        let _held = permits(&batches, Producer::Local, 1).await;
        let mut waiting = Vec::new();
        for _ in 0..WAITING_MAX {
            waiting.push(waits(&batches, Producer::Local).await);
        }
        assert!(is_refused_at_once(&batches, Producer::Local).await);
        assert!(is_refused_at_once(&batches, A).await);
    }

    /// A bug that was found: one producer had its full share of batches and 256 waiting calls. All other callers were
    /// refused, although most permits were free.
    #[tokio::test(start_paused = true)]
    async fn many_waiting_calls_of_one_caller_do_not_block_others() {
        let batches = Batches::new(5, 1);
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        for token in 10..14 {
            let producer = Producer::Token([token; 32]);
            held.extend(permits(&batches, producer, 1).await);
            for _ in 0..WAITING_OF_ONE_MAX {
                waiting.push(waits(&batches, producer).await);
            }
            assert!(is_refused_at_once(&batches, producer).await, "it has its share of the line, too");
        }
        assert_eq!(batches.state().waiting.len(), WAITING_MAX);
        let free = timeout(Duration::ZERO, batches.enter(B)).await.expect("it need not wait");
        assert!(free.is_ok(), "there is a free permit");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pace_is_measured_over_five_seconds() {
        let mut pace = Pace::from(100);
        assert_eq!(pace.ends(), Instant::now() + PACE_TIME);
        assert!(!pace.is_slow(100 + PACE_BYTES));
        assert!(pace.is_slow(100 + PACE_BYTES + PACE_BYTES - 1));
        pace.put_off(Duration::from_secs(3));
        assert_eq!(pace.ends(), Instant::now() + PACE_TIME + Duration::from_secs(3));
    }
}
