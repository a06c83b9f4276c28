//! The examination of the log: of each file on its own, and, if the recovery failed, of the order of the files.

use std::sync::Arc;

use tickwheel_engine::Timestamp;

use super::examination::{Depth, Examination, LogFile};
use super::problem::Problem;
use crate::checkpoint::Loaded;
use crate::checksum::Seeds;
use crate::codec::{Names, read_ops};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::layout::HEADER_BYTES;
use crate::log::{FORMAT, FRAMES_AT, find_proof, frame_bytes, read_frame, read_log_header};
use crate::recovery::read_all;

/// A file of the log, and what was found in it.
pub(super) struct Walk {
    pub(super) file: LogFile,
    /// The highest frame number that a frame of the file reports as synced.
    durable: u64,
    /// The damage of the file. It becomes a problem only if the file is needed.
    damage: Option<Problem>,
}

/// Reads the frames of one file. Raises `last_written` in `found` to their latest wall clock. Adds a problem to `found` if the file cannot
/// be read, or has a later format.
pub(super) fn walk<D: Disk>(
    disk: &mut D,
    name: &Arc<str>,
    seeds: &Seeds,
    depth: Depth,
    found: &mut Examination,
) -> Walk {
    let file = LogFile { file: name.to_string(), spare: true, ..LogFile::default() };
    let mut walk = Walk { file, durable: 0, damage: None };
    let bytes = match read_all(disk, name) {
        Ok(bytes) => bytes,
        Err(error) => {
            found.add(error.into());
            return walk;
        }
    };
    walk.file.bytes = bytes.len() as u64;
    let header = match read_log_header(&bytes[..bytes.len().min(HEADER_BYTES)], seeds) {
        Ok(Some(header)) => header,
        Ok(None) => return walk,
        Err(format) => {
            found.add(OpenError::other_format(name, format, FORMAT).into());
            return walk;
        }
    };
    walk.file.generation = Some(header.generation);
    walk.file.used_bytes = FRAMES_AT;
    let mut frames = Frames { seeds, depth, names: Names::new(), wall: None, durable: 0 };
    walk.damage = frames.read(&bytes, header.generation, &mut walk.file);
    walk.durable = frames.durable;
    found.last_written = found.last_written.max(frames.wall);
    walk
}

struct Frames<'a> {
    seeds: &'a Seeds,
    depth: Depth,
    names: Names,
    /// The latest wall clock in the frames.
    wall: Option<Timestamp>,
    /// The highest frame number that one of the frames reports as synced.
    durable: u64,
}

impl Frames<'_> {
    /// Reads the frames of this generation, up to the first bytes that are no such frame. Returns the damage, if there is any.
    fn read(&mut self, bytes: &[u8], generation: u64, file: &mut LogFile) -> Option<Problem> {
        let mut at = FRAMES_AT as usize;
        while let Ok(frame) = read_frame(bytes, at, generation, self.seeds) {
            let number = frame.head.number;
            let (first, last) = file.numbers.unwrap_or((number, number));
            if file.frames > 0 && number != last + 1 {
                let what = format!("frame {number} stands where frame {} should", last + 1);
                return Some(Problem::damage(&*file.file, at as u64, what));
            }
            if self.depth == Depth::Records
                && let Err(error) = read_ops(frame.ops, &mut self.names, |_| Ok(()))
            {
                let what = format!("frame {number}: {error}");
                return Some(Problem::damage(&*file.file, at as u64, what));
            }
            self.wall = self.wall.max(Some(frame.head.wall));
            self.durable = self.durable.max(frame.head.durable);
            file.frames += 1;
            file.numbers = Some((first, number));
            at += frame_bytes(frame.ops.len());
            file.used_bytes = at as u64;
        }
        // A later frame of this generation may prove that the frame which should begin here was synced. If no frame was read, the number of
        // the missing frame is unknown. Then it is enough that the frame just before the later frame was synced, because that frame must
        // have been in this file.
        let next = file.numbers.map(|(_, last)| last + 1);
        let mut from = at;
        while let Some((later_at, later)) = find_proof(bytes, from, next.unwrap_or(1), self.seeds) {
            if later.generation == generation && (next.is_some() || later.durable + 1 >= later.number) {
                let what = format!(
                    "a frame should begin here; frame {} at byte {later_at} was written after it was synced",
                    later.number
                );
                return Some(Problem::damage(&*file.file, at as u64, what));
            }
            from = later_at + 8;
        }
        None
    }
}

/// Whether a recovery would read a file, as far as the file's header and frames tell.
pub(super) fn is_needed(file: &LogFile, checkpoint: Option<&Loaded>) -> bool {
    let from = checkpoint.map_or(0, |loaded| loaded.start.generation);
    file.frames > 0 && file.generation.is_some_and(|generation| generation >= from)
}

/// Checks the log files that a recovery would read, and adds a problem for each damage or gap. Called only if the recovery failed.
pub(super) fn check_chain(mut walks: Vec<Walk>, checkpoint: Option<&Loaded>, found: &mut Examination) {
    let from = checkpoint.map_or(0, |loaded| loaded.start.generation);
    walks.retain(|walk| walk.file.generation.is_some_and(|generation| generation >= from));
    walks.sort_by_key(|walk| walk.file.generation);
    // Without a checkpoint, the first frame of the chain is unknown. If the checkpoint is damaged, `found` has a problem for it already.
    let mut last = checkpoint.map(|loaded| loaded.start.frame);
    let mut end = None;
    let durable = walks.iter().map(|walk| walk.durable).max().unwrap_or(0);
    for Walk { file, damage, .. } in walks {
        let damaged = damage.is_some();
        damage.into_iter().for_each(|damage| found.add(damage));
        let Some((first, to)) = file.numbers else {
            // A damaged file may have had more frames, so the next file may begin at any number.
            last = last.filter(|_| !damaged);
            continue;
        };
        // Frames that were not synced may be missing without damage.
        if let Some(last) = last.filter(|last| first > last + 1 && durable > *last && !damaged) {
            let what = format!("the frames from {} to {} are missing before this file", last + 1, first - 1);
            found.add(Problem::damage(&*file.file, FRAMES_AT, what));
        }
        last = (!damaged).then_some(to);
        end = Some((file.file, file.used_bytes));
    }
    if let (Some(loaded), Some(last), Some((file, offset))) = (checkpoint, last, end)
        && last < loaded.end.last_frame
    {
        let what =
            format!("the log ends at frame {last}; the checkpoint saw frame {}", loaded.end.last_frame);
        found.add(Problem::damage(file, offset, what));
    }
}
