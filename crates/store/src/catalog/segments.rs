//! The segments a shard has.

use std::sync::Arc;

use tickwheel_engine::DueKey;

use crate::index::Spot;
use crate::layout::segment_file;
use crate::segment::{Bucket, Run};

/// A segment, as memory knows it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Segment {
    pub(crate) generation: u64,
    pub(crate) name: Arc<str>,
    pub(crate) bucket: Bucket,
    /// Whether the segment's records were in another segment before. They are moved again only to get rid of the dead records among them.
    pub(crate) moved: bool,
    /// Bytes of the file that count. Bytes behind them were never finished. 0 until the first run is finished.
    pub(crate) len: u64,
    /// The runs, in the order in which they stand in the file.
    pub(crate) runs: Vec<Run>,
    /// Live records.
    pub(crate) live: u64,
    /// Records in all.
    pub(crate) records: u64,
    /// Offsets of dead records that no section of the file names as dead yet.
    pub(crate) tombstones: Vec<u64>,
    /// Whether no checkpoint has the segment any more. Its file goes as soon as no read needs it.
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

    /// Takes in a run whose records are all live.
    pub(crate) fn add_run(&mut self, run: Run, records: u64) {
        self.live += records;
        self.records += records;
        self.runs.push(run);
    }

    /// Takes in that a record is live no more, and that the file has to say so.
    pub(crate) fn bury(&mut self, offset: u64) {
        self.bury_silently(offset);
        self.tombstones.push(offset);
    }

    /// Takes in that a record is live no more, and that the file says so already.
    pub(crate) fn bury_silently(&mut self, offset: u64) {
        let index = self.runs.partition_point(|run| run.start <= offset) - 1;
        self.runs[index].bury(offset);
        self.live = self.live.checked_sub(1).expect("a segment has no more dead than it has records");
    }

    /// A place that no live record of the segment behind `after` stands before; `None`: there is no live record behind `after`.
    pub(crate) fn first_behind(&self, after: DueKey) -> Option<DueKey> {
        if self.live == 0 {
            return None;
        }
        self.runs.iter().filter(|run| run.last > after).map(|run| run.blocks()[0].first).min()
    }
}

/// The segments of a shard, each with a number that records are found by. Numbers are used again.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Segments {
    slots: Vec<Option<Segment>>,
    layout: u64,
    /// The last generation that was given out.
    generation: u64,
}

impl Segments {
    /// Counts changes of the runs. After such a change, a merge that began before does not know all runs, or knows a run that is gone.
    pub(crate) fn layout(&self) -> u64 {
        self.layout
    }

    /// Generations up to this one are not given out again.
    pub(crate) fn skip_generations(&mut self, generation: u64) {
        self.generation = self.generation.max(generation);
    }

    /// Adds an empty segment with a generation of its own.
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

    /// Takes in that runs came, moved or are about to go.
    pub(crate) fn rearranged(&mut self) {
        self.layout += 1;
    }

    /// The segments that stay.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Segment)> {
        let known = self.slots.iter().enumerate();
        let known = known.filter_map(|(slot, segment)| Some((slot as u32, segment.as_ref()?)));
        known.filter(|(_, segment)| !segment.leaving)
    }

    pub(crate) fn bury(&mut self, spot: Spot) {
        self.get_mut(spot.segment).bury(spot.offset);
    }
}
