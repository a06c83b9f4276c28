//! Forecasts: how many tasks fall due in each bucket of time, counted from the possible worlds.

use super::{Oracle, Verdict};

/// The buckets of a forecast, as they were asked for.
#[derive(Debug)]
pub enum Buckets {
    /// This many buckets of one length (ms).
    Even {
        /// The length.
        width_ms: i64,
        /// The number.
        count: i64,
    },
    /// The end of each bucket after the begin of the first (ms).
    Ends(Vec<i64>),
}

impl Oracle {
    /// Checks a forecast of one queue (or of all: `None`) that was taken while no call was open. It was asked for from
    /// `asked` on (`None`: from now), and begins at the instant `from`.
    ///
    /// # Errors
    /// The forecast does not begin at the bucket of now, counts tasks that cannot be there, or leaves out tasks
    /// that certainly are there.
    pub fn forecast(
        &self,
        name: Option<&str>,
        asked: Option<i64>,
        from: i64,
        shape: &Buckets,
        counts: &[u64],
    ) -> Verdict {
        let wall = self.clock.last().1;
        let broken = |what| Err(self.broken(name.unwrap_or("(all)"), None, ("counts", what)));
        let begin = asked.unwrap_or(wall);
        let begin = match shape {
            Buckets::Even { width_ms, .. } => begin - begin.rem_euclid(*width_ms),
            Buckets::Ends(_) => begin,
        };
        if from != begin {
            return broken(format!(
                "a forecast by {shape:?} from {asked:?} begins at {from}, and it is {wall}"
            ));
        }
        let ends: Vec<i64> = match shape {
            Buckets::Even { width_ms, count } => {
                (1..=*count).map(|n| from.saturating_add(n * width_ms)).collect()
            }
            Buckets::Ends(ends) => ends.iter().map(|end| from.saturating_add(*end)).collect(),
        };
        if counts.len() != ends.len() {
            return broken(format!("{} buckets were asked for, and there are {}", ends.len(), counts.len()));
        }
        let meant = || self.queues.iter().filter(|(queue, _)| name.is_none_or(|name| name == *queue));
        let unknown: usize = meant().map(|(_, queue)| queue.lost_keys).sum();
        let mut start = from;
        for (bucket, (&count, end)) in counts.iter().zip(ends).enumerate() {
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
