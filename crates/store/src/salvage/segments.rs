//! The records of a segment, each read separately.

use std::collections::BTreeSet;

use tickwheel_engine::{QueueName, Task};

use super::report::{Loss, Unit};
use super::source::Source;
use crate::checksum::crc;
use crate::codec::{Names, Op, split_ops};
use crate::disk::Disk;
use crate::index::KeyHash;
use crate::layout::HEADER_BYTES;
use crate::mend::{Mended, read_mended};
use crate::segment::{
    BadRecord, Footer, RECORD_HEAD_BYTES, Section, SectionKind, TAIL_BYTES, Tail, read_record,
    read_tombstones, record_bytes,
};

/// The tag of the only kind of record that a segment has.
const STORED: u8 = 1;

/// In a search byte by byte, each byte of a segment is looked at this many times at most, on average.
const LOOKS_MAX: u64 = 256;
/// Records of at most this many bytes are looked at even after the search has used up [`LOOKS_MAX`].
const SHORT_BYTES: u64 = 4_096;
/// The most bytes that are read of a part without a record, to name a task in the part.
const NAMED_BYTES_MAX: u64 = 4 << 20;

/// The facts that the caller has about a segment before it is read.
#[derive(Copy, Clone, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) file: &'a str,
    /// The seed of the checksums of the segment's records.
    pub(super) seed: u32,
    /// The length of the segment (bytes) and the number of its records, if a checkpoint lists the segment.
    pub(super) listed: Option<(u64, u64)>,
}

/// A record that does not check out, with the task that the footer names for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Suspect {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) id: u64,
    pub(super) queue: QueueName,
    pub(super) key: KeyHash,
    /// The task that the damaged bytes decode to, right or wrong; `None` if they decode to no task.
    pub(super) says: Option<Task>,
    pub(super) why: String,
}

/// The findings in a segment.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) suspects: Vec<Suspect>,
    pub(super) losses: Vec<Loss>,
    /// The tasks that were decoded from damaged bytes, right or wrong. Each task comes with the index of its loss in `losses`.
    pub(super) named: Vec<(usize, Task)>,
    /// How many records checked out.
    pub(super) records: u64,
    /// The offsets of damaged bytes in tails that have one such byte.
    pub(super) mended: Vec<u64>,
    /// The offsets of dead records.
    pub(super) dead: BTreeSet<u64>,
}

/// Reads a segment, and calls `take` for each record that checks out: with its offset, its task, and whether the record is dead by a
/// tombstone.
pub(super) fn read_segment<D: Disk>(
    source: &mut Source<'_, D>,
    wanted: Wanted<'_>,
    names: &mut Names,
    take: &mut dyn FnMut(u64, Task, bool),
) -> Outcome {
    let there = source.len(wanted.file).unwrap_or(0);
    let len = wanted.listed.map_or(there, |(len, _)| len.min(there));
    let spare_bytes = len.saturating_mul(LOOKS_MAX);
    let mut walk = Walk { source, wanted, names, take, found: Outcome::default(), spare_bytes };
    let (sections, known_from) = walk.sections_from_end(len);
    let more = walk.sections_by_magic(known_from);
    let sections: Vec<Section> = more.into_iter().chain(sections).collect();
    for section in &sections {
        if section.tail.kind == SectionKind::Tombstones {
            walk.tombstones(section);
        }
    }
    let mut at = HEADER_BYTES as u64;
    for section in &sections {
        walk.scan(at, section.tail.start.min(len));
        if section.tail.kind == SectionKind::Run {
            walk.run(section);
        }
        at = at.max(section.tail_at + TAIL_BYTES as u64);
    }
    walk.scan(at, len);
    walk.count(&sections, len, there);
    let found = walk.found;
    source.close(wanted.file);
    found
}

struct Walk<'w, 'd, D> {
    source: &'w mut Source<'d, D>,
    wanted: Wanted<'w>,
    names: &'w mut Names,
    take: &'w mut dyn FnMut(u64, Task, bool),
    found: Outcome,
    /// The number of bytes that a search byte by byte may still read as possible records.
    spare_bytes: u64,
}

impl<D: Disk> Walk<'_, '_, D> {
    /// Returns the sections that can be reached from the end of the segment, first to last, and the offset where the first of them begins.
    fn sections_from_end(&mut self, len: u64) -> (Vec<Section>, u64) {
        let mut sections = Vec::new();
        let mut end = len;
        while end >= (HEADER_BYTES + TAIL_BYTES) as u64 {
            let tail_at = end - TAIL_BYTES as u64;
            let bytes = self.source.read(self.wanted.file, tail_at, TAIL_BYTES as u64);
            let seed = self.wanted.seed;
            let read = |bytes: &[u8; HEADER_BYTES]| {
                Tail::read(bytes, tail_at, seed).filter(|tail| tail.start >= HEADER_BYTES as u64)
            };
            let Some(Mended { value: tail, at }) = read_mended(&bytes, read) else { break };
            self.found.mended.extend(at.map(|at| tail_at + at));
            sections.push(Section { tail, tail_at });
            end = tail.start;
        }
        sections.reverse();
        (sections, end)
    }

    /// Searches for tails before `end` that still check out. Returns their sections, first to last.
    fn sections_by_magic(&mut self, end: u64) -> Vec<Section> {
        let mut sections: Vec<Section> = Vec::new();
        let mut at = HEADER_BYTES as u64;
        while at + TAIL_BYTES as u64 <= end {
            let bytes = self.source.next(self.wanted.file, at, TAIL_BYTES as u64);
            if bytes.len() < TAIL_BYTES {
                break;
            }
            let tail = Tail::read(bytes, at, self.wanted.seed);
            let behind = sections.last().map_or(HEADER_BYTES as u64, |last| last.tail_at + TAIL_BYTES as u64);
            match tail.filter(|tail| tail.start >= behind) {
                Some(tail) => {
                    sections.push(Section { tail, tail_at: at });
                    at += TAIL_BYTES as u64;
                }
                None => at += 1,
            }
        }
        sections
    }

    fn footer(&mut self, section: &Section) -> Option<Vec<u8>> {
        let bytes = self.source.read(self.wanted.file, section.tail.footer_at, section.footer_bytes());
        let whole = bytes.len() as u64 == section.footer_bytes();
        (whole && crc(self.wanted.seed, &bytes) == section.tail.footer_sum).then_some(bytes)
    }

    fn tombstones(&mut self, section: &Section) {
        let tail = section.tail;
        let read = self.footer(section).and_then(|footer| read_tombstones(&footer, tail.count).ok());
        match read {
            Some(offsets) => self.found.dead.extend(offsets),
            None => {
                let what = format!("{} tombstones do not check out", tail.count);
                let (from, to) = (tail.footer_at, Some(section.tail_at));
                let loss = Loss::new(self.wanted.file, from, to, Unit::Tombstones, what);
                self.found.losses.push(loss.at_most(Some(0), Some(tail.count)));
            }
        }
    }

    fn run(&mut self, section: &Section) {
        let tail = section.tail;
        let inside = |footer: &Footer| {
            footer.entries.iter().all(|entry| tail.start + u64::from(entry.at) < tail.footer_at)
        };
        let footer = self.footer(section);
        let footer =
            footer.and_then(|bytes| Footer::read(&bytes, tail.count, self.names).ok()).filter(inside);
        match footer {
            Some(footer) => self.indexed(section, &footer),
            None => {
                let (before, losses) = (self.found.records, self.found.losses.len());
                self.scan(tail.start, tail.footer_at);
                // A footer that cannot be read is no loss of its own, because the records have all its facts.
                let lost = tail.count.saturating_sub(self.found.records - before);
                let holes = &mut self.found.losses[losses..];
                // The run has nothing but records. So each of the other holes has one of the lost records at least.
                let others = holes.len().saturating_sub(1);
                let most = lost.saturating_sub(others as u64).max(lost.min(1));
                for loss in holes {
                    loss.tasks_max = Some(records_max(loss, most));
                    loss.shares(others, lost);
                }
            }
        }
    }

    /// Reads the records of a run, each at the offset that the footer gives.
    fn indexed(&mut self, section: &Section, footer: &Footer) {
        let start = section.tail.start;
        for (nth, entry) in footer.entries.iter().enumerate() {
            let from = start + u64::from(entry.at);
            let next = footer.entries.get(nth + 1).map(|next| start + u64::from(next.at));
            let to = next.unwrap_or(section.tail.footer_at);
            let is_dead = self.found.dead.contains(&from);
            let bytes = self.source.next(self.wanted.file, from, to - from);
            match read_record(bytes, from, self.wanted.seed, self.names) {
                Ok((task, _)) => {
                    self.found.records += 1;
                    (self.take)(from, task, is_dead);
                }
                Err(_) if is_dead => {}
                Err(error) => {
                    let why = match error {
                        BadRecord::Damaged(what) => what,
                        BadRecord::Short(_) => "a record does not end where the next one begins".to_owned(),
                    };
                    let says = says(bytes, self.names);
                    let (id, key) = (entry.id, entry.key);
                    let queue = footer.queues[entry.queue as usize].clone();
                    self.found.suspects.push(Suspect { from, to, id, queue, key, says, why });
                }
            }
        }
    }

    /// Searches for records byte by byte, in a part of the file that no tail describes, or in a run whose footer is damaged.
    fn scan(&mut self, from: u64, to: u64) {
        let mut at = from;
        let mut bad_from = None;
        while at < to {
            match self.record_at(at, to) {
                Some((task, bytes)) => {
                    if let Some(bad) = bad_from.take() {
                        self.hole(bad, at);
                    }
                    self.found.records += 1;
                    let is_dead = self.found.dead.contains(&at);
                    (self.take)(at, task, is_dead);
                    at += bytes;
                }
                None => {
                    bad_from = bad_from.or(Some(at));
                    at += 1;
                }
            }
        }
        if let Some(bad) = bad_from {
            self.hole(bad, to);
        }
    }

    /// Returns the record that begins at `at`, and its length (bytes). `None`: no record checks out there, or the search may not read more.
    fn record_at(&mut self, at: u64, to: u64) -> Option<(Task, u64)> {
        let head = self.source.next(self.wanted.file, at, (RECORD_HEAD_BYTES as u64).min(to - at));
        if head.get(4) != Some(&STORED) {
            return None;
        }
        let bytes = record_bytes(head).filter(|bytes| *bytes <= to - at)?;
        // A payload can look like the heads of many long records. So each try takes the length of the possible record off `spare_bytes`.
        self.spare_bytes = self.spare_bytes.checked_sub(bytes).or((bytes <= SHORT_BYTES).then_some(0))?;
        let record = self.source.next(self.wanted.file, at, bytes);
        let (task, _) = read_record(record, at, self.wanted.seed, self.names).ok()?;
        Some((task, bytes))
    }

    /// Adds a loss for bytes in which no record checks out.
    fn hole(&mut self, from: u64, to: u64) {
        let index = self.found.losses.len();
        let loss = Loss::new(self.wanted.file, from, Some(to), Unit::Records, "no record here checks out");
        // At most one task is named: the task of a record at the beginning of the bytes. The bytes may have had more tasks.
        let bytes = self.source.read(self.wanted.file, from, (to - from).min(NAMED_BYTES_MAX));
        if let Some(task) = says(&bytes, self.names) {
            self.found.named.push((index, task));
        }
        self.found.losses.push(loss);
    }

    /// Sets how many records each loss outside the sections can have had at most, by the numbers in the checkpoint and in the tails. Adds a
    /// loss if the file is shorter than the checkpoint says.
    fn count(&mut self, sections: &[Section], len: u64, there: u64) {
        let runs = sections.iter().filter(|section| section.tail.kind == SectionKind::Run);
        let of_tails: u64 = runs.map(|section| section.tail.count).sum();
        let covered: u64 =
            sections.iter().map(|section| section.tail_at + TAIL_BYTES as u64 - section.tail.start).sum();
        let unknown = len.saturating_sub(HEADER_BYTES as u64 + covered);
        let (listed_len, listed) = self.wanted.listed.unwrap_or((len, u64::MAX));
        let cut = listed_len > there;
        if unknown == 0 && !cut {
            return;
        }
        // `missing` counts the listed records that no readable tail counts and that the search did not find.
        let suspects = self.found.suspects.len() as u64;
        let known = of_tails.max(self.found.records + suspects);
        let missing = self.wanted.listed.map(|_| listed.saturating_sub(known));
        let file = self.wanted.file;
        let covers = |loss: &Loss| {
            let inside = |section: &Section| section.tail.start <= loss.from && loss.from < section.tail_at;
            loss.unit == Unit::Records && !sections.iter().any(inside)
        };
        let holes = self.found.losses.iter().filter(|loss| covers(loss)).count() + usize::from(cut);
        for loss in self.found.losses.iter_mut().filter(|loss| covers(loss)) {
            loss.tasks_max = missing.map(|missing| records_max(loss, missing));
            if let Some(missing) = missing {
                loss.shares(holes - 1, missing);
            }
            // The bytes may have had tombstones.
            loss.ended_max = None;
        }
        if cut {
            let what = format!("the file ends here, and it had {listed_len} bytes");
            let mut loss = Loss::new(file, there, Some(listed_len), Unit::Records, what);
            if let Some(missing) = missing {
                loss.shares(holes - 1, missing);
            }
            let tasks_max = missing.map(|missing| records_max(&loss, missing));
            self.found.losses.push(loss.at_most(tasks_max, None));
        }
    }
}

/// Returns how many of the `missing` records the bytes of this loss can have had at most.
fn records_max(loss: &Loss, missing: u64) -> u64 {
    let bytes = loss.to.map_or(u64::MAX, |to| to.saturating_sub(loss.from));
    missing.min(bytes.div_ceil(RECORD_HEAD_BYTES as u64))
}

/// Decodes the task of a damaged record; `None` if the bytes are no record of a task.
fn says(bytes: &[u8], names: &mut Names) -> Option<Task> {
    match split_ops(bytes.get(4..)?, names).next()?.op {
        Ok(Op::Stored(task)) => Some(task),
        _ => None,
    }
}
