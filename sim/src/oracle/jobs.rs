//! Jobs: each job has the value that was last written for it, no two jobs ever have the same number, and a full disk
//! refuses no change of a job. The oracle of jobs is made from the answers to calls; like the rest of the oracle it
//! knows nothing of the product.
//!
//! One client makes all calls, one at a time. After a crash that leaves a change in doubt, it reads all jobs before it goes on.

use std::collections::BTreeMap;

use super::Violation;

/// A change of a job. Values are numbers here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new job with this value.
    Begin(u64),
    /// The job with the first number now has the second number as its value.
    Keep(u64, u64),
    /// The job with this number is forgotten.
    Forget(u64),
}

/// Everything that the oracle knows of the jobs.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    jobs: BTreeMap<u64, u64>,
    /// A change that may have happened or not.
    open: Option<Change>,
    /// The highest number that a job has had.
    highest: u64,
}

impl Ledger {
    /// Whether it is unknown if the last change happened. If so, the client has to read all jobs first.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.open.is_some()
    }

    /// The numbers of the jobs that exist.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        self.jobs.keys().copied()
    }

    /// A change is under way.
    pub fn called(&mut self, change: Change) {
        self.open = Some(change);
    }

    /// The change was refused and has not happened.
    pub fn refused(&mut self) {
        self.open = None;
    }

    /// The change has happened; `id` is the number of its job.
    ///
    /// # Errors
    /// The change cannot have happened to this job.
    pub fn done(&mut self, id: u64) -> Result<(), Violation> {
        match self.open.take() {
            Some(Change::Begin(value)) if id > self.highest => {
                self.jobs.insert(id, value);
                self.highest = id;
            }
            Some(Change::Keep(of, value)) if of == id => drop(self.jobs.insert(id, value)),
            Some(Change::Forget(of)) if of == id => drop(self.jobs.remove(&id)),
            other => return bad("P6", format!("{other:?} was answered {id}, after {}", self.highest)),
        }
        Ok(())
    }

    /// All jobs were read; `shown` has the value of each. No change may be under way, except one that a crash left in doubt.
    ///
    /// # Errors
    /// Other jobs or values should have been shown.
    pub fn seen(&mut self, shown: &BTreeMap<u64, u64>) -> Result<(), Violation> {
        if *shown == self.jobs {
            self.open = None;
            return Ok(());
        }
        let before = self.clone();
        let id = match self.open {
            Some(Change::Begin(_)) => shown.last_key_value().map_or(0, |(&id, _)| id),
            Some(Change::Keep(id, _) | Change::Forget(id)) => id,
            None => 0,
        };
        if self.open.is_some() && self.done(id).is_ok() && *shown == self.jobs {
            return Ok(());
        }
        bad("P1", format!("{shown:?} are shown, of {before:?}"))
    }
}

fn bad(promise: &'static str, what: String) -> Result<(), Violation> {
    Err(Violation { promise, what: format!("jobs: {what}"), story: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(verdict: Result<(), Violation>) -> Option<&'static str> {
        verdict.err().map(|violation| violation.promise)
    }

    /// Job 5 was kept with value 1; then this change was called, and a crash came.
    fn after(change: Change) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.called(Change::Begin(1));
        ledger.done(5).expect("a new number");
        ledger.called(change);
        ledger
    }

    #[test]
    fn a_crash_leaves_a_change_in_doubt_and_a_look_ends_that() {
        for (change, happened) in [
            (Change::Begin(2), BTreeMap::from([(5, 1), (9, 2)])),
            (Change::Keep(5, 2), BTreeMap::from([(5, 2)])),
            (Change::Forget(5), BTreeMap::new()),
        ] {
            for shown in [happened, BTreeMap::from([(5, 1)])] {
                let mut ledger = after(change);
                ledger.seen(&shown).expect("either may stand");
                assert!(!ledger.is_in_doubt());
                assert_eq!(ledger.seen(&shown), Ok(()), "{change:?}");
                let other = BTreeMap::from([(5, 7)]);
                assert_eq!(promise(ledger.seen(&other)), Some("P1"), "{change:?}");
            }
        }
    }

    #[test]
    fn a_number_is_one_jobs_for_ever() {
        let mut ledger = after(Change::Forget(5));
        ledger.done(5).expect("forgotten");
        ledger.called(Change::Begin(2));
        assert_eq!(promise(ledger.clone().done(5)), Some("P6"));
        assert_eq!(promise(ledger.clone().seen(&BTreeMap::from([(4, 2)]))), Some("P1"));
        ledger.done(6).expect("a new number");
        ledger.called(Change::Keep(6, 3));
        assert_eq!(promise(ledger.done(7)), Some("P6"));
    }
}
