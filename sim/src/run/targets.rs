//! The pusher: one client that gives targets to queues of its own, changes these queues, and looks at all targets.

use tickwheel_engine::{CallId as ProductCall, Input};
use tickwheel_queue as product;

use super::{Step, World};
use crate::options::Options;
use crate::oracle::Violation;
use crate::oracle::targets::{Change, Targets};
use crate::rng::Rng;

/// The number of the pusher's queues. No other client uses them, and they have no tasks.
const QUEUES: u64 = 3;

/// The pusher, and what it knows of the targets.
pub(super) struct Pusher {
    rng: Rng,
    percent: u64,
    targets: Targets,
    /// The number of the call that the pusher waits for, and whether it is a change. A call that is no change reads all targets.
    open: Option<(u64, bool)>,
    given: u64,
}

impl Pusher {
    pub(super) fn new(options: &Options, rng: Rng) -> Self {
        Self { rng, percent: options.targets_percent, targets: Targets::default(), open: None, given: 0 }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.open.is_some()
    }

    /// The connection of the pusher is closed.
    pub(super) fn forget(&mut self) {
        self.open = None;
    }

    /// The next change that the pusher asks for, and its command; `None`: a read of all targets.
    fn next(&mut self) -> Option<(Change, product::Command)> {
        use product::QueueChange as C;
        if self.targets.is_in_doubt() || self.rng.chance(25) {
            return None;
        }
        let queue = self.rng.below(QUEUES);
        let settings = product::QueueSettings {
            max_in_flight: Some(self.rng.pick(&[1, 5])).filter(|_| self.rng.chance(50)),
            ..product::QueueSettings::default()
        };
        let (change, command) = match self.rng.below(12) {
            0..5 => {
                self.given += 1;
                (Change::Set(queue, self.given), C::Target(Some(target(self.given))))
            }
            5 | 6 => (Change::Remove(queue), C::Target(None)),
            7 => (Change::Remove(queue), C::Delete),
            8 => (Change::Other, C::Settings(settings)),
            9 => (Change::Other, C::Pause { ms: self.rng.pick(&[None, Some(0), Some(20), Some(5_000)]) }),
            10 => (Change::Other, if self.rng.chance(30) { C::Drain } else { C::Resume }),
            _ => {
                // An import brings no target, and leaves the one that there is.
                let target = Some(target(0).into()).filter(|_| self.rng.chance(50));
                (Change::Other, C::Restore(product::QueueRecord { settings, target, ..Default::default() }))
            }
        };
        let command = product::ChangeQueue { queue: name(queue), change: command };
        Some((change, product::Command::ChangeQueue(command)))
    }

    /// Takes the answer to a call, and checks it.
    fn answered(&mut self, changes: bool, answer: product::Answer) -> Step {
        use product::{Answer as A, QueueError as E, Unavailable as U};
        match (changes, answer) {
            (false, A::Targets(Ok(shown))) => {
                let shown: Vec<_> =
                    shown.iter().map(|(name, target)| (queue_of(name), number(target))).collect();
                self.targets.seen(&shown)
            }
            (false, A::Targets(Err(_)))
            | (true, A::ChangeQueue(Err(E::Unavailable(U::Indeterminate { .. })))) => Ok(()),
            (true, A::ChangeQueue(Ok(()))) => {
                self.targets.done();
                Ok(())
            }
            (true, A::ChangeQueue(Err(E::Unavailable(U::ReadOnly { .. } | U::Closed | U::Full { .. })))) => {
                self.targets.refused();
                Ok(())
            }
            (_, answer) => {
                let what = format!("a call about targets was answered {answer:?}");
                Err(Violation { promise: "P8", what, story: Vec::new() })
            }
        }
    }
}

impl World {
    /// Makes the pusher's next call, unless it waits for an answer. The options set the percentage of steps in which it does so.
    pub(super) fn push(&mut self) {
        if self.pusher.percent == 0
            || self.pusher.is_waiting()
            || !self.pusher.rng.chance(self.pusher.percent)
        {
            return;
        }
        let next = self.pusher.next();
        let input = self.ask_of_targets(next);
        self.inputs.push(input);
    }

    fn ask_of_targets(&mut self, next: Option<(Change, product::Command)>) -> Input {
        self.next_call += 1;
        let id = self.next_call;
        self.trace.event(format_args!("call {id} of the pusher: {next:?}"));
        self.coverage.pushed += 1;
        self.pusher.open = Some((id, next.is_some()));
        let command = match next {
            None => product::Command::Targets(product::ListTargets),
            Some((change, command)) => {
                self.pusher.targets.called(change);
                command
            }
        };
        Input::Call { call: ProductCall(id), command }
    }

    /// Takes an answer, if it is the pusher's.
    pub(super) fn answer_pusher(&mut self, id: u64, answer: &product::Answer) -> Result<bool, Violation> {
        let Some((_, changes)) = self.pusher.open.take_if(|(open, _)| *open == id) else { return Ok(false) };
        self.trace.event(format_args!("call {id} of the pusher is answered {answer:?}"));
        self.pusher.answered(changes, answer.clone()).map(|()| true)
    }

    /// Checks that the server has all targets that it acknowledged. It runs when no more faults happen.
    pub(super) fn all_targets_are_kept(&mut self) -> Step {
        if self.pusher.percent == 0 {
            return Ok(());
        }
        let Input::Call { call, command } = self.ask_of_targets(None) else { unreachable!("it is a call") };
        self.pusher.open = None;
        let answer = self.ask_calmly(call, command)?;
        self.pusher.answered(false, answer)?;
        if self.pusher.targets.is_in_doubt() {
            return Err(self.hang("targets are not shown though the faults are over"));
        }
        Ok(())
    }
}

fn name(queue: u64) -> product::QueueName {
    product::QueueName::new(&format!("t{queue}")).expect("a good name")
}

/// The number of a queue of the pusher. The name of another queue gives `u64::MAX`.
fn queue_of(name: &product::QueueName) -> u64 {
    name.as_str().strip_prefix('t').and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
}

/// The target that stands for a number. Targets of different numbers may differ in length and in their retry policies.
fn target(number: u64) -> product::TargetRecord {
    let mut value = number.to_be_bytes().to_vec();
    value.resize(8 + (number * 37 % 1_500) as usize, number as u8);
    let retry = (!number.is_multiple_of(3))
        .then(|| product::Retry { max_attempts: Some(1 + number as u32 % 2), backoff: None });
    product::TargetRecord { value: value.into(), retry }
}

/// The number that a target stands for. A target that no call has given has `u64::MAX`, which no call has as its number.
fn number(shown: &product::TargetRecord) -> u64 {
    let number = shown.value.first_chunk().copied().map(u64::from_be_bytes);
    number.filter(|&number| target(number) == *shown).unwrap_or(u64::MAX)
}
