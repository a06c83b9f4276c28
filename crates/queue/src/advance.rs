//! Moving a virtual clock, wake by wake.

use std::time::Duration;

use tickwheel_engine::{NextWake, Now, Timestamp, Unavailable};

use crate::time::until;

/// Why a clock was not moved.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdvanceError {
    /// The clock is the real one.
    #[error("the clock is real; only a queue opened with a virtual clock can be moved")]
    NotVirtual,
    /// Another call moves the clock.
    #[error("the clock is being moved by another call; wait for its answer")]
    Busy,
    /// The target is farther than time goes.
    #[error("the clock cannot go beyond {limit_ms} ms after 1970")]
    TooFar {
        /// The last millisecond it can show.
        limit_ms: i64,
    },
    /// The queue failed. This is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The last instant a virtual clock goes to: the end of the year 9999, what RFC 3339 can write.
pub const VIRTUAL_END_MS: i64 = 253_402_300_799_999;

/// A move under way.
#[derive(Debug)]
pub(crate) struct Advance {
    goal: Goal,
    reply: oneshot::Sender<Result<Timestamp, AdvanceError>>,
    state: State,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Goal {
    /// By this much from where the clock stands when the move begins.
    By(Duration),
    /// To this instant.
    To(Timestamp),
    /// To the first instant at which something fires, at most to this one. If nothing is left to fire, the clock stays.
    NextFire(Timestamp),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    New,
    Moving { target: Timestamp, fired_before: u64 },
    Written,
}

/// The next step of a move, once the shard is idle.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Move the clock by this much and let the engine look at it.
    Move(Duration),
    /// The clock has arrived: have the time written down.
    WriteDown,
    /// The time is written down too.
    Arrived,
}

impl Advance {
    pub(crate) fn new(goal: Goal) -> (Self, oneshot::Receiver<Result<Timestamp, AdvanceError>>) {
        let (reply, receiver) = oneshot::channel();
        (Self { goal, reply, state: State::New }, receiver)
    }

    pub(crate) fn next(&mut self, now: Now, wake: NextWake, fired_total: u64) -> Next {
        let (target, fired_before) = match self.state {
            State::Written => return Next::Arrived,
            State::Moving { target, fired_before } => (target, fired_before),
            State::New => {
                let target = match self.goal {
                    Goal::By(by) => {
                        now.wall.saturating_plus_ms(u64::try_from(by.as_millis()).unwrap_or(u64::MAX))
                    }
                    Goal::To(target) | Goal::NextFire(target) => target,
                };
                self.state = State::Moving { target, fired_before: fired_total };
                (target, fired_total)
            }
        };
        let to_fire = matches!(self.goal, Goal::NextFire(_));
        let wait = until(now, wake);
        let arrived = now.wall >= target
            || (to_fire && fired_total > fired_before)
            || (to_fire && wait.is_none() && target == Timestamp::MAX);
        if arrived && wait.is_none_or(|wait| !wait.is_zero()) {
            self.state = State::Written;
            return Next::WriteDown;
        }
        let left = Duration::from_millis(target.ms_since(now.wall));
        Next::Move(wait.map_or(left, |wait| wait.min(left)))
    }

    /// Tells the mover where the clock has arrived, or why it was not moved.
    pub(crate) fn answer(self, arrived: Result<Timestamp, AdvanceError>) {
        // The caller may have gone.
        let _ = self.reply.send(arrived);
    }

    pub(crate) fn refuse(self, why: AdvanceError) {
        self.answer(Err(why));
    }

    pub(crate) fn closed(self) {
        self.refuse(AdvanceError::Unavailable(Unavailable::Closed));
    }
}
