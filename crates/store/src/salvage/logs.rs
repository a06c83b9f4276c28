//! The log: every frame that checks out, and what is missing between them.

use std::sync::Arc;

use super::source::Source;
use crate::checksum::Seeds;
use crate::disk::Disk;
use crate::layout::{le_u32, log_file};
use crate::log::last_not_zero;
use crate::log::{
    END_MARK_BYTES, FRAMES_AT, FrameHead, HEAD_BYTES, LogHeader, LogUse, frame_bytes, frames, read_log_header,
};
use crate::mend::read_mended;
use crate::newest::{self, Newest};

/// A log file as it was found.
pub(super) struct LogFile {
    pub(super) name: Arc<str>,
    pub(super) len: u64,
    pub(super) header: Option<LogHeader>,
    /// The offset of the one damaged byte of the header, if there is one. `header` was read with the right value of this byte.
    pub(super) mended: Option<u64>,
    /// The generation of the file's present use; 0 if neither the header nor a frame tells it.
    pub(super) generation: u64,
    /// The frames of this use, in the order of their offsets.
    pub(super) frames: Vec<FrameAt>,
    /// The bytes behind the last frame that may be the remains of another frame: the first offset, and the offset behind the last byte.
    pub(super) rest: Option<(u64, u64)>,
}

/// A frame, and the offset where it begins.
#[derive(Copy, Clone, Debug)]
pub(super) struct FrameAt {
    pub(super) at: u64,
    pub(super) head: FrameHead,
    /// The length of the frame's records (bytes).
    pub(super) ops: u32,
}

impl FrameAt {
    pub(super) fn end(&self) -> u64 {
        self.at + frame_bytes(self.ops as usize) as u64
    }
}

impl LogFile {
    /// Reads a whole file, and closes it.
    pub(super) fn read<D: Disk>(source: &mut Source<'_, D>, name: Arc<str>, seeds: &Seeds) -> Self {
        let len = source.len(&name).unwrap_or(0);
        let bytes = source.read(&name, 0, len);
        source.close(&name);
        let mut file = Self::of_bytes(name, &bytes, seeds);
        // A part that the disk fails to read is returned as zeroes. Such zeroes do not prove that the log ends, so the part may be a frame.
        let end = file.frames.last().map_or(FRAMES_AT, FrameAt::end);
        let hidden = || source.unreadable_in(&file.name, end, end + END_MARK_BYTES as u64);
        file.rest = file.rest.or_else(|| hidden().map(|(_, to)| (end, to.min(len))));
        file
    }

    pub(super) fn of_bytes(name: Arc<str>, bytes: &[u8], seeds: &Seeds) -> Self {
        let header = read_mended(bytes, |bytes| read_log_header(bytes, seeds).ok().flatten());
        let mended = header.and_then(|header| header.at);
        let header = header.map(|header| header.value);
        let mut frames: Vec<FrameAt> = frames(bytes, seeds)
            .map(|(at, frame)| FrameAt {
                at: at as u64,
                head: frame.head,
                ops: u32::try_from(frame.ops.len()).expect("a length has four bytes"),
            })
            .collect();
        // The file may also have frames of earlier uses. They are left out.
        let newest = frames.iter().map(|frame| frame.head.generation).max().unwrap_or(0);
        let generation = header.map_or(newest, |header| header.generation);
        frames.retain(|frame| frame.head.generation == generation);
        // The numbers of frames rise within one use of a file. A frame whose number does not rise is left out.
        let mut last = 0;
        frames.retain(|frame| {
            let rises = frame.head.number > last;
            last = last.max(frame.head.number);
            rises
        });
        let len = bytes.len() as u64;
        let mut file = Self { name, len, header, mended, generation, frames, rest: None };
        file.rest = file.rest_of(bytes);
        file
    }

    /// Returns the bytes behind the last frame that the file had when its header was written, and does not have any more.
    fn lost_end(&self) -> Option<(u64, u64)> {
        let from = self.frames.last().map_or(FRAMES_AT, FrameAt::end);
        self.header.filter(|header| self.len < header.len).map(|header| (from.min(self.len), header.len))
    }

    /// Returns the bytes behind the last frame that may be the remains of another frame.
    fn rest_of(&self, bytes: &[u8]) -> Option<(u64, u64)> {
        let from = self.frames.last().map_or(FRAMES_AT, FrameAt::end);
        // Bytes behind the length that the header names are no part of the log.
        let len = self.header.map_or(self.len, |header| header.len.min(self.len));
        let rest = bytes.get(usize::try_from(from).ok()?..usize::try_from(len).ok()?)?;
        // In a file that was all zero before its first frame, bytes that are not zero were part of a frame. A file that was used before has
        // an end mark of zeroes right behind its last frame. If the bytes there are not zero, they were part of a frame.
        let fresh = self.header.is_some_and(|header| header.fresh);
        let wanted = if fresh { rest } else { &rest[..rest.len().min(END_MARK_BYTES)] };
        let mut last = last_not_zero(wanted)? + 1;
        if !fresh && rest.len() >= HEAD_BYTES {
            // The remains are as long as the head of the frame says, if the file has that many bytes.
            let bytes = HEAD_BYTES + le_u32(rest, 8) as usize;
            last = if bytes <= rest.len() { bytes } else { last };
        }
        Some((from, from + last as u64))
    }
}

/// A frame, and the index of its file in the list.
type InFile = (usize, FrameAt);

/// The index of a file in the list, and a part of the file: its first offset, and the offset behind its last byte if that is known.
type InList = (usize, u64, Option<u64>);

/// Frames that are missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Gap {
    /// Where the missing frames should be: a part of a file in the list. `None`: no file in the list has such a part.
    pub(super) place: Option<InList>,
    /// The last change before the missing frames, and the last change in them; `None` if the second is unknown.
    pub(super) changes: (u64, Option<u64>),
    /// The first and the last number of the missing frames; `None` if the last is unknown.
    pub(super) numbers: (u64, Option<u64>),
    /// Whether the missing frames were synced for certain.
    pub(super) certain: bool,
    /// The damage, in words.
    pub(super) what: String,
}

impl Gap {
    /// Returns the most changes that the missing frames can have; `None` if that is unknown.
    pub(super) fn changes_max(&self) -> Option<u64> {
        let (first, last) = self.numbers;
        // If the frames before the gap were taken back, the first number is above the last one. Then the changes before the gap do not tell
        // how many changes are missing.
        let is_told = last.is_some_and(|last| first <= last);
        self.changes.1.filter(|_| is_told).and_then(|last| last.checked_sub(self.changes.0))
    }
}

/// The point after which the log is read.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Floor {
    /// The last frame that the checkpoint has as a whole. Later frames are read from the log.
    pub(super) frame: u64,
    /// The last change of the frame `frame`.
    pub(super) seq: u64,
    /// The lowest generation of the log files that are needed. The checkpoint has the frames of all lower ones.
    pub(super) generation: u64,
    /// The log had the frame with this number, so the log is damaged if it ends earlier.
    pub(super) reach: u64,
    /// Whether it is unknown where the log begins, because the header of the checkpoint is damaged.
    pub(super) unknown: bool,
}

/// The frames of the log that are used, in their order, and the gaps between them.
pub(super) struct Ordered {
    /// Each frame, with the index of its file in the list.
    pub(super) frames: Vec<InFile>,
    pub(super) gaps: Vec<Gap>,
}

/// Puts the frames behind `floor` in their order, and finds the gaps. `newest` is the note that names the newest log file.
pub(super) fn order(files: &[LogFile], floor: Floor, newest: Option<Newest>) -> Ordered {
    let mut used: Vec<usize> =
        (0..files.len()).filter(|index| files[*index].generation >= floor.generation.max(1)).collect();
    used.sort_by_key(|index| files[*index].generation);
    let log = Log { files, used, floor, newest };
    let frames = log.counted();
    let reach = floor.reach.max(newest.map_or(0, |newest| newest.frame));
    let proven = frames.iter().map(|(_, frame)| frame.head.durable).max().unwrap_or(0).max(reach);
    let mut gaps = Vec::new();
    let mut last = (floor.frame, floor.seq);
    let mut before: Option<InFile> = None;
    for (index, frame) in &frames {
        let head = &frame.head;
        // A recovery has the same rule: the numbers and the changes must both go on. If the first frames of a new owner are damaged, frames
        // that the owner took back are found in place of them. Then the numbers go on, and the changes do not.
        let follows = head.number == last.0 + 1 && head.prev_seq.0 == last.1;
        let follows = follows || (before.is_none() && floor.unknown);
        if !follows {
            let place = log.gap_place(before, (*index, *frame));
            let numbers = (last.0 + 1, Some(head.number - 1));
            let what = if head.number == last.0 + 1 {
                format!(
                    "frame {} follows other frames than those before it, which its owner took back",
                    head.number
                )
            } else {
                log.missing(place, &frames_text(numbers))
            };
            gaps.push(Gap {
                what,
                place,
                changes: (changes_from(&frames, before, head, last.1), Some(head.prev_seq.0)),
                numbers,
                certain: proven > last.0,
            });
        }
        last = (head.number, head.seq.0);
        before = Some((*index, *frame));
    }
    gaps.extend(log.end_of(before, last, reach));
    Ordered { frames, gaps }
}

/// Returns the last change that is certain to come before the gap in front of `behind`. Later changes may be missing.
fn changes_from(frames: &[InFile], before: Option<InFile>, behind: &FrameHead, last: u64) -> u64 {
    let Some((_, before)) = before.filter(|(_, before)| before.head.epoch != behind.epoch) else {
        return last;
    };
    // The first frame of the next owner is missing. That owner may have taken back all earlier frames that were not known to be synced.
    let synced = frames.iter().find(|(_, frame)| frame.head.number == before.head.durable);
    synced.map_or(before.head.prev_seq.0, |(_, frame)| frame.head.seq.0).min(last)
}

fn frames_text((from, to): (u64, Option<u64>)) -> String {
    match to {
        Some(to) if to == from => format!("frame {from} does not check out"),
        Some(to) => format!("the frames from {from} to {to} do not check out"),
        None => format!("frames from {from} on do not check out"),
    }
}

/// The log as its files were found.
struct Log<'a> {
    files: &'a [LogFile],
    /// The indexes of the files in use, in the order of their generations.
    used: Vec<usize>,
    floor: Floor,
    /// The note of the newest file.
    newest: Option<Newest>,
}

impl Log<'_> {
    /// Returns the frames behind `floor` that no later owner took back.
    fn counted(&self) -> Vec<InFile> {
        let floor = self.floor.frame;
        let mut void_from = u64::MAX;
        let mut frames = Vec::new();
        for index in self.used.iter().rev() {
            let file = &self.files[*index];
            let counts = |frame: &&FrameAt| frame.head.number > floor && frame.head.number < void_from;
            frames.extend(file.frames.iter().filter(counts).rev().map(|frame| (*index, *frame)));
            void_from = file.frames.iter().map(|frame| frame.head.number).fold(void_from, u64::min);
        }
        frames.reverse();
        frames
    }

    /// Returns where the missing frames between `before` and `frame` should be; `None` if no file has a part for them.
    fn gap_place(&self, before: Option<InFile>, (behind, frame): InFile) -> Option<InList> {
        let files = self.files;
        // The next frame in the same file may be one that a later owner took back, so all frames of the file are searched.
        let next_of = |file: usize, from: FrameAt| files[file].frames.iter().find(|frame| frame.at > from.at);
        if let Some((file, from)) = before
            && let Some(next) = next_of(file, from).filter(|next| next.at > from.end())
        {
            return Some((file, from.end(), Some(next.at)));
        }
        // A file has its first frame at `FRAMES_AT`. If `frame` begins later, the missing frames were in front of it in the same file.
        if frame.at > FRAMES_AT {
            return Some((behind, FRAMES_AT, Some(frame.at)));
        }
        if let Some((file, from)) = before
            && let Some((_, to)) = files[file].rest
        {
            return Some((file, from.end(), Some(to)));
        }
        // Looks for a file between the files of `before` and `frame` that has no readable frame left.
        let from = before.map_or(0, |(file, _)| files[file].generation);
        let to = files[behind].generation;
        let between = |index: &&usize| from < files[**index].generation && files[**index].generation < to;
        let silent = self.used.iter().filter(between).find(|index| files[**index].frames.is_empty());
        silent.map(|index| (*index, FRAMES_AT, files[*index].rest.map(|(_, to)| to)))
    }

    /// Returns the damage in words. If no file has a part for the frames, the text names the log files that are missing.
    fn missing(&self, place: Option<InList>, what: &str) -> String {
        match (place, self.absent().as_slice()) {
            (Some(_), _) | (None, []) => what.to_owned(),
            (None, [file]) => format!("{what}: {} is missing", log_file(file.number)),
            (None, several) => {
                let names: Vec<String> =
                    several.iter().map(|file| log_file(file.number).to_string()).collect();
                format!("{what}: {} are missing", names.join(", "))
            }
        }
    }

    /// Returns the log files that the note or a header names, and that are missing.
    fn absent(&self) -> Vec<LogUse> {
        let Self { files, floor, newest, .. } = *self;
        let is_there = |wanted: &LogUse| files.iter().any(|file| file.generation == wanted.generation);
        // If the header of the checkpoint is damaged, it is unknown which earlier files are needed. Then only the note is used.
        let named = files.iter().filter(|file| !floor.unknown && file.generation >= floor.generation.max(1));
        let named = named.filter_map(|file| file.header.and_then(|header| header.before));
        let mut named: Vec<LogUse> = named.chain(newest.and_then(|newest| newest.file)).collect();
        named.retain(|wanted| wanted.generation >= floor.generation && !is_there(wanted));
        named.sort_by_key(|file| file.generation);
        named.dedup();
        named
    }

    /// Returns the gap at the end of the log, if frames may be missing behind frame `last.0`. `None`: the log ends there.
    fn end_of(&self, before: Option<InFile>, last: (u64, u64), reach: u64) -> Option<Gap> {
        let Self { files, newest, .. } = *self;
        // `absent` is the newest missing file that may have frames behind the last frame that was read. The note names such a file, or the
        // header of a file that was made ready later.
        let last_generation = before.map_or(0, |(file, _)| files[file].generation);
        let absent = self.absent().into_iter().rfind(|file| file.generation > last_generation);
        // Files behind the last frame: files that were made ready, and files that lost all their frames. The note names a file before its
        // first frame. So a file of a later use than the noted one has no frames yet, and is left out.
        let noted = newest.and_then(|newest| newest.file).map_or(u64::MAX, |file| file.generation);
        let later =
            self.used.iter().copied().filter(|index| files[*index].generation <= noted).filter(|index| {
                before.is_none_or(|(file, _)| files[*index].generation > files[file].generation)
            });
        // The length of a file is durable before the note names the file. So a noted file that is shorter than its header says has lost its
        // end.
        let header = |generation| files.iter().find(|file| file.generation == generation)?.header;
        let chain =
            newest::back_from(newest.and_then(|newest| newest.file), |file| Some(header(file)?.before));
        let chain: Vec<u64> = chain.collect();
        let is_noted = |file: &LogFile| chain.contains(&file.generation);
        let lost = |file: &LogFile| file.rest.or_else(|| file.lost_end().filter(|_| is_noted(file)));
        let mut last_files = before.map(|(file, _)| file).into_iter().chain(later);
        let place =
            last_files.find_map(|index| lost(&files[index]).map(|(from, to)| (index, from, Some(to))));
        let certain = last.0 < reach;
        if !certain && place.is_none() && absent.is_none() {
            return None;
        }
        let place = place
            .or_else(|| absent.is_none().then(|| before.map(|(file, frame)| (file, frame.end(), None)))?);
        let what = match (absent, certain) {
            (Some(file), _) => {
                format!("{} is missing, and it may have frames from {} on", log_file(file.number), last.0 + 1)
            }
            (None, true) => format!("the log ends at frame {}, and frame {reach} was synced", last.0),
            (None, false) => format!(
                "what follows frame {} is no frame: a write that a crash cut short, or one that was damaged later",
                last.0
            ),
        };
        Some(Gap { place, changes: (last.1, None), numbers: (last.0 + 1, None), certain, what })
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_engine::{Epoch, Seq, Timestamp};

    use super::*;
    use crate::log::stamp;

    /// Makes a log file with frames of one owner. Each frame is given as its number, the last change before it and the last change in it.
    fn file(name: &str, generation: u64, epoch: u32, frames: &[(u64, u64, u64)], seeds: &Seeds) -> LogFile {
        let header = LogHeader { generation, len: 1 << 13, fresh: true, before: None };
        let mut bytes = header.to_bytes(seeds).to_vec();
        bytes.resize(FRAMES_AT as usize, 0);
        for (number, prev, seq) in frames {
            let head = FrameHead {
                generation,
                epoch: Epoch(epoch),
                number: *number,
                durable: number - 1,
                prev_seq: Seq(*prev),
                seq: Seq(*seq),
                wall: Timestamp::EPOCH,
            };
            let mut frame = vec![0; HEAD_BYTES];
            stamp(&mut frame, head, seeds);
            bytes.extend_from_slice(&frame);
        }
        bytes.resize(1 << 13, 0);
        LogFile::of_bytes(name.into(), &bytes, seeds)
    }

    /// The story: an owner took back the last frames of the owner before, and the first frames of the new owner were damaged. The salvage
    /// took the frames that were taken back for the damaged ones, and reported no gap.
    #[test]
    fn frames_that_were_taken_back_do_not_hide_those_that_are_missing() {
        let seeds = Seeds::new([3; 16]);
        let first = file("log-1", 1, 1, &[(1, 0, 2), (2, 2, 4), (3, 4, 6)], &seeds);
        let whole = file("log-2", 2, 2, &[(2, 2, 4), (3, 4, 9), (4, 9, 12)], &seeds);
        let numbers = |files: &[LogFile]| {
            let ordered = order(files, Floor::default(), None);
            let frames = ordered.frames.iter().map(|(_, frame)| (frame.head.number, frame.head.epoch.0));
            (frames.collect::<Vec<_>>(), ordered.gaps)
        };
        let (frames, gaps) = numbers(&[first, whole]);
        assert_eq!((frames, gaps), (vec![(1, 1), (2, 2), (3, 2), (4, 2)], vec![]));

        let first = file("log-1", 1, 1, &[(1, 0, 2), (2, 2, 4), (3, 4, 6)], &seeds);
        let damaged = file("log-2", 2, 2, &[(4, 9, 12)], &seeds);
        let (frames, gaps) = numbers(&[first, damaged]);
        assert_eq!(frames, [(1, 1), (2, 1), (3, 1), (4, 2)]);
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        assert_eq!(gaps[0].changes_max(), None, "{gaps:?}");
        assert!(gaps[0].what.contains("took back"), "{gaps:?}");
    }
}
