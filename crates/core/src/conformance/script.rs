//! Scripts: sequences of operations, replayed on a queue and on the model.
//!
//! Make [`Step`]s with a generator (proptest, a fuzzer, a loop) and give them to [`replay`].

use alloc::vec;
use alloc::vec::Vec;

use super::family::{Family, fired};
use crate::{Handle, Model, TimerQueue};

/// A tick, named in relation to now, so that scripts stay near what may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// So many ticks after now.
    Ahead(u64),
    /// So many ticks before now.
    Behind(u64),
    /// Near the next multiple of 2^`bits` after now: there, or up to 127 ticks off.
    Edge {
        /// The logarithm of the slot's size, below 64.
        bits: u32,
        /// How far off.
        off: i8,
    },
    /// A tick by its number.
    At(u64),
}

impl Aim {
    /// The tick that is meant at `now`. What would be beyond the ends of time is at the end.
    fn tick(self, now: u64) -> u64 {
        match self {
            Self::Ahead(ticks) => now.saturating_add(ticks),
            Self::Behind(ticks) => now.saturating_sub(ticks),
            Self::Edge { bits, off } => {
                let size = 1_u64 << (bits % 64);
                let edge = (now & !(size - 1)).saturating_add(size);
                edge.saturating_add_signed(i64::from(off))
            }
            Self::At(tick) => tick,
        }
    }
}

/// One operation of a script. `pick` chooses among all handles ever given out, stale ones too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Insert a new value.
    Insert(Aim),
    /// Insert a new value at the deadline of a pending one, to have equal deadlines.
    InsertBeside(usize),
    /// Cancel by a handle.
    Cancel(usize),
    /// Reschedule by a handle.
    Reschedule(usize, Aim),
    /// Reschedule to the deadline of another one.
    RescheduleBeside(usize, usize),
    /// Let time pass, or try to turn it back.
    Advance(Aim),
    /// Advance to the queue's own next wake.
    Follow,
}

/// The queue under test, the model beside it, and every handle that either gave out.
struct Replay<F: Family> {
    queue: F::Queue<u64>,
    model: Model<u64>,
    handles: Vec<(Handle, Handle)>,
    /// Cancels and reschedules so far, each of which may make `next_wake` less exact.
    changes: usize,
}

/// Replays a script on a queue and on the [`Model`], from `start`, and panics at the first
/// difference: in an answer, in what fires or its order, in `len`, `now` or `deadline`, or if
/// `next_wake` breaks its law. At the end everything pending fires, led by `next_wake`.
pub fn replay<F: Family>(start: u64, script: &[Step]) {
    let mut replay =
        Replay::<F> { queue: F::start(start), model: Model::new(start), handles: vec![], changes: 0 };
    for (index, &step) in script.iter().enumerate() {
        replay.step(step);
        replay.compare();
        // Every handle is asked after now and then, as there may be many.
        if index % 16 == 0 {
            replay.compare_handles();
        }
    }
    replay.compare_handles();
    replay.finish();
}

impl<F: Family> Replay<F> {
    fn step(&mut self, step: Step) {
        let now = self.model.now();
        match step {
            Step::Insert(aim) => self.insert(aim.tick(now)),
            Step::InsertBeside(pick) => {
                let deadline = self.pick(pick).and_then(|(_, (_, model))| self.model.deadline(model));
                self.insert(deadline.unwrap_or(now));
            }
            Step::Cancel(pick) => {
                if let Some((_, (queue, model))) = self.pick(pick) {
                    assert_eq!(self.queue.cancel(queue), self.model.cancel(model));
                    self.changes += 1;
                }
            }
            Step::Reschedule(pick, aim) => self.reschedule(pick, aim.tick(now)),
            Step::RescheduleBeside(pick, other) => {
                let deadline = self.pick(other).and_then(|(_, (_, model))| self.model.deadline(model));
                self.reschedule(pick, deadline.unwrap_or(now));
            }
            Step::Advance(aim) => self.advance(aim.tick(now)),
            Step::Follow => {
                if let Some(wake) = self.queue.next_wake() {
                    self.advance(wake);
                }
            }
        }
    }

    fn pick(&self, pick: usize) -> Option<(usize, (Handle, Handle))> {
        let index = pick.checked_rem(self.handles.len())?;
        Some((index, self.handles[index]))
    }

    fn insert(&mut self, deadline: u64) {
        let value = self.handles.len() as u64;
        match (self.queue.insert(deadline, value), self.model.insert(deadline, value)) {
            (Ok(queue), Ok(model)) => self.handles.push((queue, model)),
            (Err(queue), Err(model)) => assert_eq!(queue, model),
            (queue, model) => panic!("insert at {deadline}: {queue:?}, but the model {model:?}"),
        }
    }

    fn reschedule(&mut self, pick: usize, deadline: u64) {
        let Some((index, (queue, model))) = self.pick(pick) else {
            return;
        };
        self.changes += 1;
        let answers = (self.queue.reschedule(queue, deadline), self.model.reschedule(model, deadline));
        match answers {
            (Ok(queue), Ok(model)) => self.handles[index] = (queue, model),
            (Err(queue), Err(model)) => assert_eq!(queue, model),
            (queue, model) => panic!("reschedule to {deadline}: {queue:?}, the model {model:?}"),
        }
    }

    fn advance(&mut self, now: u64) {
        let expected = fired(&mut self.model, now);
        assert_eq!(fired(&mut self.queue, now), expected, "advance to {now}");
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

    fn compare_handles(&self) {
        for &(queue, model) in &self.handles {
            assert_eq!(self.queue.deadline(queue), self.model.deadline(model));
        }
    }

    /// Follows `next_wake` to the end: each stop fires, but for one for each change.
    fn finish(&mut self) {
        let mut idle_stops = 0;
        while let Some(wake) = self.queue.next_wake() {
            let before = self.queue.len();
            self.advance(wake);
            self.compare();
            idle_stops += usize::from(self.queue.len() == before);
        }
        assert_eq!(self.queue.len(), 0);
        if F::EXACT_WAKE {
            let changes = self.changes;
            assert!(idle_stops <= changes, "{idle_stops} idle stops after {changes} changes");
        }
        self.compare_handles();
    }
}
