//! Checks the records of one run: compares each record with the footer of the run.

use tickwheel_engine::{DueKey, Task};

use super::examination::Examination;
use super::problem::Problem;
use crate::codec::Names;
use crate::disk::Disk;
use crate::error::OpenError;
use crate::index::Naming;
use crate::segment::{BadRecord, Bucket, Entry, Footer, Level, Tail, read_record};

/// A run whose records are to be checked.
pub(super) struct Records<'a> {
    pub(super) file: &'a str,
    pub(super) bucket: Bucket,
    pub(super) tail: Tail,
    pub(super) footer: &'a Footer,
    pub(super) seed: u32,
    pub(super) naming: &'a Naming,
    pub(super) names: &'a mut Names,
}

impl Records<'_> {
    /// Checks the records of the run, block by block. Adds each problem to `found`. Returns the bytes of all blocks that were read. A
    /// footer that contradicts itself is one problem, and then no record is read.
    pub(super) fn check<D: Disk>(&mut self, disk: &mut D, found: &mut Examination) -> u64 {
        let (footer, tail) = (self.footer, self.tail);
        if let Some(what) = self.misplaced() {
            found.add(Problem::damage(self.file, tail.footer_at, what));
            return 0;
        }
        let mut before = DueKey::START;
        let mut checked = 0;
        let mut entries = footer.entries.as_slice();
        for (index, block) in footer.blocks.iter().enumerate() {
            let (of_block, rest) = entries.split_at(block.records as usize);
            entries = rest;
            let from = tail.start + u64::from(block.at);
            let to =
                footer.blocks.get(index + 1).map_or(tail.footer_at, |next| tail.start + u64::from(next.at));
            let bytes = match read(disk, self.file, from, to) {
                Ok(bytes) => bytes,
                Err(error) => {
                    found.add(error.into());
                    continue;
                }
            };
            checked += bytes.len() as u64;
            for (nth, entry) in of_block.iter().enumerate() {
                let at = (entry.at - block.at) as usize;
                let end = of_block.get(nth + 1).map_or(bytes.len(), |next| (next.at - block.at) as usize);
                let offset = tail.start + u64::from(entry.at);
                let record = bytes.get(at..end.min(bytes.len())).unwrap_or(&[]);
                match self.record(record, end - at, offset, *entry) {
                    Ok(task) => {
                        let place = DueKey::of(&task);
                        if place <= before && before != DueKey::START {
                            let what = "a record before one that is due earlier";
                            found.add(Problem::damage(self.file, offset, what));
                        } else if nth == 0 && place != block.first {
                            let what = "the footer has another place for a block";
                            found.add(Problem::damage(self.file, tail.footer_at, what));
                        }
                        before = place;
                    }
                    Err(what) => found.add(Problem::damage(self.file, offset, what)),
                }
            }
        }
        // `before` is the due key of the last record without damage. The due key of a damaged record is unknown, so a `last` above `before`
        // may be right.
        if footer.last.is_some_and(|last| before > last) {
            found.add(Problem::damage(self.file, tail.footer_at, "the footer has another last place"));
        }
        checked
    }

    /// Returns how the footer contradicts itself; `None` if it does not. After a contradiction, the offsets of the records are unknown.
    fn misplaced(&self) -> Option<&'static str> {
        let Footer { blocks, entries, .. } = self.footer;
        let mut at = 0_usize;
        for block in blocks {
            if block.records == 0 || entries.get(at).is_none_or(|entry| entry.at != block.at) {
                return Some("a block of the footer does not begin with a record");
            }
            at += block.records as usize;
        }
        let rises = entries.is_sorted_by(|a, b| a.at < b.at);
        let inside = |entry: &Entry| self.tail.start + u64::from(entry.at) < self.tail.footer_at;
        if at != entries.len() || !rises || entries.first().is_none_or(|entry| entry.at != 0) {
            return Some("the entries of the footer do not follow each other");
        }
        (!entries.iter().all(inside)).then_some("an entry of the footer points beyond the records")
    }

    /// Decodes `bytes` as the record that `entry` of the footer describes. The record has to be `wanted` bytes long. `Err` says how the
    /// record is damaged, or how it differs from the footer or the segment.
    fn record(&mut self, bytes: &[u8], wanted: usize, offset: u64, entry: Entry) -> Result<Task, String> {
        let (task, length) = match read_record(bytes, offset, self.seed, self.names) {
            Ok(read) => read,
            Err(BadRecord::Damaged(what)) => return Err(what),
            Err(BadRecord::Short(_)) => return Err("a record reaches beyond its place".to_owned()),
        };
        if length != wanted {
            return Err("a record does not fill its place".to_owned());
        }
        let queue = self.footer.queues.get(entry.queue as usize);
        let agrees = task.id == entry.id
            && self.naming.of(&task) == entry.key
            && queue == Some(&task.queue)
            && task.lease.is_some() == entry.leased
            && task.dead().is_some() == entry.dead;
        if !agrees {
            return Err(format!("the footer has this as task {}, and it is another or differs", entry.id));
        }
        let fits = self.bucket.start() <= task.due_at && task.due_at <= self.bucket.end();
        if (self.bucket.level == Level::Dead) != entry.dead {
            return Err(format!("task {} is dead or not, and its segment is for the others", task.id));
        }
        if self.bucket.level != Level::Overdue && !fits {
            return Err(format!("task {} is not due in the time of its segment", task.id));
        }
        Ok(task)
    }
}

fn read<D: Disk>(disk: &mut D, file: &str, from: u64, to: u64) -> Result<Vec<u8>, OpenError> {
    let wanted = usize::try_from(to - from).expect("a block is some kilobytes, or one task");
    let mut bytes = vec![0; wanted];
    let count = disk.read(file, from, &mut bytes)?;
    if count < wanted {
        return Err(OpenError::corrupt(file, from + count as u64, "it ends before its records do"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_disk::FsDisk;
    use crate::index::KeyHash;
    use crate::segment::{RunWriter, Written};
    use tickwheel_engine::QueueName;

    const SEED: u32 = 9;
    const HOUR_MS: i64 = 3_600_000;

    /// Writes a run of two records with the key hashes of `key_of`, and makes its footer. Passes the footer to `change`, checks the run as
    /// one of the hour `bucket_index`, and returns the problems.
    fn found(
        key_of: impl Fn(&Naming, &Task) -> KeyHash,
        bucket_index: u64,
        change: impl Fn(&mut Footer),
    ) -> Vec<Problem> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut disk = FsDisk::new(dir.path()).expect("a directory");
        let naming = Naming::new([5; 16]);
        let mut writer = RunWriter::new(SEED, 64, 1);
        for id in 1..=2 {
            let task = crate::conformance::sample_task(id, id, "q", "k", HOUR_MS * 10 + id as i64);
            writer.push(&task, key_of(&naming, &task));
        }
        let (at, bytes, Written { run, entries, .. }) = writer.finish();
        disk.create("file").and_then(|()| disk.write_at("file", at, &bytes)).expect("written");
        let queues = vec![QueueName::new("q").expect("a name")];
        let mut footer = Footer { blocks: run.blocks().to_vec(), queues, entries, last: Some(run.last) };
        change(&mut footer);
        let tail = Tail {
            kind: crate::segment::SectionKind::Run,
            start: run.start,
            footer_at: run.end,
            footer_sum: 0,
            count: 2,
        };
        let bucket = Bucket { level: Level::Hour, index: bucket_index };
        let mut names = Names::new();
        let mut records = Records {
            file: "file",
            bucket,
            tail,
            footer: &footer,
            seed: SEED,
            naming: &naming,
            names: &mut names,
        };
        let mut found = Examination::default();
        records.check(&mut disk, &mut found);
        found.problems
    }

    /// A checksum shows only that the bytes are as they were written. This test is about a footer that was wrong when it was written.
    #[test]
    fn a_footer_that_says_something_else_is_seen() {
        let right = |naming: &Naming, task: &Task| naming.of(task);
        assert_eq!(found(right, 10, |_| {}), []);
        let cases: [(Vec<Problem>, &str); 8] = [
            (found(|_, _| KeyHash(7), 10, |_| {}), "task 1, and it is another"),
            (found(right, 11, |_| {}), "not due in the time"),
            (found(right, 10, |footer| footer.entries[0].id = 3), "task 3"),
            (found(right, 10, |footer| footer.entries[1].leased = true), "task 2"),
            (found(right, 10, |footer| footer.queues = vec![QueueName::new("r").expect("a name")]), "task 1"),
            (found(right, 10, |footer| footer.last = Some(DueKey::START)), "another last place"),
            (found(right, 10, |footer| footer.blocks[1].first = DueKey::START), "another place for a block"),
            (found(right, 10, |footer| footer.entries[1].at += 1), "does not begin with a record"),
        ];
        for (problems, what) in cases {
            let told = problems.iter().any(|problem| problem.what.contains(what));
            assert!(told, "{what} is not among {problems:#?}");
        }
    }
}
