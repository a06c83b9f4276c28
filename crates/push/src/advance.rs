//! Moving a virtual clock while targets run.

use std::time::Duration;

use tickwheel_queue::{AdvanceError, Timestamp};

use crate::push::Push;

impl Push {
    /// Moves the virtual clock of the queue by `by`, and answers with the new time when that time is committed. At each instant at which the
    /// queue has anything to do, the clock stands still until no message is under way to a target. So no lease of a target ends because the
    /// clock jumped over its end, and messages arrive in the order of their due times.
    ///
    /// Each instant at which a target has sent something costs three commits, each other one costs one. Without targets, the whole move costs one.
    ///
    /// An attempt takes at most the time-out of its target, in real time. A message that waits for an open breaker does not hold the clock:
    /// the breaker follows real time, and so does the wait for the next attempt in an order.
    ///
    /// Dropping the future ends the move at the instant that it has reached.
    ///
    /// # Errors
    /// [`AdvanceError`]: the clock is real, another call moves the clock now, the new time is beyond the last instant of the clock, or the
    /// queue is closed or not owned.
    pub async fn advance(&self, by: Duration) -> Result<Timestamp, AdvanceError> {
        let _one_at_a_time = self.clock().try_lock().map_err(|_| AdvanceError::Busy)?;
        let queue = self.queue();
        if self.ask_all().is_empty() {
            return queue.advance(by).await;
        }
        let mut now = queue.advance(Duration::ZERO).await?;
        let goal = now.saturating_plus_ms(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
        let mut begun = Vec::new();
        loop {
            // Each move of the clock is answered when no call is under way in the queue. By then each runner has the tasks that were leased for
            // it. An end of a message may let the next one be leased, so the targets are asked until none has begun a message.
            loop {
                let now_begun = self.begun().await;
                if now_begun == begun {
                    break;
                }
                begun = now_begun;
                queue.advance(Duration::ZERO).await?;
            }
            if now >= goal {
                return Ok(now);
            }
            now = queue.advance_to_wake(goal).await?;
        }
    }

    /// Waits until each target has nothing under way, and returns the number of messages that each has begun.
    async fn begun(&self) -> Vec<u64> {
        let mut begun = Vec::new();
        for answer in self.ask_all() {
            // A runner that has ended has nothing under way, and begins nothing.
            begun.push(answer.await.unwrap_or(u64::MAX));
        }
        begun
    }
}
