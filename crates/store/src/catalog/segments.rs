//! The segments that a shard has.

use std::sync::Arc;

use tickwheel_engine::DueKey;

use crate::index::Spot;
use crate::layout::segment_file;
use crate::segment::{Bucket, Run};

/// The facts about one segment that memory keeps.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Segment {
    pub(crate) generation: u64,
    pub(crate) name: Arc<str>,
    pub(crate) bucket: Bucket,
    /// Whether the segment's records were copied from other segments. Such records are copied again only to get rid of the dead records
    /// among them.
    pub(crate) moved: bool,
    /// The length of the finished runs in the file (bytes), 0 until the first run is finished. Bytes behind this length belong to an
    /// unfinished run.
    pub(crate) len: u64,
    /// The runs, in their order in the file.
    pub(crate) runs: Vec<Run>,
    /// Number of live records.
    pub(crate) live: u64,
    /// Number of all records, live and dead.
    pub(crate) records: u64,
    /// Offsets (bytes) of the dead records for which the file has no tombstone yet.
    pub(crate) tombstones: Vec<u64>,
    /// Whether no checkpoint lists the segment any more. The file is removed as soon as no read needs it.
    pub(crate) leaving: bool,
}

impl Segment {
    pub(crate) fn new(generation: u64, bucket: Bucket, moved: bool) -> Self {
        Self {
            generation,
            name: segment_file(generation),
            bucket,
            moved,
            len: 0,
            runs: Vec::new(),
            live: 0,
            records: 0,
            tombstones: Vec::new(),
            leaving: false,
        }
    }

    /// Takes in a run with this number of records, all of them live.
    pub(crate) fn add_run(&mut self, run: Run, records: u64) {
        self.live += records;
        self.records += records;
        self.runs.push(run);
    }

    /// Takes in that the record at this offset is dead, and that the file needs a tombstone for the record.
    pub(crate) fn bury(&mut self, offset: u64) {
        self.bury_silently(offset);
        self.tombstones.push(offset);
    }

    /// Takes in that the record at this offset is dead. The file needs no tombstone, because it has one already, or because the segment is
    /// about to be removed.
    pub(crate) fn bury_silently(&mut self, offset: u64) {
        let index = self.runs.partition_point(|run| run.start <= offset) - 1;
        self.runs[index].bury(offset);
        self.live = self.live.checked_sub(1).expect("a segment has no more dead than it has records");
    }

    /// Returns a lower limit for the due keys of the segment's live records behind `after`; `None`: there is no live record behind `after`.
    pub(crate) fn first_behind(&self, after: DueKey) -> Option<DueKey> {
        if self.live == 0 {
            return None;
        }
        self.runs.iter().filter(|run| run.last > after).map(|run| run.blocks()[0].first).min()
    }
}

/// The segments of a shard, each with a number by which records are found. The number of a removed segment is used again.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Segments {
    slots: Vec<Option<Segment>>,
    layout: u64,
    /// The last generation that was given out.
    generation: u64,
}

impl Segments {
    /// Returns a number that rises with each change of the runs. After such a change, a merge that began earlier does not know all runs, or
    /// knows a run that is gone.
    pub(crate) fn layout(&self) -> u64 {
        self.layout
    }

    /// Makes sure that generations up to this one are not given out again.
    pub(crate) fn skip_generations(&mut self, generation: u64) {
        self.generation = self.generation.max(generation);
    }

    /// Adds an empty segment with a new generation. Returns the number by which the segment is found.
    pub(crate) fn add_new(&mut self, bucket: Bucket, moved: bool) -> u32 {
        self.generation += 1;
        self.add(Segment::new(self.generation, bucket, moved))
    }

    pub(crate) fn add(&mut self, segment: Segment) -> u32 {
        let slot = match self.slots.iter().position(Option::is_none) {
            Some(free) => {
                self.slots[free] = Some(segment);
                free
            }
            None => {
                self.slots.push(Some(segment));
                self.slots.len() - 1
            }
        };
        u32::try_from(slot).expect("fewer segments than files that a folder can have")
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Segment {
        self.rearranged();
        self.slots[slot as usize].take().expect("a segment is known for as long as it is there")
    }

    pub(crate) fn get(&self, slot: u32) -> &Segment {
        self.slots[slot as usize].as_ref().expect("a segment is known for as long as it is there")
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Segment {
        self.slots[slot as usize].as_mut().expect("a segment is known for as long as it is there")
    }

    /// Counts a change of the runs: some runs were added or moved, or are about to be removed.
    pub(crate) fn rearranged(&mut self) {
        self.layout += 1;
    }

    /// Returns the segments that are not about to be removed, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Segment)> {
        let known = self.slots.iter().enumerate();
        let known = known.filter_map(|(slot, segment)| Some((slot as u32, segment.as_ref()?)));
        known.filter(|(_, segment)| !segment.leaving)
    }

    pub(crate) fn bury(&mut self, spot: Spot) {
        self.get_mut(spot.segment).bury(spot.offset);
    }
}
