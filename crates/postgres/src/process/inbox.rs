//! [`Inbox`]: the shards of this process that wait for rows of the inbox, and the rows that they refused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::database::{Claim, Refusal};

/// Between the stores of the shards and the thread that reads the inbox for all of them. See [`Polls`](crate::Polls) for the whole way of a
/// row.
#[derive(Debug, Default)]
pub struct Inbox {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    /// The epochs of the shards that wait for rows.
    asking: BTreeMap<u32, i64>,
    /// The rows that were refused and are still in the inbox, except those that are being moved.
    refusals: VecDeque<Refusal>,
    /// Whether a shard knows that more rows are there.
    at_once: bool,
    closed: bool,
}

impl Inbox {
    /// Asks for the next rows of a shard without rows under way. `at_once`: the last read showed that there are more.
    pub fn ask(&self, claim: Claim, at_once: bool) {
        let mut inside = self.lock();
        inside.asking.insert(claim.shard, claim.epoch);
        if at_once {
            inside.at_once = true;
            self.changed.notify_one();
        }
    }

    /// Ends what [`ask`](Self::ask) began, if it began under this epoch: the shard got rows, or is owned no more.
    pub fn end(&self, claim: Claim) {
        let mut inside = self.lock();
        if inside.asking.get(&claim.shard) == Some(&claim.epoch) {
            inside.asking.remove(&claim.shard);
        }
    }

    /// Returns the shards that wait for rows.
    pub fn asking(&self) -> Vec<Claim> {
        self.lock().asking.iter().map(|(&shard, &epoch)| Claim { shard, epoch }).collect()
    }

    /// Adds rows that were refused, to be moved before the next read.
    pub fn refuse(&self, refusals: impl IntoIterator<Item = Refusal>) {
        self.lock().refusals.extend(refusals);
    }

    /// Takes out rows that were refused, at most this number of them.
    pub fn take_refusals(&self, max: usize) -> Vec<Refusal> {
        let refusals = &mut self.lock().refusals;
        let count = refusals.len().min(max);
        refusals.drain(..count).collect()
    }

    /// Returns the ids of the rows that were refused and wait to be moved, by shard.
    pub fn refused_rows(&self) -> BTreeMap<u32, Vec<i64>> {
        let mut rows: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        for Refusal { claim, row, .. } in &self.lock().refusals {
            rows.entry(claim.shard).or_default().push(*row);
        }
        rows
    }

    /// Waits for this time, or until a shard asks for more rows at once. Returns `false` once the inbox is closed.
    pub fn wait(&self, limit: Duration) -> bool {
        let waits = |inside: &mut Inside| !inside.at_once && !inside.closed;
        let waited = self.changed.wait_timeout_while(self.lock(), limit, waits);
        let mut inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        inside.at_once = false;
        !inside.closed
    }

    /// Ends the waiting for good.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // No method leaves a value half changed.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_epoch_that_asked_ends_its_question() {
        let inbox = Inbox::default();
        let [old, new] = [1, 2].map(|epoch| Claim { shard: 7, epoch });
        inbox.ask(old, false);
        inbox.ask(new, false);
        inbox.end(old);
        assert_eq!(inbox.asking(), [new]);
        inbox.end(new);
        assert_eq!(inbox.asking(), []);
    }

    #[test]
    fn a_shard_that_knows_of_more_rows_ends_the_wait() {
        let inbox = Inbox::default();
        inbox.ask(Claim { shard: 7, epoch: 1 }, true);
        assert!(inbox.wait(Duration::from_secs(3_600)));
        assert!(inbox.wait(Duration::ZERO), "the next wait has its whole time");
        inbox.close();
        assert!(!inbox.wait(Duration::from_secs(3_600)));
    }
}
