//! Moves a virtual clock from wake to wake.

use std::future::IntoFuture;
use std::time::Duration;

use tickwheel_engine::{NextWake, Now, Timestamp, Unavailable};

use super::reply::Reply;
use crate::clock::time::until;
use crate::panics::Panics;

/// Why a move of the clock was refused, or did not end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdvanceError {
    /// The clock is the real one.
    #[error("the clock is real; only a queue opened with a virtual clock can be moved")]
    NotVirtual,
    /// Another call moves the clock.
    #[error("the clock is being moved by another call; wait for its answer")]
    Busy,
    /// The target is later than the last instant of a virtual clock.
    #[error("the clock cannot go beyond {limit_ms} ms after 1970")]
    TooFar {
        /// The last instant that the clock can be moved to (ms after 1970).
        limit_ms: i64,
    },
    /// The queue is closed, its store failed, or another process owns the shard.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The last instant that is accepted as the target of a move of a virtual clock (ms after 1970): the end of the year 9999. RFC 3339 cannot
/// write a later year.
pub const VIRTUAL_END_MS: i64 = 253_402_300_799_999;

/// A move of a virtual clock that is under way.
#[derive(Debug)]
pub(crate) struct Advance {
    goal: Goal,
    reply: Reply<Result<Timestamp, AdvanceError>>,
    state: State,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Goal {
    /// This much later than the clock shows when the move begins.
    By(Duration),
    /// This instant.
    To(Timestamp),
    /// The first instant at which something fires, but no later than the given limit. If nothing is left to fire, the clock moves to the
    /// limit. But if the limit is [`Timestamp::MAX`], the clock stays where it is.
    NextFire(Timestamp),
    /// The first instant at which the engine has anything to do, but no later than the given limit.
    NextWake(Timestamp),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    New,
    Moving { began: Timestamp, target: Timestamp, fired_before: u64 },
    Written,
}

/// The next step of a move. The shard is idle before each step.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Move the clock by this much, and let the engine handle what is due.
    Move(Duration),
    /// The clock has arrived: the store has to write the time down.
    WriteDown,
    /// The time is written down too, so the caller gets its answer.
    Arrived,
}

impl Advance {
    pub(crate) fn new(
        goal: Goal,
        panics: Panics,
    ) -> (Self, oneshot::Receiver<Result<Timestamp, AdvanceError>>) {
        let (reply, receiver) = Reply::new(panics);
        (Self { goal, reply, state: State::New }, receiver)
    }

    pub(crate) fn next(&mut self, now: Now, wake: NextWake, fired_total: u64) -> Next {
        let (began, target, fired_before) = match self.state {
            State::Written => return Next::Arrived,
            State::Moving { began, target, fired_before } => (began, target, fired_before),
            State::New => {
                let target = match self.goal {
                    Goal::By(by) => {
                        now.wall.saturating_plus_ms(u64::try_from(by.as_millis()).unwrap_or(u64::MAX))
                    }
                    Goal::To(target) | Goal::NextFire(target) | Goal::NextWake(target) => target,
                };
                self.state = State::Moving { began: now.wall, target, fired_before: fired_total };
                (now.wall, target, fired_total)
            }
        };
        let to_fire = matches!(self.goal, Goal::NextFire(_));
        let wait = until(now, wake);
        let has_woken = matches!(self.goal, Goal::NextWake(_)) && now.wall > began;
        let arrived = now.wall >= target
            || has_woken
            || (to_fire && fired_total > fired_before)
            || (to_fire && wait.is_none() && target == Timestamp::MAX);
        if arrived && wait.is_none_or(|wait| !wait.is_zero()) {
            self.state = State::Written;
            return Next::WriteDown;
        }
        let left = Duration::from_millis(target.ms_since(now.wall));
        Next::Move(wait.map_or(left, |wait| wait.min(left)))
    }

    /// Tells the caller at which instant the clock has arrived, or why the move was refused or did not end.
    pub(crate) fn answer(self, arrived: Result<Timestamp, AdvanceError>) {
        self.reply.send(arrived);
    }

    pub(crate) fn refuse(self, why: AdvanceError) {
        self.answer(Err(why));
    }

    pub(crate) fn closed(self) {
        self.refuse(AdvanceError::Unavailable(Unavailable::Closed));
    }
}

/// A move of a virtual clock that is under way: `.wait()` for its end, or `.await` it.
#[must_use = "the clock has moved only when this says so"]
#[derive(Debug)]
pub struct Advancing {
    receiver: oneshot::Receiver<Result<Timestamp, AdvanceError>>,
}

impl Advancing {
    pub(crate) fn new(receiver: oneshot::Receiver<Result<Timestamp, AdvanceError>>) -> Self {
        Self { receiver }
    }

    /// Blocks the thread until the clock has moved, and returns the new time.
    ///
    /// # Errors
    /// [`AdvanceError`].
    pub fn wait(self) -> Result<Timestamp, AdvanceError> {
        self.receiver.recv().unwrap_or_else(|_| Err(gone()))
    }
}

impl IntoFuture for Advancing {
    type Output = Result<Timestamp, AdvanceError>;
    type IntoFuture = std::pin::Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.receiver.await.unwrap_or_else(|_| Err(gone())) })
    }
}

fn gone() -> AdvanceError {
    AdvanceError::Unavailable(Unavailable::Closed)
}
