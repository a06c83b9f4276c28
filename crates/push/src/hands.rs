//! [`Hands`]: the tasks in hand for one queue, for people that ask why a task waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tickwheel_queue::{Group, Key};
use tokio::time::Instant;

use crate::dispatch::{Dispatcher, InHand};

/// The dispatcher of a runner, which others may look at between two of its steps.
#[derive(Clone, Debug)]
pub(crate) struct SharedDispatcher {
    dispatcher: Arc<Mutex<Dispatcher>>,
    /// The zero of the dispatcher's clock.
    pub(crate) began: Instant,
}

impl SharedDispatcher {
    pub(crate) fn new(dispatcher: Dispatcher) -> Self {
        Self { dispatcher: Arc::new(Mutex::new(dispatcher)), began: Instant::now() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Dispatcher> {
        // A runner whose dispatcher panicked has ended, and its last state may be shown.
        self.dispatcher.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tasks in hand for one queue. When its target is changed, the old dispatcher settles its messages before the new one begins, so
/// there may be two.
#[derive(Debug, Default)]
pub struct Hands {
    dispatchers: Mutex<Vec<(Weak<Mutex<Dispatcher>>, Instant)>>,
}

/// A task in hand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hand {
    /// The id of the task.
    pub id: u64,
    /// The key of the task.
    pub key: Key,
    /// The number of the attempt that is under way, or of the last one, as the receiver is told it. If no attempt has begun: the number of the
    /// first one.
    pub attempt: u32,
    /// The state of the task.
    pub state: HandState,
}

/// The state of a task in hand.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HandState {
    /// No attempt has begun. The end of the task before it in its order is not durable yet.
    New,
    /// An attempt is under way.
    Sending {
        /// When the attempt began.
        since: Instant,
        /// The end of the target's time-out.
        until: Instant,
    },
    /// The last attempt failed.
    Failed {
        /// When the next attempt is due. It comes later if the target takes no message then.
        next: Instant,
    },
}

impl Hands {
    /// Adds the tasks of one more dispatcher, until it is dropped.
    pub(crate) fn add(&self, shared: &SharedDispatcher) {
        let mut dispatchers = self.dispatchers();
        dispatchers.retain(|(dispatcher, _)| dispatcher.strong_count() > 0);
        dispatchers.push((Arc::downgrade(&shared.dispatcher), shared.began));
    }

    /// Returns the task with this id, if it is in hand.
    #[must_use]
    pub fn task(&self, id: u64) -> Option<Hand> {
        self.find(|dispatcher| dispatcher.task_in_hand(id))
    }

    /// Returns the task in hand behind which the tasks of this group wait in the order of the target; `None`: there is none, or the tasks have
    /// no order.
    #[must_use]
    pub fn head_of(&self, group: Option<&Group>) -> Option<Hand> {
        self.find(|dispatcher| dispatcher.head_of(group))
    }

    fn find(&self, find: impl Fn(&Dispatcher) -> Option<&InHand>) -> Option<Hand> {
        let found = |(dispatcher, began): &(Weak<Mutex<Dispatcher>>, Instant)| {
            let shared = SharedDispatcher { dispatcher: dispatcher.upgrade()?, began: *began };
            let dispatcher = shared.lock();
            find(&dispatcher).map(|in_hand| Hand::of(in_hand, *began, dispatcher.timeout_ms()))
        };
        self.dispatchers().iter().find_map(found)
    }

    fn dispatchers(&self) -> MutexGuard<'_, Vec<(Weak<Mutex<Dispatcher>>, Instant)>> {
        self.dispatchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hand {
    fn of(in_hand: &InHand, began: Instant, timeout_ms: u64) -> Self {
        let at = |ms| began + Duration::from_millis(ms);
        let state = match in_hand.retry_at_ms {
            Some(_) if in_hand.is_behind => HandState::New,
            Some(next) => HandState::Failed { next: at(next) },
            None => HandState::Sending {
                since: at(in_hand.sent_at_ms),
                until: at(in_hand.sent_at_ms.saturating_add(timeout_ms)),
            },
        };
        let leased = &in_hand.leased;
        Self { id: leased.id, key: leased.key.clone(), attempt: in_hand.attempt(), state }
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_queue::{Backoff, Lease, Leased, Put, Queue, QueueName, Retry, TokenAnswer};

    use super::*;
    use crate::Outcome;
    use crate::dispatch::{Effect, Order, Plan, SendNo};

    /// Two tasks of a group and one of none, each of which was just leased.
    fn leased() -> Vec<Leased> {
        let queue = Queue::options().virtual_clock().open_memory().expect("open");
        let name = QueueName::new("q").expect("a name");
        for (key, group) in [("a", Some("g")), ("b", Some("g")), ("c", None)] {
            let mut put = Put::new(&name, Key::new(key).expect("a key"));
            let backoff = Backoff { doubles: false, base_ms: 700, max_ms: 700, jitter_percent: 0 };
            put.terms.retry = Some(Retry { max_attempts: None, backoff: Some(backoff) });
            put.terms.group = group.map(|group| Group::new(group).expect("a group"));
            queue.put(put).wait().expect("put");
        }
        queue.lease(Lease::new(&name).max(3), Duration::ZERO).wait().expect("a lease")
    }

    fn dispatcher(order: Order) -> SharedDispatcher {
        SharedDispatcher::new(Dispatcher::new(Plan { order, timeout_ms: 5_000, ..Plan::default() }))
    }

    fn number(effects: &[Effect]) -> SendNo {
        let number = effects.iter().find_map(|effect| match effect {
            Effect::Send(sending) => Some(sending.no),
            _ => None,
        });
        number.expect("a message is sent")
    }

    #[test]
    fn a_task_in_hand_tells_its_attempt_and_its_times() {
        let (hands, shared, tasks) = (Hands::default(), dispatcher(Order::Group), leased());
        hands.add(&shared);
        let (task, at) = (&tasks[0], |ms| shared.began + Duration::from_millis(ms));
        assert_eq!(hands.task(task.id), None);
        shared.lock().pass_time(0);
        let no = number(&shared.lock().leased(1_000, vec![task.clone()]));
        let sending = HandState::Sending { since: at(1_000), until: at(6_000) };
        let expected = Hand { id: task.id, key: task.key.clone(), attempt: 1, state: sending };
        assert_eq!(hands.task(task.id), Some(expected.clone()));
        shared.lock().sent(2_000, no, &Outcome::task_failed("no"));
        let state = HandState::Failed { next: at(2_700) };
        assert_eq!(hands.task(task.id), Some(Hand { state, ..expected.clone() }));
        // The lease is looked after first.
        shared.lock().pass_time(2_700);
        shared.lock().extended(2_700, no, TokenAnswer::Extended);
        let state = HandState::Sending { since: at(2_700), until: at(7_700) };
        assert_eq!(hands.task(task.id), Some(Hand { attempt: 2, state, ..expected }));
        drop(shared);
        assert_eq!(hands.task(task.id), None, "the runner has ended");
    }

    #[test]
    fn the_head_of_an_order_is_a_task_of_the_same_group_or_of_the_queue() {
        for (order, of_group, of_none) in
            [(Order::None, None, None), (Order::Group, Some("a"), None), (Order::Queue, Some("a"), Some("a"))]
        {
            let (hands, shared, tasks) = (Hands::default(), dispatcher(order), leased());
            hands.add(&shared);
            shared.lock().pass_time(0);
            shared.lock().leased(0, vec![tasks[0].clone()]);
            let head_of = |group| hands.head_of(group).map(|head| head.key.as_str().to_owned());
            assert_eq!(head_of(tasks[1].group.as_ref()).as_deref(), of_group, "{order:?}");
            assert_eq!(head_of(None).as_deref(), of_none, "{order:?}");
            assert_eq!(head_of(Group::new("other").ok().as_ref()).as_deref(), of_none, "{order:?}");
        }
    }

    #[test]
    fn a_task_that_waits_for_the_end_of_another_has_no_attempt() {
        let (hands, shared, tasks) = (Hands::default(), dispatcher(Order::Queue), leased());
        let old = dispatcher(Order::Queue);
        hands.add(&old);
        hands.add(&shared);
        shared.lock().pass_time(0);
        let no = number(&shared.lock().leased(0, vec![tasks[0].clone()]));
        shared.lock().sent(0, no, &Outcome::Delivered);
        assert_eq!(hands.task(tasks[0].id), None, "it was delivered");
        shared.lock().leased(0, vec![tasks[1].clone()]);
        assert_eq!(hands.task(tasks[1].id).map(|hand| (hand.attempt, hand.state)), Some((1, HandState::New)));
    }
}
