//! [`Word`]: the state word that decides every race for an entry.
//!
//! # Ground rules
//! The word has a phase, the flag `filed` and a deadline. It is changed only by compare-and-swap. So if two threads race, exactly one wins,
//! and the other one sees the change of the winner. The winner has the right to make its change, and the duty in the last column:
//!
//! | from | to | by | duty of the thread that made the change |
//! |---|---|---|---|
//! | pending | pending, filed | the turn, which owns the wheel | puts it into the wheel |
//! | pending | pending, another deadline | any thread: `reschedule` | tells the turn if it has to look earlier |
//! | pending | due, no longer filed | the turn, when the deadline has passed | hands it to the executor |
//! | pending | fired, no longer filed | the turn, if the body only wakes a future | takes the waker of the future, to wake it |
//! | due | pending | any thread: `reschedule`, or an executor that drops it | files it anew, under the shard's lock |
//! | due | firing | the thread that is to run the body | runs it |
//! | firing | fired | the same thread | none: the entry has ended |
//! | firing | pending | the same thread, if it is periodic | files it anew, under the shard's lock |
//! | firing | stopping | any thread: `cancel` of a periodic entry | none: the running thread ends the entry |
//! | stopping | cancelled | the thread that ran the body | drops the body |
//! | pending, due | cancelled | any thread: `cancel` | drops the body; if it was filed, tells the turn |
//! | pending, due | returned | any thread: `shutdown`, `close` | hands the body to its caller |
//!
//! `fired`, `cancelled` and `returned` are final. So for a one-shot task exactly one of these is true in the end: it ran once, `cancel`
//! returned true, or `shutdown` returned it. A body that has not begun can still be cancelled, even if an executor already has it.
//!
//! A successful change is `AcqRel` and a read is `Acquire`: the winner sees everything that was written before the change that it read.

use crate::Monotonic;
use crate::sync::atomic::{AtomicU64, Ordering};

const PHASE: u64 = 0b0111;
const FILED: u64 = 0b1000;
/// The deadline has units of 16 ns, rounded up, so four bits are left for the phase and the flag.
const UNIT_BITS: u32 = 4;

/// The state word of an entry; see the module.
#[derive(Debug)]
pub(crate) struct Word(AtomicU64);

/// The phase of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The entry waits for its deadline.
    Pending,
    /// The executor has the entry; its body has not begun.
    Due,
    /// The body runs.
    Firing,
    /// The body runs, and will not run again.
    Stopping,
    /// The entry has ended: it ran.
    Fired,
    /// The entry has ended: a `cancel` returned true.
    Cancelled,
    /// The entry has ended: `shutdown` or `close` gave it back.
    Returned,
}

/// The content of a state word at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen(u64);

impl Seen {
    const fn new(phase: Phase, filed: bool, deadline: Monotonic) -> Self {
        Self(round_up(deadline) | if filed { FILED } else { 0 } | phase as u64)
    }

    pub(crate) const fn phase(self) -> Phase {
        match self.0 & PHASE {
            0 => Phase::Pending,
            1 => Phase::Due,
            2 => Phase::Firing,
            3 => Phase::Stopping,
            4 => Phase::Fired,
            5 => Phase::Cancelled,
            _ => Phase::Returned,
        }
    }

    /// Whether the turn has put the entry into the wheel, or is putting it there.
    pub(crate) const fn is_filed(self) -> bool {
        self.0 & FILED != 0
    }

    /// The deadline: never before the requested one, and at most 15 ns after it. The last unit stands for [`Monotonic::MAX`], which is
    /// never due.
    pub(crate) const fn deadline(self) -> Monotonic {
        match self.0 & !(PHASE | FILED) {
            NEVER => Monotonic::MAX,
            nanos => Monotonic::from_nanos(nanos),
        }
    }

    /// Whether the entry still waits to run: pending, or due and not begun.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self.phase(), Phase::Pending | Phase::Due)
    }

    /// Whether the entry has reached a final phase.
    pub(crate) const fn is_over(self) -> bool {
        matches!(self.phase(), Phase::Fired | Phase::Cancelled | Phase::Returned)
    }

    const fn with_phase(self, phase: Phase) -> Self {
        Self(self.0 & !PHASE | phase as u64)
    }
}

/// The last multiple of the unit, 584 years after the origin. It stands for this and all later readings, which are never due.
const NEVER: u64 = !((1 << UNIT_BITS) - 1);

/// The reading, rounded up to a multiple of the unit.
const fn round_up(instant: Monotonic) -> u64 {
    match instant.as_nanos().checked_add(!NEVER) {
        Some(nanos) => nanos & NEVER,
        None => NEVER,
    }
}

/// The reading, rounded down to a multiple of the unit. A word with this deadline is due at the reading.
pub(super) const fn round_down(instant: Monotonic) -> Monotonic {
    Monotonic::from_nanos(instant.as_nanos() & NEVER)
}

/// The result of [`Word::cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancel {
    /// The entry is cancelled; if it was filed, the turn has to take it out of the wheel.
    Cancelled { filed: bool },
    /// The body runs now and will not run again.
    Stopping,
    /// The entry runs for the last time, has ended, or is already stopping.
    No,
}

/// The result of [`Word::hand_over`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOver {
    /// The caller now has the entry.
    Yes,
    /// The entry was moved to a later deadline.
    Later,
    /// The entry is not pending any more.
    Gone,
}

impl Word {
    pub(crate) const fn new(deadline: Monotonic) -> Self {
        Self(AtomicU64::new(Seen::new(Phase::Pending, false, deadline).0))
    }

    pub(crate) fn look(&self) -> Seen {
        Seen(self.0.load(Ordering::Acquire))
    }

    /// Changes the word by `change`, and repeats this until the compare-and-swap succeeds. If `change` returns `None`, the word is not
    /// changed.
    fn update(&self, change: impl Fn(Seen) -> Option<Seen>) -> Result<Seen, Seen> {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |bits| change(Seen(bits)).map(|seen| seen.0))
            .map(Seen)
            .map_err(Seen)
    }

    /// Takes away the right of all threads to run the entry. `again` is true for a periodic entry, so that a cancel during its run prevents
    /// the next run.
    pub(crate) fn cancel(&self, again: bool) -> Cancel {
        let result = self.update(|seen| match seen.phase() {
            Phase::Pending | Phase::Due => Some(seen.with_phase(Phase::Cancelled)),
            Phase::Firing if again => Some(seen.with_phase(Phase::Stopping)),
            _ => None,
        });
        match result {
            Ok(before) if before.phase() == Phase::Firing => Cancel::Stopping,
            Ok(before) => Cancel::Cancelled { filed: before.is_filed() },
            Err(_) => Cancel::No,
        }
    }

    /// Gives a pending entry another deadline. Returns the word before the change.
    pub(crate) fn reschedule(&self, deadline: Monotonic) -> Result<Seen, Seen> {
        self.update(|seen| {
            (seen.phase() == Phase::Pending).then(|| Seen::new(Phase::Pending, seen.is_filed(), deadline))
        })
    }

    /// Makes a due entry pending again, with another deadline. The caller has to file it again.
    pub(crate) fn take_back(&self, deadline: Monotonic) -> bool {
        self.update(|seen| (seen.phase() == Phase::Due).then(|| Seen::new(Phase::Pending, false, deadline)))
            .is_ok()
    }

    /// Marks a pending entry as filed and returns its deadline; `None` if it does not wait.
    pub(crate) fn file(&self) -> Option<Monotonic> {
        self.update(|seen| (seen.phase() == Phase::Pending).then_some(Seen(seen.0 | FILED)))
            .ok()
            .map(Seen::deadline)
    }

    /// If the deadline of a pending entry has passed, changes the phase to `next` and clears `filed`.
    pub(crate) fn hand_over(&self, now: Monotonic, next: Phase) -> HandOver {
        let result = self.update(|seen| {
            (seen.phase() == Phase::Pending && seen.deadline().has_come(now))
                .then(|| Seen::new(next, false, seen.deadline()))
        });
        match result {
            Ok(_) => HandOver::Yes,
            Err(seen) if seen.phase() == Phase::Pending => HandOver::Later,
            Err(_) => HandOver::Gone,
        }
    }

    /// Begins the body of a due entry. Returns its deadline; `None` if it must not run.
    pub(crate) fn begin(&self) -> Option<Monotonic> {
        self.update(|seen| (seen.phase() == Phase::Due).then(|| seen.with_phase(Phase::Firing)))
            .ok()
            .map(Seen::deadline)
    }

    /// Ends an entry whose body has run for the last time.
    pub(crate) fn end(&self) {
        let result = self.update(|seen| match seen.phase() {
            Phase::Firing => Some(seen.with_phase(Phase::Fired)),
            Phase::Stopping => Some(seen.with_phase(Phase::Cancelled)),
            _ => None,
        });
        debug_assert!(result.is_ok(), "an entry ends that was not running: {result:?}");
    }

    /// Makes an entry whose body has run pending again, with `deadline`. The caller has to file it again. False if the entry was cancelled
    /// meanwhile.
    pub(crate) fn again(&self, deadline: Monotonic) -> bool {
        self.update(|seen| {
            (seen.phase() == Phase::Firing).then(|| Seen::new(Phase::Pending, false, deadline))
        })
        .is_ok()
    }

    /// Takes the right to run the entry for `shutdown` or `close`, which gives the task to its caller.
    pub(crate) fn give_back(&self) -> Option<Monotonic> {
        self.update(|seen| seen.is_open().then(|| seen.with_phase(Phase::Returned))).ok().map(Seen::deadline)
    }
}

#[cfg(all(test, not(tickwheel_shuttle)))]
mod tests {
    use super::*;

    const DUE: Monotonic = Monotonic::from_nanos(1_600);

    #[test]
    fn a_deadline_is_rounded_up_and_keeps_to_its_bits() {
        for (nanos, rounded) in
            [(0, 0), (1, 16), (16, 16), (17, 32), (!31, !31), (!31 + 1, u64::MAX), (u64::MAX, u64::MAX)]
        {
            let word = Word::new(Monotonic::from_nanos(nanos));
            assert_eq!(word.look().deadline(), Monotonic::from_nanos(rounded));
            assert_eq!((word.look().phase(), word.look().is_filed()), (Phase::Pending, false));
            assert_eq!(word.file(), Some(Monotonic::from_nanos(rounded)));
            assert!(word.look().is_filed());
        }
    }

    /// Tries each change from each phase, and compares the result with the table in the module's documentation.
    #[test]
    fn only_the_changes_of_the_table_are_made() {
        let phases = [
            Phase::Pending,
            Phase::Due,
            Phase::Firing,
            Phase::Stopping,
            Phase::Fired,
            Phase::Cancelled,
            Phase::Returned,
        ];
        type Change = (&'static str, fn(&Word) -> bool, fn(Phase) -> Option<Phase>);
        let changes: [Change; 9] = [
            (
                "file",
                |word| word.file().is_some(),
                |phase| (phase == Phase::Pending).then_some(Phase::Pending),
            ),
            (
                "reschedule",
                |word| word.reschedule(DUE).is_ok(),
                |phase| (phase == Phase::Pending).then_some(Phase::Pending),
            ),
            (
                "hand_over",
                |word| word.hand_over(DUE, Phase::Due) == HandOver::Yes,
                |phase| (phase == Phase::Pending).then_some(Phase::Due),
            ),
            (
                "take_back",
                |word| word.take_back(DUE),
                |phase| (phase == Phase::Due).then_some(Phase::Pending),
            ),
            ("begin", |word| word.begin().is_some(), |phase| (phase == Phase::Due).then_some(Phase::Firing)),
            ("again", |word| word.again(DUE), |phase| (phase == Phase::Firing).then_some(Phase::Pending)),
            (
                "cancel",
                |word| word.cancel(false) != Cancel::No,
                |phase| matches!(phase, Phase::Pending | Phase::Due).then_some(Phase::Cancelled),
            ),
            (
                "cancel of a periodic",
                |word| word.cancel(true) != Cancel::No,
                |phase| match phase {
                    Phase::Pending | Phase::Due => Some(Phase::Cancelled),
                    Phase::Firing => Some(Phase::Stopping),
                    _ => None,
                },
            ),
            (
                "give_back",
                |word| word.give_back().is_some(),
                |phase| matches!(phase, Phase::Pending | Phase::Due).then_some(Phase::Returned),
            ),
        ];
        for (name, change, allowed) in changes {
            for phase in phases {
                let word = Word(AtomicU64::new(Seen::new(phase, false, DUE).0));
                assert_eq!(change(&word), allowed(phase).is_some(), "{name} from {phase:?}");
                assert_eq!(word.look().phase(), allowed(phase).unwrap_or(phase), "{name} from {phase:?}");
            }
        }
        for (phase, ended) in [(Phase::Firing, Phase::Fired), (Phase::Stopping, Phase::Cancelled)] {
            let word = Word(AtomicU64::new(Seen::new(phase, false, DUE).0));
            word.end();
            assert_eq!(word.look().phase(), ended);
        }
    }

    #[test]
    fn nothing_is_handed_over_before_its_deadline() {
        let word = Word::new(DUE);
        assert_eq!(word.hand_over(Monotonic::from_nanos(1_599), Phase::Due), HandOver::Later);
        assert_eq!(word.hand_over(DUE, Phase::Due), HandOver::Yes);
        assert_eq!(word.hand_over(DUE, Phase::Due), HandOver::Gone);
    }
}
