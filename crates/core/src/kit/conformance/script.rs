//! Scripts: sequences of operations, replayed on a queue and on the model.
//!
//! Make [`Step`]s with a generator (proptest, a fuzzer, a loop) and give them to [`replay`].

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;

use super::book::{Book, Tracked};
use super::family::{Catch, Family};
use crate::{Handle, Model, Refusal, RescheduleError, TimerQueue};

/// A tick relative to now, so that scripts test the ticks at which errors are likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Ticks after now.
    Ahead(u64),
    /// Ticks before now.
    Behind(u64),
    /// The next multiple of 2^`bits` after now, plus `off` ticks.
    Edge {
        /// The logarithm of the slot's size, below 64.
        bits: u32,
        /// The distance from the multiple (ticks), from -128 to 127.
        off: i8,
    },
    /// A tick in a slot of 2^`bits` ticks: the slot is `slots` slots after the slot of now, and the tick is `ticks` ticks after the slot's
    /// begin.
    Slot {
        /// The logarithm of the slot's size, below 64.
        bits: u32,
        /// The number of slots after the slot of now.
        slots: u64,
        /// The number of ticks after the begin of the slot.
        ticks: u64,
    },
    /// A tick by its number.
    At(u64),
}

impl Aim {
    /// The tick of this aim at the time `now`. A tick beyond an end of time is set to that end.
    fn tick(self, now: u64) -> u64 {
        match self {
            Self::Ahead(ticks) => now.saturating_add(ticks),
            Self::Behind(ticks) => now.saturating_sub(ticks),
            Self::Edge { bits, off } => {
                let size = 1_u64 << (bits % 64);
                let edge = (now & !(size - 1)).saturating_add(size);
                edge.saturating_add_signed(i64::from(off))
            }
            Self::Slot { bits, slots, ticks } => {
                let size = 1_u64 << (bits % 64);
                (now & !(size - 1)).saturating_add(slots.saturating_mul(size)).saturating_add(ticks)
            }
            Self::At(tick) => tick,
        }
    }
}

/// One operation of a script. `pick` chooses among all handles of the script, including stale ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Insert a new value.
    Insert(Aim),
    /// Insert a new value with the deadline of a pending entry.
    InsertBeside(usize),
    /// Cancel the entry of a handle.
    Cancel(usize),
    /// Reschedule the entry of a handle.
    Reschedule(usize, Aim),
    /// Reschedule an entry to the deadline of another entry.
    RescheduleBeside(usize, usize),
    /// Advance, or try to advance to an earlier time.
    Advance(Aim),
    /// Advance, with a `fire` that panics at the value after this number of values.
    Panic(Aim, usize),
    /// Advance to the `next_wake` of the queue.
    Follow,
}

/// The message of the panics that [`Step::Panic`] causes, so that a panic hook can suppress it.
pub const ON_PURPOSE: &str = "a body fails, on purpose";

/// Whether the payload of a panic is [`ON_PURPOSE`]. Any other panic is an error of the queue and must not be caught.
#[must_use]
pub fn is_on_purpose(payload: &(dyn Any + Send)) -> bool {
    // The payload of a panic with a formatted message is a `String`.
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)) == Some(ON_PURPOSE)
}

/// The values that a queue handed out during an advance, and whether `fire` panicked at the last one.
type HandedOut = (Vec<(u64, usize)>, bool);

/// One accepted insertion: the handles of the queue and of the model, and the number of the value.
#[derive(Clone, Copy)]
struct Claim {
    queue: Handle,
    model: Handle,
    id: usize,
}

/// The queue under test, the model, and a claim for every accepted insertion.
///
/// The queue holds values that record their drop; the model holds the numbers of these values.
struct Replay<F: Family> {
    queue: F::Queue<Tracked>,
    model: Model<usize>,
    claims: Vec<Claim>,
    book: Book,
    /// The number of cancels, reschedules and panics so far. Each of them may cause one extra stop.
    changes: usize,
    catch: Catch,
}

/// Replays a script from `start` on a queue and on the [`Model`], and panics at the first difference: in an answer, in what fires or its
/// order, in `len`, `now` or `deadline`, or in the drops; also if `next_wake` breaks its law. At the end all pending entries fire, with
/// stops at each `next_wake`. `catch` catches the panics that the script itself causes.
pub fn replay<F: Family>(start: u64, script: &[Step], catch: Catch) {
    let mut replay = Replay::<F> {
        queue: F::start(start),
        model: Model::new(start),
        claims: vec![],
        book: Book::new(),
        changes: 0,
        catch,
    };
    for (index, &step) in script.iter().enumerate() {
        replay.step(step);
        replay.compare();
        // There may be many claims, so they are all checked only after every 16th step.
        if index % 16 == 0 {
            replay.compare_claims();
        }
    }
    replay.compare_claims();
    replay.finish();
}

impl<F: Family> Replay<F> {
    fn step(&mut self, step: Step) {
        let now = self.model.now();
        match step {
            Step::Insert(aim) => self.insert(aim.tick(now)),
            Step::InsertBeside(pick) => self.insert(self.deadline_of(pick)),
            Step::Cancel(pick) => {
                if let Some(index) = self.pick(pick) {
                    let claim = self.claims[index];
                    let value = self.queue.cancel(claim.queue).map(|value| value.id);
                    assert_eq!(value, self.model.cancel(claim.model));
                    self.changes += usize::from(value.is_some());
                }
            }
            Step::Reschedule(pick, aim) => self.reschedule(pick, aim.tick(now)),
            Step::RescheduleBeside(pick, other) => self.reschedule(pick, self.deadline_of(other)),
            Step::Advance(aim) => self.advance(aim.tick(now), None),
            Step::Panic(aim, after) => {
                self.advance(aim.tick(now), Some(after));
                self.changes += 1;
            }
            Step::Follow => {
                if let Some(wake) = self.queue.next_wake() {
                    self.advance(wake, None);
                }
            }
        }
    }

    fn pick(&self, pick: usize) -> Option<usize> {
        pick.checked_rem(self.claims.len())
    }

    /// The deadline of a claim; if the claim is stale, now, which every queue refuses.
    fn deadline_of(&self, pick: usize) -> u64 {
        let deadline = self.pick(pick).and_then(|index| self.model.deadline(self.claims[index].model));
        deadline.unwrap_or(self.model.now())
    }

    /// The deadline after the queue's rounding. The model gets this value, because its tick is 1.
    fn rounded(&self, deadline: u64) -> u64 {
        if deadline <= self.model.now() {
            return deadline;
        }
        deadline.checked_next_multiple_of(F::TICK).unwrap_or(u64::MAX)
    }

    /// Whether the queue may refuse a deadline as too far although the model accepts it.
    fn may_be_too_far(&self, deadline: u64) -> bool {
        deadline > self.model.now().saturating_add(F::REACH)
    }

    fn insert(&mut self, deadline: u64) {
        let value = self.book.value();
        let id = value.id;
        let answer = self.queue.insert(deadline, value);
        let refused = answer.as_ref().err().map(|refused| (refused.why, refused.value.id));
        if refused == Some((Refusal::TooFar, id)) && self.may_be_too_far(deadline) {
            return;
        }
        match (answer, self.model.insert(self.rounded(deadline), id)) {
            (Ok(queue), Ok(model)) => self.claims.push(Claim { queue, model, id }),
            (Err(_), Err(model)) => assert_eq!(refused, Some((model.why, model.value))),
            (queue, model) => panic!("insert at {deadline}: {queue:?}, but the model {model:?}"),
        }
    }

    fn reschedule(&mut self, pick: usize, deadline: u64) {
        let Some(index) = self.pick(pick) else {
            return;
        };
        let Claim { queue, model, id } = self.claims[index];
        let answer = self.queue.reschedule(queue, deadline);
        let pending = self.model.deadline(model).is_some();
        if answer == Err(RescheduleError::TooFar) && pending && self.may_be_too_far(deadline) {
            return;
        }
        match (answer, self.model.reschedule(model, self.rounded(deadline))) {
            (Ok(queue), Ok(model)) => {
                self.claims[index] = Claim { queue, model, id };
                self.changes += 1;
            }
            (Err(queue), Err(model)) => assert_eq!(queue, model),
            (queue, model) => panic!("reschedule to {deadline}: {queue:?}, the model {model:?}"),
        }
    }

    fn advance(&mut self, now: u64, panic_after: Option<usize>) {
        let expected = hand_out(&mut self.model, |&id| id, now, panic_after, self.catch);
        let handed_out = hand_out(&mut self.queue, |value| value.id, now, panic_after, self.catch);
        assert_eq!(handed_out, expected, "advance to {now}");
    }

    fn compare(&self) {
        let now = self.model.now();
        assert_eq!(self.queue.now(), now);
        assert_eq!(self.queue.len(), self.model.len());
        match (self.queue.next_wake(), self.model.next_wake()) {
            (Some(wake), Some(nearest)) => {
                assert!(now < wake && wake <= nearest, "at {now}, {wake} for {nearest}");
                if F::EXACT_WAKE && self.changes == 0 {
                    assert_eq!(wake, nearest, "nothing was cancelled or rescheduled");
                }
            }
            (wake, nearest) => assert_eq!(wake, nearest),
        }
    }

    fn compare_claims(&self) {
        for claim in &self.claims {
            let deadline = self.model.deadline(claim.model);
            assert_eq!(self.queue.deadline(claim.queue), deadline);
            let drops = u32::from(deadline.is_none());
            assert_eq!(self.book.drops(claim.id), drops, "drops of value {}", claim.id);
        }
    }

    /// Advances to each `next_wake` until nothing is pending. At most one stop for each change may fire nothing.
    fn finish(mut self) {
        let mut idle_stops = 0;
        while let Some(wake) = self.queue.next_wake() {
            let before = self.queue.len();
            self.advance(wake, None);
            self.compare();
            idle_stops += usize::from(self.queue.len() == before);
        }
        assert_eq!(self.queue.len(), 0);
        if F::EXACT_WAKE {
            let changes = self.changes;
            assert!(idle_stops <= changes, "{idle_stops} idle stops after {changes} changes");
        }
        self.compare_claims();
        drop(self.queue);
        assert!(self.book.all_dropped_once());
    }
}

/// Advances to `now`, with a `fire` that panics at the value after `panic_after` other values.
fn hand_out<T>(
    queue: &mut impl TimerQueue<T>,
    id: fn(&T) -> usize,
    now: u64,
    panic_after: Option<usize>,
    catch: Catch,
) -> HandedOut {
    let mut list = vec![];
    let mut count = None;
    let mut body = || {
        count = Some(queue.advance(now, &mut |deadline, value| {
            list.push((deadline, id(&value)));
            assert!(panic_after.is_none_or(|after| list.len() <= after), "{ON_PURPOSE}");
        }));
    };
    // Any other panic passes through to the caller of the script.
    let panicked = if panic_after.is_some() {
        catch(&mut body)
    } else {
        body();
        false
    };
    assert_eq!(panicked, count.is_none());
    assert!(count.is_none_or(|count| count == list.len()), "advance({now}) miscounted what it fired");
    (list, panicked)
}
