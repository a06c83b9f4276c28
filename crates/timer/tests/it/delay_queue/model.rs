//! Compares the queue with a sorted map from (deadline, number of the push) to value.

use std::collections::BTreeMap;
use std::task::Poll;
use std::time::Duration;

use proptest::prelude::*;
use tickwheel::{Clock, DelayHandle, Monotonic};

use super::by_hand::{ByHand, Hand};

#[derive(Clone, Debug)]
enum Step {
    Push(u64),
    PushAt(u64),
    Remove(usize),
    Reschedule(usize, u64),
    Advance(u64),
    TryTake,
    Poll,
    Next,
    Peek,
    Compact,
    Clear,
    Drain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let nanos = || 0..40_u64;
    let step = prop_oneof![
        8 => nanos().prop_map(Step::Push),
        2 => (0..200_u64).prop_map(Step::PushAt),
        3 => any::<usize>().prop_map(Step::Remove),
        4 => (any::<usize>(), nanos()).prop_map(|(index, delay)| Step::Reschedule(index, delay)),
        4 => nanos().prop_map(Step::Advance),
        4 => Just(Step::TryTake),
        2 => Just(Step::Poll),
        2 => Just(Step::Next),
        2 => Just(Step::Peek),
        1 => Just(Step::Compact),
        1 => prop_oneof![Just(Step::Clear), Just(Step::Drain)],
    ];
    prop::collection::vec(step, 0..200)
}

#[derive(Default)]
struct Model {
    pending: BTreeMap<(Monotonic, usize), usize>,
    /// The handles by number, which is also the value. Stale handles stay.
    handles: Vec<DelayHandle>,
}

impl Model {
    fn deadline(&self, number: usize) -> Option<Monotonic> {
        self.pending.keys().find(|key| key.1 == number).map(|key| key.0)
    }

    fn remove(&mut self, number: usize) -> Option<usize> {
        self.pending.remove(&(self.deadline(number)?, number))
    }

    fn take(&mut self, now: Monotonic) -> Option<usize> {
        let head = self.pending.first_entry().filter(|head| head.key().0 <= now)?;
        Some(head.remove())
    }
}

fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let by_hand = ByHand::new();
    let queue = &by_hand.queue;
    let mut model = Model::default();
    for step in steps {
        let now = by_hand.clock.now();
        let after = |nanos| now.saturating_add(Duration::from_nanos(nanos));
        // Picks among all handles that were ever returned.
        let pick = |index: usize, model: &Model| {
            let number = index.checked_rem(model.handles.len())?;
            Some((number, model.handles[number]))
        };
        match step {
            Step::Push(delay) => {
                let number = model.handles.len();
                model.handles.push(queue.push(number, Duration::from_nanos(delay)).expect("it is open"));
                model.pending.insert((after(delay), number), number);
            }
            Step::PushAt(at) => {
                let (number, at) = (model.handles.len(), Monotonic::from_nanos(at));
                model.handles.push(queue.push_at(number, at).expect("it is open"));
                model.pending.insert((at, number), number);
            }
            Step::Remove(index) => {
                if let Some((number, handle)) = pick(index, &model) {
                    prop_assert_eq!(queue.remove(handle), model.remove(number));
                }
            }
            Step::Reschedule(index, delay) => {
                if let Some((number, handle)) = pick(index, &model) {
                    let moved = model.remove(number).map(|_| after(delay));
                    prop_assert_eq!(queue.reschedule(handle, Duration::from_nanos(delay)), moved);
                    model.pending.extend(moved.map(|at| ((at, number), number)));
                }
            }
            Step::Advance(nanos) => {
                by_hand.clock.advance(Duration::from_nanos(nanos));
            }
            Step::TryTake => prop_assert_eq!(queue.try_take(), model.take(now)),
            Step::Poll => prop_assert_eq!(queue.poll(Duration::ZERO), model.take(now)),
            Step::Next => {
                let expected = match model.take(now) {
                    None if !model.pending.is_empty() => Poll::Pending,
                    taken => Poll::Ready(taken),
                };
                prop_assert_eq!(Hand::new(queue.next()).poll(), expected);
            }
            Step::Peek => {
                let head = model.pending.first_key_value().map(|(key, _)| (model.handles[key.1], key.0));
                prop_assert_eq!(queue.peek(), head);
            }
            Step::Compact => queue.compact(),
            Step::Clear => {
                queue.clear();
                model.pending.clear();
            }
            Step::Drain => {
                let all: Vec<_> = std::mem::take(&mut model.pending).into_values().collect();
                prop_assert_eq!(queue.drain(), all);
            }
        }
        prop_assert_eq!(queue.len(), model.pending.len());
        prop_assert_eq!(by_hand.timer.pending(), 0);
        for (number, &handle) in model.handles.iter().enumerate() {
            prop_assert_eq!(queue.deadline(handle), model.deadline(number));
        }
    }
    prop_assert_eq!(queue.close(), model.pending.into_values().collect::<Vec<_>>());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn d1_whatever_is_done_the_queue_does_as_the_model_does(steps in steps()) {
        run(steps)?;
    }
}
