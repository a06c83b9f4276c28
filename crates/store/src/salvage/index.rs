//! Where the newest record of each task is.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{Ended, Seq, Task};

use crate::index::{KeyHash, Naming};

/// Where a record begins.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Spot {
    /// The index of the record's file in the list of files.
    pub(super) file: u32,
    pub(super) offset: u64,
    /// For a record of the log: its CRC-32C, because such a record has no checksum of its own. For a record of a segment: 0.
    pub(super) sum: u32,
}

/// The facts of the newest record of a task, among the records that were read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Known {
    pub(super) seq: Seq,
    /// The hash of the task's queue and key, also of a key that the server made. [`KeyHash::MADE`] if the key leads to another task, or
    /// after [`Index::end`] or [`Index::bury`].
    pub(super) key: KeyHash,
    /// Where the record is. `None`: the task is not to be written, because it ended, or because [`Index::bury`] or [`Index::drop_task`]
    /// says so.
    pub(super) spot: Option<Spot>,
}

/// Where the body of a record is that has no body of its own.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Borrowed {
    pub(super) from: Spot,
    /// The seq of the record that has the body.
    seq: Seq,
    /// Whether the body may be older than the last body of the task.
    pub(super) doubtful: bool,
}

/// Where the newest record of each task is, or that the task ended: some 50 bytes for each task.
///
/// If a task has two records, the record with the higher seq is right, and an end with a higher seq ends the task. So files may be read in
/// any order, with one exception: a record without its body must be read after the record that has the body.
#[derive(Debug)]
pub(super) struct Index {
    naming: Naming,
    known: BTreeMap<u64, Known>,
    /// By id: where the body is, for each task whose newest record has no body of its own.
    borrowed: BTreeMap<u64, Borrowed>,
    /// By id: the newest record in the log that has a body.
    bodies: BTreeMap<u64, (Seq, Spot)>,
    /// By id: a record without its body, if no record that was read has the body.
    bodiless: BTreeMap<u64, Arc<Task>>,
    /// Spans of changes that are missing in the log. Each span begins behind its first number and ends with its second number.
    gaps: Vec<(Seq, Seq)>,
    /// The highest id of all records that were read, and of all damaged records whose id a footer names.
    pub(super) id_max: u64,
    /// The highest seq of all records that were read.
    pub(super) seq_max: Seq,
}

impl Index {
    pub(super) fn new(naming: Naming) -> Self {
        Self {
            naming,
            known: BTreeMap::new(),
            borrowed: BTreeMap::new(),
            bodies: BTreeMap::new(),
            bodiless: BTreeMap::new(),
            gaps: Vec::new(),
            id_max: 0,
            seq_max: Seq::ZERO,
        }
    }

    /// Notes that the changes behind `behind`, up to `to`, are missing in the log.
    pub(super) fn miss(&mut self, behind: u64, to: u64) {
        self.gaps.push((Seq(behind), Seq(to)));
    }

    /// Takes in a record that has its body. `in_log`: the record is in the log, so later records of the log may leave the body out.
    pub(super) fn store(&mut self, task: &Task, spot: Spot, in_log: bool) {
        self.see(task.id, task.seq);
        if in_log && self.bodies.get(&task.id).is_none_or(|(seq, _)| *seq < task.seq) {
            self.bodies.insert(task.id, (task.seq, spot));
        }
        if self.is_newer(task.id, task.seq) {
            self.set(task, spot);
            self.borrowed.remove(&task.id);
            self.bodiless.remove(&task.id);
        }
    }

    /// Takes in a record of the log that leaves its body out, and finds the body. If no record has the body, the record is kept for the
    /// report only.
    pub(super) fn store_bodiless(&mut self, task: Task, spot: Spot) {
        self.see(task.id, task.seq);
        if !self.is_newer(task.id, task.seq) {
            return;
        }
        match self.body_for(&task) {
            Some(borrowed) => {
                self.set(&task, spot);
                self.borrowed.insert(task.id, borrowed);
                self.bodiless.remove(&task.id);
            }
            None => drop(self.bodiless.insert(task.id, Arc::new(task))),
        }
    }

    /// Finds the body of a task: in the newest record of the log that has a body, else in the record that a segment has.
    fn body_for(&self, task: &Task) -> Option<Borrowed> {
        let in_log = self.bodies.get(&task.id).copied();
        let in_segment = || {
            // The record before may have no body of its own either. Then both have the same body.
            if let Some(borrowed) = self.borrowed.get(&task.id) {
                return Some((borrowed.seq, borrowed.from));
            }
            let known = self.known.get(&task.id)?;
            Some((known.seq, known.spot?))
        };
        let (seq, from) = in_log.or_else(in_segment)?;
        // If the task's version is not newer than the record with the body, its owner has not changed the body since. Then the body is
        // right, even if frames are missing. The log has a record with the body for each record that leaves it out. So if no such record
        // was read, it is in a gap.
        let unchanged = task.version <= seq;
        let gap = in_log.is_none() || self.gaps.iter().any(|(behind, to)| seq < *to && *behind < task.seq);
        Some(Borrowed { from, seq, doubtful: gap && !unchanged })
    }

    /// Takes in the end of a task. The end replaces records with a lower seq only.
    pub(super) fn end(&mut self, ended: &Ended) {
        self.see(ended.id, ended.seq);
        let bodiless = self.bodiless.get(&ended.id).is_some_and(|task| task.seq < ended.seq);
        if bodiless {
            self.bodiless.remove(&ended.id);
        }
        if self.is_newer(ended.id, ended.seq) {
            self.known.insert(ended.id, Known { seq: ended.seq, key: KeyHash::MADE, spot: None });
            self.borrowed.remove(&ended.id);
        }
    }

    /// Takes in a tombstone for the record of task `id` with the number `seq`. If no newer record of the task was read, the task is not to
    /// be written.
    pub(super) fn bury(&mut self, id: u64, seq: Seq) {
        self.see(id, seq);
        if self.known.get(&id).is_none_or(|known| known.seq <= seq) {
            self.known.insert(id, Known { seq, key: KeyHash::MADE, spot: None });
            self.borrowed.remove(&id);
        }
    }

    pub(super) fn see(&mut self, id: u64, seq: Seq) {
        self.id_max = self.id_max.max(id);
        self.seq_max = self.seq_max.max(seq);
    }

    fn is_newer(&self, id: u64, seq: Seq) -> bool {
        self.known.get(&id).is_none_or(|known| known.seq < seq)
    }

    fn set(&mut self, task: &Task, spot: Spot) {
        let key = if task.is_keyed() { self.naming.hash(&task.queue, &task.key) } else { KeyHash::MADE };
        self.known.insert(task.id, Known { seq: task.seq, key, spot: Some(spot) });
    }

    pub(super) fn get(&self, id: u64) -> Option<&Known> {
        self.known.get(&id)
    }

    pub(super) fn is_live(&self, id: u64) -> bool {
        self.known.get(&id).is_some_and(|known| known.spot.is_some())
    }

    /// Returns the live tasks.
    pub(super) fn live(&self) -> impl Iterator<Item = (u64, &Known)> {
        self.known.iter().filter(|(_, known)| known.spot.is_some()).map(|(id, known)| (*id, known))
    }

    /// Returns groups of live tasks whose keys have the same hash: the ids of each group.
    pub(super) fn same_keys(&self) -> Vec<Vec<u64>> {
        let keyed = self.live().filter(|(_, known)| known.key != KeyHash::MADE);
        let mut keyed: Vec<(KeyHash, u64)> = keyed.map(|(id, known)| (known.key, id)).collect();
        keyed.sort_unstable();
        let same = keyed.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1);
        same.map(|same| same.iter().map(|(_, id)| *id).collect()).collect()
    }

    /// Returns the ids of the tasks whose payload may be older than their last one.
    pub(super) fn doubtful(&self) -> impl Iterator<Item = u64> {
        self.borrowed.iter().filter(|(_, borrowed)| borrowed.doubtful).map(|(id, _)| *id)
    }

    /// Returns the last record of each task whose payload is in no record that was read.
    pub(super) fn bodiless(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.bodiless.values()
    }

    #[cfg(test)]
    fn borrowed(&self, id: u64) -> Option<Borrowed> {
        self.borrowed.get(&id).copied()
    }

    /// Marks a task as not to be written.
    pub(super) fn drop_task(&mut self, id: u64) {
        if let Some(known) = self.known.get_mut(&id) {
            known.spot = None;
        }
    }

    /// Returns the records to write, in the order of file and offset: where the record is, the id of its task, and where its body is if
    /// another record has the body.
    pub(super) fn into_places(self) -> Vec<(Spot, u64, Option<Spot>)> {
        let Self { known, borrowed, .. } = self;
        let live = known.into_iter().filter_map(|(id, known)| Some((known.spot?, id)));
        let mut places: Vec<_> =
            live.map(|(spot, id)| (spot, id, borrowed.get(&id).map(|borrowed| borrowed.from))).collect();
        places.sort_unstable();
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::sample_task;
    use tickwheel_engine::Outcome;

    const A: Spot = Spot { file: 0, offset: 64, sum: 0 };
    const B: Spot = Spot { file: 1, offset: 4_168, sum: 1 };
    const C: Spot = Spot { file: 1, offset: 5_000, sum: 2 };

    fn index() -> Index {
        Index::new(Naming::new([1; 16]))
    }

    fn task(seq: u64) -> Task {
        sample_task(7, seq, "q", "k", 1_000)
    }

    fn ended(seq: u64) -> Ended {
        let Task { id, queue, key, due_at, .. } = task(1);
        Ended { id, queue, key, seq: Seq(seq), at: due_at, outcome: Outcome::Cancelled }
    }

    #[test]
    fn the_higher_seq_is_right_in_whichever_order_they_come() {
        let mut index = index();
        index.store(&task(5), A, false);
        index.store(&task(4), B, true);
        assert_eq!(index.get(7).map(|known| (known.seq, known.spot)), Some((Seq(5), Some(A))));
        index.store(&task(6), C, true);
        assert_eq!(index.get(7).map(|known| (known.seq, known.spot)), Some((Seq(6), Some(C))));
        index.end(&ended(5));
        assert!(index.is_live(7), "an end before its last record was believed");
        index.end(&ended(7));
        assert!(!index.is_live(7), "an end was not believed");
        index.store(&task(6), C, true);
        assert!(!index.is_live(7), "a record before its end was believed");
    }

    #[test]
    fn a_body_is_found_in_the_record_before_and_is_doubtful_only_across_a_gap() {
        let known = |seq, version| Task { version: Seq(version), ..task(seq) };
        let mut index = index();
        index.store(&task(5), B, true);
        index.store_bodiless(known(9, 8), C);
        assert_eq!(index.borrowed(7), Some(Borrowed { from: B, seq: Seq(5), doubtful: false }));

        // The owner changed the task after the record with the body, and a frame between the two records is missing.
        let mut index = super::tests::index();
        index.store(&task(5), B, true);
        index.miss(6, 7);
        index.store_bodiless(known(9, 8), C);
        assert_eq!(index.borrowed(7), Some(Borrowed { from: B, seq: Seq(5), doubtful: true }));
        // The owner did not change the task after the record with the body.
        index.store_bodiless(known(10, 5), C);
        assert_eq!(index.borrowed(7), Some(Borrowed { from: B, seq: Seq(5), doubtful: false }));
    }

    #[test]
    fn a_body_that_only_a_segment_has_will_do_if_its_owner_changed_nothing() {
        for (version, doubtful) in [(5, false), (8, true)] {
            let mut index = index();
            index.store(&task(5), A, false);
            index.store_bodiless(Task { version: Seq(version), ..task(9) }, C);
            assert_eq!(
                index.borrowed(7),
                Some(Borrowed { from: A, seq: Seq(5), doubtful }),
                "version {version}"
            );
            // The next record without a body finds the body in the same record of the segment.
            index.store_bodiless(Task { version: Seq(version), ..task(10) }, B);
            assert_eq!(
                index.borrowed(7),
                Some(Borrowed { from: A, seq: Seq(5), doubtful }),
                "version {version}"
            );
            assert_eq!(index.bodiless().count(), 0);
        }
    }

    #[test]
    fn a_task_without_a_body_anywhere_is_named_until_it_ends_or_is_put_anew() {
        let mut index = index();
        index.store_bodiless(task(9), C);
        assert_eq!(index.bodiless().count(), 1);
        assert!(!index.is_live(7));
        index.end(&ended(8));
        assert_eq!(index.bodiless().count(), 1, "an end of an earlier time counted");
        index.end(&ended(10));
        assert_eq!(index.bodiless().count(), 0);
        index.store_bodiless(task(12), C);
        index.store(&task(13), B, true);
        assert_eq!((index.bodiless().count(), index.is_live(7)), (0, true));
    }
}
