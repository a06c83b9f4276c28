//! The checkpoint that the log is read on top of, or the parts of it that can be read.

use super::found::Reading;
use super::logs::{Floor, LogFile, Ordered, order};
use super::report::{Loss, Unit};
use super::source::Source;
use crate::checkpoint::{ALL_BLOCKS, ENDED_TASKS, Hole, Pieces, Start, read_pieces, read_start};
use crate::disk::Disk;
use crate::layout::{HEADER_BYTES, Listing, checkpoint_file};
use crate::mend::read_mended;
use crate::newest::Newest;

/// The checkpoint that a salvage starts from, as far as it can be read.
pub(super) struct Base {
    pub(super) number: u64,
    pub(super) start: Option<Start>,
    pub(super) pieces: Pieces,
    /// The bytes of each hole in `pieces`, in the same order.
    holes: Vec<Vec<u8>>,
}

impl Reading {
    /// Chooses the checkpoint to start from: the newest one if it is whole; else the newest whole one behind which the log has all synced
    /// frames; else `None` if the log has all synced frames from frame 1 on; else the readable parts of the newest one. Also returns `None`
    /// if there is no checkpoint.
    pub(super) fn choose_base<D: Disk>(
        &mut self,
        source: &mut Source<'_, D>,
        listing: &Listing,
        logs: &[LogFile],
        newest: Option<Newest>,
    ) -> Option<Base> {
        let mut damaged: Option<Base> = None;
        for number in listing.checkpoints.iter().rev() {
            let base = self.read_checkpoint(source, *number);
            let whole = base.start.is_some() && base.pieces.is_whole();
            let makes_up = || {
                let ordered = order(logs, floor_of(Some(&base)), newest);
                ordered.gaps.iter().all(|gap| !gap.certain)
            };
            if whole && (damaged.is_none() || makes_up()) {
                if let Some(damaged) = damaged {
                    self.spare(damaged.number);
                }
                return Some(base);
            }
            damaged = damaged.or(Some(base));
        }
        // If a crash came right after the first checkpoint, the log still has all frames from frame 1 on. Then no checkpoint is needed.
        let from_the_start = order(logs, Floor::default(), newest);
        let begins = from_the_start.frames.first().is_some_and(|(_, frame)| frame.head.number == 1);
        if let Some(base) = &damaged
            && begins
            && from_the_start.gaps.iter().all(|gap| !gap.certain)
        {
            self.spare(base.number);
            return None;
        }
        damaged
    }

    /// Adds a note to the report: this checkpoint is damaged, and the log replaces it.
    fn spare(&mut self, number: u64) {
        let file = checkpoint_file(number);
        self.found.report.notes.push(format!("{file} is damaged, and the log makes up for it"));
    }

    fn read_checkpoint<D: Disk>(&mut self, source: &mut Source<'_, D>, number: u64) -> Base {
        let file = checkpoint_file(number);
        let len = source.len(&file).unwrap_or(0);
        let bytes = source.read(&file, 0, len);
        source.close(&file);
        let start = read_mended(&bytes, |bytes| read_start(bytes, number, &self.seeds).ok().flatten());
        let mended = start.and_then(|start| start.at);
        self.found.report.read.mended.extend(mended.map(|at| (file.to_string(), at)));
        let pieces = read_pieces(&bytes, number, &self.seeds);
        let holes = pieces.holes.iter().map(|hole| bytes[hole.from as usize..hole.to as usize].to_vec());
        let holes = holes.collect();
        Base { number, start: start.map(|start| start.value), pieces, holes }
    }

    /// Adds the content of the checkpoint to the findings, apart from the segments. Each hole becomes a loss.
    pub(super) fn take_base(&mut self, base: Option<&Base>) {
        let Some(Base { number, start, pieces, holes }) = base else { return };
        let file = checkpoint_file(*number);
        self.found.report.read.checkpoint = Some(file.to_string());
        self.found.report.read.records += pieces.records;
        if let Some(start) = start {
            (self.found.epoch, self.found.seq) =
                (self.found.epoch.max(start.epoch), self.found.seq.max(start.seq));
        }
        pieces
            .rules
            .iter()
            .for_each(|effect| self.found.rules.apply(effect.clone(), &mut self.found.histories));
        pieces.ended.iter().for_each(|ended| self.take_ended(ended));
        match pieces.end {
            Some(end) => {
                self.found.state.join(end.state);
                self.found.wall = self.found.wall.max(end.wall);
            }
            // The block with the engine state is lost, so any number may be a key that a client used.
            None => self.found.state.forget_numbers(),
        }
        let known = pieces.end.map(|end| end.ended.saturating_sub(pieces.ended.len() as u64));
        let of_ends = pieces.holes.iter().filter(|hole| hole.held == ENDED_TASKS).count();
        for (hole, bytes) in pieces.holes.iter().zip(holes) {
            self.lose_block(&file, hole, known.map(|count| (count, of_ends)), pieces.segments.is_none());
            self.hear_block(self.found.report.losses.len() - 1, bytes);
        }
    }

    /// Adds a loss for a part of the checkpoint that does not check out. `known`: how many ended tasks the checkpoint has lost in all, and how
    /// many such parts had them, if its end was read. `without_list`: no list of segments was read.
    fn lose_block(&mut self, file: &str, hole: &Hole, known: Option<(u64, usize)>, without_list: bool) {
        let held = hole.held;
        let (has_rules, has_ends) = (held.contains("schedules"), held.contains("ended tasks"));
        let has_ends = has_ends || held == ALL_BLOCKS;
        let has_rules = has_rules || held == ALL_BLOCKS;
        let what = match known.filter(|_| held == ENDED_TASKS) {
            Some((count, 1)) => format!("a block does not check out; it had {count} {held}"),
            Some((count, parts)) => {
                format!(
                    "a block does not check out; the {parts} such parts of the file had {count} {held} together"
                )
            }
            None => format!("a block does not check out; it had {held}"),
        };
        let mut loss = Loss::new(file, hole.from, Some(hole.to), Unit::Block, what);
        // No task is in the block: the segments have the tasks.
        (loss.tasks_max, loss.ended_max) = (Some(0), (!without_list).then_some(0));
        (loss.rules_may_be_older, loss.ends_may_be_forgotten) = (has_rules, has_ends);
        self.traces.wants_names |= has_rules;
        self.found.report.losses.push(loss);
    }

    /// Adds a loss for the header of the checkpoint, which would name the frame behind which the log is read. Without the header all frames
    /// are read, also old ones. So a task that only old frames have may be saved although it ended long ago.
    pub(super) fn lose_start(&mut self, base: &Base, ordered: &Ordered) {
        let covered = base.pieces.end.map_or(u64::MAX, |end| end.last_frame);
        let old = ordered.frames.iter().filter(|(_, frame)| frame.head.number <= covered);
        let of_frames = old.map(|(_, frame)| frame.head.seq.0.saturating_sub(frame.head.prev_seq.0));
        let changes = of_frames.fold(0_u64, u64::saturating_add);
        let what = "its header does not check out; it would say where the log goes on";
        let file = checkpoint_file(base.number);
        let loss = Loss::new(&*file, 0, Some(HEADER_BYTES as u64), Unit::Block, what);
        self.found.log_is_torn = true;
        self.found.report.losses.push(loss.at_most(Some(0), Some(changes)));
    }
}

/// Returns the point after which the log is read. Without a checkpoint, or without its header, the log is read from its first frame on.
pub(super) fn floor_of(base: Option<&Base>) -> Floor {
    let Some(base) = base else { return Floor::default() };
    let reach = base.pieces.end.map_or(0, |end| end.last_frame);
    match base.start {
        Some(start) => Floor {
            frame: start.frame,
            seq: start.seq.0,
            generation: start.generation,
            reach,
            unknown: false,
        },
        None => Floor { reach, unknown: true, ..Floor::default() },
    }
}
