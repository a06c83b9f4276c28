//! The choice of the segments that a checkpoint copies to other segments, and the copying.

use std::collections::VecDeque;

use tickwheel_engine::{DueKey, Timestamp};

use super::super::merge::{First, Merge, Tools};
use super::Context;
use super::output::{Origin, Output};
use crate::bounds::Bounds;
use crate::catalog::{Catalog, Segment};
use crate::codec::Names;
use crate::io::Call;
use crate::segment::Level;

/// A segment of an hour or a day is not copied from the beginning of its bucket until this time (ms) after the end of the bucket. In that
/// period, its tasks are probably being delivered. Before and after that period, the segment may be copied if at least half of its records
/// are dead.
const OVERDUE_AFTER_MS: u64 = 3_600_000;

/// A segment of the level `Month` that was not copied before is worth copying to segments of days and hours if its bucket begins within
/// this time (ms), or has begun.
const SPLIT_BEFORE_MS: u64 = 2 * 86_400_000;

/// Copies the live records of some segments to other segments, so that the files of the copied segments can be removed. There are two
/// reasons to copy a segment. The tasks of a month that is about to begin are put into segments of days and hours; this happens at most
/// once to a record. A segment with many dead records wastes space, so its live records are put together with others; the tasks that are
/// due by now go to the segments of overdue tasks.
#[derive(Debug)]
pub(super) struct Moving {
    sources: VecDeque<u32>,
    merge: Option<(u32, Merge)>,
    reads: Vec<Vec<u8>>,
    names: Names,
}

/// The result of a step of the copying.
pub(super) enum Moved {
    /// The calls of the step were added to `calls`, and more steps follow.
    Calls,
    /// All live records are copied.
    All,
}

impl Moving {
    pub(super) fn new(sources: &[u32]) -> Self {
        let sources = sources.iter().copied().collect();
        Self { sources, merge: None, reads: Vec::new(), names: Names::new() }
    }

    /// Chooses segments that are worth copying now, and returns their slots. Together the chosen segments have at most about `bytes_max`
    /// live bytes, and at most `moved_bytes` bytes in all. A segment that is chosen alone may be longer than `moved_bytes`.
    pub(super) fn choose(catalog: &Catalog, now: Timestamp, bytes_max: u64, bounds: &Bounds) -> Vec<u32> {
        let mut worth: Vec<(u64, u32, &Segment)> = catalog
            .segments
            .iter()
            .filter(|(_, segment)| segment.live > 0 && is_worth_it(segment, now))
            .map(|(slot, segment)| (live_bytes(segment), slot, segment))
            .collect();
        // The segments with the smallest share of live bytes come first, because they give back the most space for the bytes that are
        // copied.
        worth.sort_by_key(|(live, slot, segment)| (live * 1_000 / segment.len.max(1), *slot));
        let (mut read, mut written) = (0, 0);
        let mut chosen = Vec::new();
        for (live, slot, segment) in worth {
            read += segment.len;
            written += live;
            if written > bytes_max || (read > bounds.moved_bytes && !chosen.is_empty()) {
                break;
            }
            chosen.push(slot);
        }
        chosen
    }

    pub(super) fn take(&mut self, reads: Vec<Vec<u8>>) {
        self.reads = reads;
    }

    /// Adds the calls of one step. The step copies records until it has enough bytes, until other records have to be read first, or until
    /// the end of a segment.
    ///
    /// # Errors
    /// If the bytes that were read are damaged.
    pub(super) fn step(
        &mut self,
        context: &mut Context<'_>,
        output: &mut Output,
        calls: &mut Vec<Call>,
    ) -> Result<Moved, String> {
        let reads = std::mem::take(&mut self.reads);
        if let Some((_, merge)) = &mut self.merge {
            let (catalog, seeds) = (&*context.catalog, context.seeds);
            merge.take(reads, &mut Tools { catalog, seeds, names: &mut self.names })?;
        }
        let mut bytes = 0;
        loop {
            let Some((source, merge)) = &mut self.merge else {
                let Some(source) = self.sources.pop_front() else { return Ok(Moved::All) };
                self.merge = Some((source, Merge::of_one(source, context.catalog, &context.options.bounds)));
                continue;
            };
            match merge.first(merge.end(), None, context.options.bounds.moved_at_once, context.catalog) {
                First::Reads(reads) => {
                    output.write_part(context, calls);
                    calls.extend(reads);
                    return Ok(Moved::Calls);
                }
                First::Task(task) => {
                    merge.pass(DueKey::of(&task));
                    bytes += output.put(context, &task, Origin::Segment(*source), calls);
                    if bytes >= context.options.background_step_bytes {
                        output.write_part(context, calls);
                        return Ok(Moved::Calls);
                    }
                }
                First::Other(_) => unreachable!("a merge of one segment wants the tasks of all queues"),
                First::Nobody => {
                    output.close(context, calls);
                    self.merge = None;
                    if !calls.is_empty() {
                        return Ok(Moved::Calls);
                    }
                }
            }
        }
    }
}

fn is_worth_it(segment: &Segment, now: Timestamp) -> bool {
    let half_dead = segment.live * 2 <= segment.records;
    let long_past = segment.bucket.end().saturating_plus_ms(OVERDUE_AFTER_MS) < now;
    match segment.bucket.level {
        Level::Overdue | Level::Dead => half_dead,
        // If the tasks of a segment are being delivered now, all its records will be dead soon, and its file is removed without a copy.
        Level::Hour | Level::Day => half_dead && (long_past || segment.bucket.start() > now),
        Level::Month if segment.moved => half_dead,
        Level::Month => half_dead || segment.bucket.start() <= now.saturating_plus_ms(SPLIT_BEFORE_MS),
    }
}

/// Returns about how many bytes of the segment belong to live records.
fn live_bytes(segment: &Segment) -> u64 {
    let share = u128::from(segment.len) * u128::from(segment.live) / u128::from(segment.records.max(1));
    u64::try_from(share).unwrap_or(segment.len)
}

/// Returns about how many bytes of the segment belong to dead records.
pub(super) fn dead_bytes(segment: &Segment) -> u64 {
    segment.len.saturating_sub(live_bytes(segment))
}
