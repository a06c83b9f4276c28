//! [`State`]: decides which thread may try an operation, and how the operation ends.
//!
//! Ground rules: one state word has the whole state, and each change of it is one compare-and-swap that releases and acquires. The thread
//! that changes it from idle to running owns the operation until it settles. All other threads leave a note in the word and continue, so no
//! thread ever waits. A note is written even if the same note is there already: the write makes the writer's condition visible to the
//! owner, which reads the word before it looks again.
//!
//! An owner that has looked often enough may leave with an open note for a look: the operation is then *owed* a look. The look is handed
//! over to the executor, and the first thread that comes takes it: the one that runs the handover, checks, or expires the operation. At most
//! one handover of an operation is under way; it stays under way if another thread takes the look.
//!
//! | from | by | to |
//! |---|---|---|
//! | idle | `begin` | running |
//! | idle | `force`, `expire` | done |
//! | running | `begin`, `force`, `expire` | running, with a note |
//! | running | `settle` | running, idle, owed, done |
//! | owed | `begin`, `take_over`, `expire` | running |
//! | owed | `force` | done |
//! | idle, owed, running and not forced | `cancel` | cancelled |

use crate::sync::atomic::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
/// A note: another thread changed something, so one more look is needed. While running, it is the owner's; without an owner, the operation is
/// owed it.
const AGAIN: u8 = 2;
/// A note while running: the operation completes after this attempt, whatever the attempt returns.
const FORCE: u8 = 4;
/// A note while running: the time is up, so the operation expires unless the condition has become true.
const EXPIRE: u8 = 8;
const DONE: u8 = 16;
const CANCELLED: u8 = 32;
/// A handover is under way. It goes with idle, running and owed.
const HANDED: u8 = 64;

/// The state word of one operation.
#[derive(Debug)]
pub(super) struct State(AtomicU8);

/// The answer to a request to end the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// This call decided the end, and the caller has to carry it out.
    Now,
    /// The request is noted, and the caller now owns the operation and has to try it first.
    Look,
    /// The request is noted, and the owner carries it out.
    Noted,
    /// The request has no effect, because the end was decided before.
    Late,
}

/// The duty of the owner after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// Complete the operation: the condition has become true.
    Completed,
    /// Complete the operation: another thread forced it.
    Forced,
    /// Expire the operation.
    Expired,
    /// Look again; the caller still owns the operation.
    Again,
    /// Hand a look over to the executor: the operation waits, has no owner, and is owed a look.
    HandOver,
    /// Nothing: the operation waits, and has no owner.
    Idle,
    /// Nothing: the operation was cancelled.
    Cancelled,
}

impl State {
    /// The state word of a new operation. Its maker owns it.
    pub(super) fn running() -> Self {
        Self(AtomicU8::new(RUNNING))
    }

    /// Asks for an attempt. True if the caller now owns the operation and has to try it. If false, the owner looks again, or the operation
    /// has ended or ends after the running attempt.
    pub(super) fn begin(&self) -> bool {
        self.change(|word| match word & !HANDED {
            IDLE | AGAIN => (RUNNING | word & HANDED, true),
            // After a force or an expiry no thread can ask for another look, because the end might be delayed for ever.
            _ if word & RUNNING != 0 && word & (FORCE | EXPIRE) == 0 => (word | AGAIN, false),
            _ => (word, false),
        })
    }

    /// Ends the handover. True if the operation is owed a look; the caller then owns the operation and has to try it.
    pub(super) fn take_over(&self) -> bool {
        self.change(|word| match word & !HANDED {
            AGAIN => (RUNNING, true),
            rest => (rest, false),
        })
    }

    /// Ends the owner's attempt; `said` is whether the condition is true. If `leaves`, the owner looks again only if no thread can ask for
    /// a further look after that one.
    pub(super) fn settle(&self, said: bool, leaves: bool) -> Settled {
        self.change(|word| match word {
            CANCELLED => (CANCELLED, Settled::Cancelled),
            _ if word & FORCE != 0 => (DONE, Settled::Forced),
            _ if said => (DONE, Settled::Completed),
            // This look was requested before the time was up, so it comes before the expiry.
            _ if word & AGAIN != 0 && (!leaves || word & EXPIRE != 0) => (word & !AGAIN, Settled::Again),
            // The handover that is under way finds that a look is owed.
            _ if word & AGAIN != 0 && word & HANDED != 0 => (AGAIN | HANDED, Settled::Idle),
            _ if word & AGAIN != 0 => (AGAIN | HANDED, Settled::HandOver),
            _ if word & EXPIRE != 0 => (DONE, Settled::Expired),
            _ => (IDLE | word & HANDED, Settled::Idle),
        })
    }

    /// Asks to complete the operation whatever its condition is.
    pub(super) fn force(&self) -> End {
        self.change(|word| match word & !HANDED {
            IDLE | AGAIN => (DONE, End::Now),
            _ if word & RUNNING != 0 && word & FORCE == 0 => (word | FORCE, End::Noted),
            _ => (word, End::Late),
        })
    }

    /// Asks to expire the operation. A look that it is owed was requested before the time was up, so it comes first.
    pub(super) fn expire(&self) -> End {
        self.change(|word| match word & !HANDED {
            IDLE => (DONE, End::Now),
            AGAIN => (RUNNING | EXPIRE | word & HANDED, End::Look),
            _ if word & RUNNING != 0 && word & FORCE == 0 => (word | EXPIRE, End::Noted),
            _ => (word, End::Late),
        })
    }

    /// Cancels the operation, also while it has an owner. `false` if its end was decided before.
    pub(super) fn cancel(&self) -> bool {
        self.change(|word| match word & !HANDED {
            IDLE | AGAIN => (CANCELLED, true),
            _ if word & RUNNING != 0 && word & FORCE == 0 => (CANCELLED, true),
            _ => (word, false),
        })
    }

    /// Whether the operation is done, or will be done after the running attempt because of a force.
    pub(super) fn is_complete(&self) -> bool {
        self.0.load(Ordering::Acquire) & (DONE | FORCE) != 0
    }

    /// Replaces the word by the first result of `next`, and returns the second result.
    fn change<R>(&self, next: impl Fn(u8) -> (u8, R)) -> R {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let (then, answer) = next(word);
            match self.0.compare_exchange_weak(word, then, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return answer,
                Err(found) => word = found,
            }
        }
    }
}

#[cfg(all(test, not(tickwheel_shuttle)))]
mod tests {
    use super::*;

    fn idle() -> State {
        let state = State::running();
        assert_eq!(settle(&state, false), Settled::Idle);
        state
    }

    /// Ends an attempt of an owner that looks again if it has to.
    fn settle(state: &State, said: bool) -> Settled {
        state.settle(said, false)
    }

    /// The state word of an operation that is owed a look.
    fn owed() -> State {
        let state = State::running();
        assert!(!state.begin());
        assert_eq!(state.settle(false, true), Settled::HandOver);
        state
    }

    #[test]
    fn an_idle_one_has_one_owner_and_one_end() {
        let ends: [fn(&State) -> End; 2] = [State::force, State::expire];
        for end in ends {
            let state = idle();
            assert_eq!(end(&state), End::Now);
            assert!(state.is_complete());
            assert_eq!((state.force(), state.expire(), state.cancel()), (End::Late, End::Late, false));
            assert!(!state.begin());
        }
        let state = idle();
        assert!(state.begin());
        assert!(!state.begin(), "two owners");
    }

    #[test]
    fn any_number_of_notes_is_one_more_look() {
        let state = State::running();
        assert!(!state.begin());
        assert!(!state.begin());
        assert_eq!(settle(&state, false), Settled::Again);
        assert_eq!(settle(&state, false), Settled::Idle);
    }

    #[test]
    fn a_condition_that_came_true_wins_over_time_and_loses_to_force() {
        let state = State::running();
        assert_eq!(state.expire(), End::Noted);
        assert!(!state.is_complete(), "nothing is decided");
        assert_eq!(settle(&state, true), Settled::Completed);

        let state = State::running();
        assert_eq!((state.expire(), state.force()), (End::Noted, End::Noted));
        assert!(state.is_complete(), "decided");
        assert_eq!((state.force(), state.expire(), state.cancel()), (End::Late, End::Late, false));
        assert_eq!(settle(&state, true), Settled::Forced);
    }

    #[test]
    fn a_look_asked_for_in_time_comes_before_the_expiry_and_a_later_one_does_not() {
        let state = State::running();
        assert!(!state.begin());
        assert_eq!(state.expire(), End::Noted);
        assert_eq!(settle(&state, false), Settled::Again);
        assert!(!state.begin());
        assert_eq!(settle(&state, false), Settled::Expired);
    }

    #[test]
    fn a_cancelled_operation_has_no_owner() {
        for state in [idle(), State::running()] {
            assert!(state.cancel());
            assert!(!state.cancel(), "twice");
            assert!(!state.begin());
            assert_eq!((state.force(), state.expire()), (End::Late, End::Late));
            assert!(!state.is_complete());
        }
        let state = State::running();
        assert_eq!(state.expire(), End::Noted);
        assert!(state.cancel(), "an expiry that was only noted decides nothing");
        assert_eq!(settle(&state, true), Settled::Cancelled);
    }

    #[test]
    fn an_owner_that_leaves_hands_one_look_over() {
        let state = owed();
        assert!(state.take_over());
        assert!(!state.take_over(), "two owners");
        assert!(!state.begin());
        assert_eq!(
            state.settle(false, true),
            Settled::HandOver,
            "the handover has ended, so there is a next one"
        );
        assert!(state.take_over());
        assert_eq!(state.settle(false, true), Settled::Idle);
        assert!(!state.take_over(), "nothing is owed");
    }

    #[test]
    fn a_check_takes_the_look_and_no_second_handover_is_under_way() {
        let state = owed();
        assert!(state.begin());
        assert!(!state.begin());
        assert_eq!(state.settle(false, true), Settled::Idle, "the first handover finds the look");
        assert!(state.take_over());
        assert_eq!(settle(&state, false), Settled::Idle);

        let state = owed();
        assert!(state.begin());
        assert!(!state.take_over(), "the look has an owner");
        assert!(!state.begin());
        assert_eq!(state.settle(false, true), Settled::HandOver);
    }

    #[test]
    fn a_look_that_is_owed_comes_before_the_expiry_and_not_before_a_force_or_a_cancel() {
        let state = owed();
        assert_eq!(state.expire(), End::Look);
        assert!(!state.begin() && !state.take_over(), "two owners");
        assert_eq!(state.settle(false, true), Settled::Expired);

        let state = owed();
        assert_eq!(state.force(), End::Now);
        assert!(state.is_complete() && !state.take_over());

        let state = owed();
        assert!(state.cancel() && !state.take_over());
    }

    #[test]
    fn an_owner_does_not_leave_when_the_time_is_up() {
        let state = State::running();
        assert!(!state.begin());
        assert_eq!(state.expire(), End::Noted);
        assert_eq!(state.settle(false, true), Settled::Again);
        assert_eq!(state.settle(false, true), Settled::Expired);
    }
}
