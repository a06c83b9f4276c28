//! Forecasts: how many tasks fall due in each bucket of time, counted from the possible worlds.

use super::{Oracle, Verdict};

impl Oracle {
    /// Checks a forecast of one queue (or of all: `None`) that was taken while no call was open. It begins at the
    /// instant `from`, in buckets of `width_ms`.
    ///
    /// # Errors
    /// The forecast does not begin at the bucket of now, counts tasks that cannot be there, or leaves out tasks
    /// that certainly are there.
    pub fn forecast(&self, name: Option<&str>, from: i64, width_ms: u64, counts: &[u64]) -> Verdict {
        let wall = self.clock.last().1;
        let broken = |what| Err(self.broken(name.unwrap_or("(all)"), None, ("counts", what)));
        let width = i64::try_from(width_ms).unwrap_or(i64::MAX);
        if from != wall - wall.rem_euclid(width) {
            return broken(format!("a forecast by {width_ms} ms begins at {from}, and it is {wall}"));
        }
        let meant = || self.queues.iter().filter(|(queue, _)| name.is_none_or(|name| name == *queue));
        let unknown: usize = meant().map(|(_, queue)| queue.lost_keys).sum();
        let mut start = from;
        for (bucket, &count) in counts.iter().enumerate() {
            let end = start.saturating_add(width);
            let (mut least, mut most) = (0, unknown as u64);
            for book in meant().flat_map(|(_, queue)| queue.keys.values()) {
                let (must, may) = book.due_within(start.max(wall + 1), end - 1, &self.clock);
                least += u64::from(must);
                most += u64::from(may);
            }
            if !(least..=most).contains(&count) {
                let what =
                    format!("{count} in bucket {bucket}, from {start} to {end}, not {least} to {most}");
                return broken(format!("a forecast has {what}: {counts:?}"));
            }
            start = end;
        }
        Ok(())
    }
}
