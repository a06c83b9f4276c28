//! Moving a virtual clock while targets run.

use std::time::Duration;

use tickwheel_queue::{AdvanceError, Timestamp};

use crate::push::Push;

impl Push {
    /// Moves the virtual clock of the queue by `by`, and answers with the new time when that time is committed. At each instant at which the
    /// queue has anything to do, the clock stands still until no message is under way to a target. So no lease of a target ends because the
    /// clock jumped over its end, and messages arrive in the order of their due times.
    ///
    /// An attempt takes at most the time-out of its target, in real time. A message that waits for an open breaker does not hold the clock:
    /// the breaker follows real time.
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
        // The answer comes when no call is under way in the queue. By then each runner has the tasks that were leased for it.
        let start = queue.advance(Duration::ZERO).await?;
        let goal = start.saturating_plus_ms(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
        loop {
            self.settled().await;
            let now = queue.advance_to_wake(goal).await?;
            if now >= goal {
                self.settled().await;
                return Ok(now);
            }
        }
    }

    /// Waits until each target has had nothing under way for a moment.
    async fn settled(&self) {
        for answer in self.ask_all() {
            // A runner answers by dropping its side. One that has ended has nothing under way.
            let _ = answer.await;
        }
    }
}
