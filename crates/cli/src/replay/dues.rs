//! [`Dues`]: where something may be due, so that the clock need not be asked at every line.

use std::collections::BTreeSet;

use tickwheel_queue::{QueueName, Timestamp};

/// 1,048,576 instants, about 50 MB at most. Beyond that the farthest are known as a range only.
const INSTANTS_MAX: usize = 1 << 20;

/// The instants at which some task of a queue may be due.
///
/// It errs on one side: whatever is due is in here, and what was cancelled or moved stays in, so an instant in here may turn
/// out quiet. It decides nothing; the queue does. Before the first instant the queue's clock need not move, and that is all
/// it is for: lines between which nothing can fire go out without waiting for answers.
///
/// Cost: O(log n) for each call; bounded, see [`INSTANTS_MAX`].
pub(super) struct Dues {
    instants: BTreeSet<(Timestamp, QueueName)>,
    /// From the first to the last of the instants that had no room.
    blurred: Option<(Timestamp, Timestamp)>,
    instants_max: usize,
}

/// Which queues to ask.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// These; nothing can be due in others.
    These(BTreeSet<QueueName>),
    /// All there are: it is not known which.
    All,
}

impl Dues {
    pub(super) fn new() -> Self {
        Self::with_capacity(INSTANTS_MAX)
    }

    fn with_capacity(instants_max: usize) -> Self {
        Self { instants: BTreeSet::new(), blurred: None, instants_max }
    }

    /// A task of this queue is due then.
    pub(super) fn insert(&mut self, due_at: Timestamp, queue: &QueueName) {
        self.instants.insert((due_at, queue.clone()));
        if self.instants.len() > self.instants_max
            && let Some((far, _)) = self.instants.pop_last()
        {
            let (first, last) = self.blurred.unwrap_or((far, far));
            self.blurred = Some((first.min(far), last.max(far)));
        }
    }

    /// How far to go towards `target` so that about `instants` of them are passed; `None`: nothing is due until then.
    pub(super) fn stretch(&self, target: Timestamp, instants: usize) -> Option<Timestamp> {
        let first = self.first().filter(|first| *first <= target)?;
        let mut until_target = self.instants.iter().map(|&(at, _)| at).take_while(|at| *at <= target);
        Some(until_target.nth(instants).map_or(target, |at| at.max(first)))
    }

    /// Nothing is due before this instant; `None`: nothing is due at all.
    fn first(&self) -> Option<Timestamp> {
        let exact = self.instants.first().map(|&(at, _)| at);
        let blurred = self.blurred.map(|(first, _)| first);
        [exact, blurred].into_iter().flatten().min()
    }

    /// Nothing is due after this instant.
    pub(super) fn last(&self) -> Option<Timestamp> {
        let exact = self.instants.last().map(|&(at, _)| at);
        let blurred = self.blurred.map(|(_, last)| last);
        [exact, blurred].into_iter().flatten().max()
    }

    /// The clock has gone to this instant: takes out everything up to it and says which queues may have had something.
    pub(super) fn pass(&mut self, now: Timestamp) -> Asked {
        let mut queues = BTreeSet::new();
        while let Some((at, _)) = self.instants.first()
            && *at <= now
        {
            queues.extend(self.instants.pop_first().map(|(_, queue)| queue));
        }
        match self.blurred {
            Some((first, last)) if first <= now => {
                let left = now.saturating_plus_ms(1);
                self.blurred = (left <= last).then_some((left, last));
                Asked::All
            }
            _ => Asked::These(queues),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms).expect("not negative")
    }

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).expect("a name")
    }

    fn these(names: &[&str]) -> Asked {
        Asked::These(names.iter().map(|name| queue(name)).collect())
    }

    #[test]
    fn passing_takes_what_is_due_and_names_its_queues() {
        let mut dues = Dues::new();
        for (ms, name) in [(20, "b"), (10, "a"), (20, "a"), (20, "a"), (30, "c")] {
            dues.insert(at(ms), &queue(name));
        }
        assert_eq!((dues.first(), dues.last()), (Some(at(10)), Some(at(30))));
        assert_eq!(dues.pass(at(9)), these(&[]));
        assert_eq!(dues.pass(at(20)), these(&["a", "b"]));
        assert_eq!(dues.first(), Some(at(30)));
        assert_eq!(dues.pass(at(30)), these(&["c"]));
        assert_eq!((dues.first(), dues.last()), (None, None));
    }

    #[test]
    fn a_stretch_ends_at_the_target_or_after_enough_instants() {
        let mut dues = Dues::new();
        for ms in [10, 20, 30, 40] {
            dues.insert(at(ms), &queue("a"));
        }
        assert_eq!(dues.stretch(at(9), 10), None);
        assert_eq!(dues.stretch(at(25), 10), Some(at(25)));
        assert_eq!(dues.stretch(at(100), 2), Some(at(30)));
        assert_eq!(dues.stretch(at(10), 2), Some(at(10)));
    }

    /// What has no room is still due: inside the range of the forgotten every instant is looked at, and every queue.
    #[test]
    fn what_has_no_room_is_blurred_but_never_forgotten() {
        let mut dues = Dues::with_capacity(2);
        for ms in [10, 50, 20, 40] {
            dues.insert(at(ms), &queue("a"));
        }
        assert_eq!((dues.first(), dues.last()), (Some(at(10)), Some(at(50))));
        assert_eq!(dues.pass(at(10)), these(&["a"]));
        assert_eq!(dues.pass(at(20)), these(&["a"]));
        assert_eq!(dues.first(), Some(at(40)), "the range begins with the first forgotten");
        assert_eq!(dues.pass(at(40)), Asked::All);
        assert_eq!(dues.first(), Some(at(41)));
        assert_eq!(dues.pass(at(50)), Asked::All);
        assert_eq!(dues.first(), None);
    }
}
