//! [`recover`]: reads the state of a shard from its files.

use std::collections::VecDeque;
use std::sync::Arc;

use tickwheel_engine::Seq;

use super::base::read_base;
use super::chain::{Chain, OR_CHECKPOINT};
use super::found::{Found, LogFile, read_all};
use super::replay::{Last, Replay};
use crate::bounds::Bounds;
use crate::catalog::Catalog;
use crate::checkpoint::{Damage, Start};
use crate::checksum::Seeds;
use crate::disk::Disk;
use crate::error::OpenError;
use crate::history::HistoryLimits;
use crate::layout::{SHARD, checkpoint_file, log_number};
use crate::log::last_not_zero;
use crate::log::{
    Bad, END_MARK_BYTES, FRAMES_AT, Frame, FrameHead, Kept, LogHeader, LogUse, Spare, find_frame, find_proof,
    read_frame,
};
use crate::meta::Meta;
use crate::newest::{self, Newest};
use crate::report::{RecoveryReport, Torn};

/// The state of a shard, read from the shard's files. No file was changed.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) catalog: Catalog,
    /// The highest generation of a segment file.
    pub(crate) segment_generation: u64,
    /// The last change that the checkpoint covers.
    pub(crate) body_floor: Seq,
    pub(crate) last: Last,
    /// The log files that are needed.
    pub(crate) kept: VecDeque<Kept>,
    /// The log file with the last frame that was read; `None` if no frame was read.
    pub(crate) last_file: Option<LogUse>,
    /// The note in the directory that names the newest log file, and the last frame known to be synced; `None` if there is no note.
    pub(crate) newest: Option<Newest>,
    /// The log files that are not needed.
    pub(crate) spares: Vec<Spare>,
    /// Other files that are not needed, to be removed.
    pub(crate) removable: Vec<Arc<str>>,
    /// The highest generation of a log file that was seen, in a header or in the checkpoint.
    pub(crate) generation: u64,
    /// The highest number in the name of a log file.
    pub(crate) log_number: u64,
    /// The highest number in the name of a checkpoint.
    pub(crate) checkpoint_number: u64,
    /// The name of the checkpoint that the shard was read from; `None` if there was no valid one.
    pub(crate) checkpoint: Option<Arc<str>>,
    pub(crate) report: RecoveryReport,
}

/// Reads the shard from its files. Equal files give equal results.
///
/// The log is the frames of all files, in the order of the files' generations. Each frame has the number of the frame before it plus one.
/// But the first frame of a file may have an earlier number: an owner's first frame repeats the last frame that the owner found, and all
/// frames that earlier owners wrote from that number on are void. Behind the last whole frame, a crash may have left parts of frames that
/// had not been synced. These parts are cut off. But each frame names the last frame that its writer knew to be synced. If such a frame
/// shows that a missing frame was synced, synced data is damaged, and the recovery returns an error.
///
/// # Errors
/// [`OpenError::Corrupt`] if synced data is damaged or missing, [`OpenError::NewerFormat`], [`OpenError::Io`].
pub(crate) fn recover<D: Disk>(
    disk: &mut D,
    meta: &Meta,
    history: HistoryLimits,
    bounds: &Bounds,
) -> Result<Recovered, OpenError> {
    let seeds = &Seeds::new(meta.secret);
    // The note is read before the folder is listed. So if another process uses the directory, the list has the file that the note names.
    let newest = newest::read(disk, meta, seeds)?;
    let found = Found::read(disk, seeds, bounds)?;
    let base = read_base(disk, &found, seeds, Catalog::new(meta.secret, history, bounds))?;
    let without_checkpoint = found.listing.checkpoints.is_empty();
    let chain = Chain::new(&found.logs, base.start.generation, without_checkpoint);
    chain.check(newest, base.damage.as_ref())?;
    let noted = chain.back_from(newest.and_then(|newest| newest.file));
    let (used, idle) = in_order(found.logs, base.start.generation, &noted)?;
    let mut log = Log {
        disk,
        seeds,
        replay: base.replay,
        start: base.start,
        damage: base.damage,
        without_checkpoint,
        used,
        idle,
        kept: VecDeque::new(),
        end: None,
        torn: None,
    };
    log.replay()?;
    log.check_end(newest.map_or(0, |newest| newest.frame).max(base.last_frame))?;
    let generation = log.generation();
    let last_file = log.end.as_ref().map(End::this_use);
    let spares = log.spares(&chain.back_from(last_file));
    let others = found.listing.checkpoints.iter().map(|number| checkpoint_file(*number));
    let removable = found.listing.unfinished.iter().cloned().chain(base.unlisted);
    let removable = removable.chain(others.filter(|name| base.name.as_ref() != Some(name))).collect();
    let Log { replay, kept, torn, damage, .. } = log;
    let report = RecoveryReport {
        created: false,
        tasks: replay.catalog.len() as u64,
        checkpoint: base.name.as_deref().map(str::to_owned),
        frames: replay.frames,
        torn,
        damaged_checkpoint: damage.map(|damage| damage.file),
    };
    Ok(Recovered {
        last: replay.end,
        catalog: replay.catalog,
        segment_generation: found.listing.segments.iter().copied().max().unwrap_or(0),
        body_floor: base.start.seq,
        kept,
        last_file,
        newest,
        spares,
        removable,
        generation,
        log_number: found.listing.logs.iter().map(|name| log_number(name)).max().unwrap_or(0),
        checkpoint_number: found.listing.checkpoints.last().copied().unwrap_or(0),
        checkpoint: base.name,
        report,
    })
}

/// Returns the files that have frames behind the checkpoint, in the order of their generations, and all other files. `floor`: the checkpoint
/// covers the files of lower generations. `noted`: the generations of the files that the note and the headers name.
///
/// # Errors
/// [`OpenError::Corrupt`]: a file has lost its end, or two files have one generation.
fn in_order(logs: Vec<LogFile>, floor: u64, noted: &[u64]) -> Result<(Vec<Used>, Vec<LogFile>), OpenError> {
    let (mut used, mut idle) = (Vec::new(), Vec::new());
    for file in logs {
        let Some(header) = file.header.filter(|header| header.generation >= floor) else {
            idle.push(file);
            continue;
        };
        // The note names a file only when all bytes of the file are durable. So a shorter file has lost its end, even if it has no frame.
        if file.cut_short || file.len < header.len && noted.contains(&header.generation) {
            let what = format!("the file ends here, and it had {} bytes", header.len);
            return Err(OpenError::corrupt(&*file.name, file.len, what));
        }
        match file.first {
            Some(first) => used.push(Used { file, header, first }),
            None => idle.push(file),
        }
    }
    used.sort_by_key(|file| file.header.generation);
    match used.windows(2).find(|pair| pair[0].header.generation == pair[1].header.generation) {
        None => Ok((used, idle)),
        Some(pair) => {
            let what = format!("it has the generation of {}", pair[0].file.name);
            Err(OpenError::corrupt(&*pair[1].file.name, 0, what))
        }
    }
}

/// A log file whose header and first frame are valid, and which is needed.
#[derive(Debug)]
struct Used {
    file: LogFile,
    header: LogHeader,
    first: u64,
}

impl Used {
    fn kept(&self) -> Kept {
        let LogFile { name, len, .. } = &self.file;
        Kept { name: Arc::clone(name), len: *len, generation: self.header.generation }
    }
}

impl Recovered {
    /// Returns the note for this state: the newest log file with needed frames, and the last frame that is known to be synced.
    pub(crate) fn newest_kept(&self) -> Newest {
        let synced = self.newest.map_or(0, |newest| newest.frame).max(self.last.durable);
        Newest { file: self.last_file, frame: synced }
    }
}

/// The log, as far as it has been read.
struct Log<'a, D> {
    disk: &'a mut D,
    seeds: &'a Seeds,
    replay: Replay,
    /// Where the checkpoint begins in the log. The checkpoint covers the frames up to `start.frame`, and all files of generations below
    /// `start.generation`.
    start: Start,
    /// The damage of the newest checkpoint, if that checkpoint is damaged.
    damage: Option<Damage>,
    /// Whether the folder has no checkpoint, not even a damaged one.
    without_checkpoint: bool,
    /// The files that have frames behind the checkpoint, by generation.
    used: Vec<Used>,
    /// The files from which no frame is read.
    idle: Vec<LogFile>,
    /// The files that are needed.
    kept: VecDeque<Kept>,
    /// The end of the last frame that was read, with all bytes of its file.
    end: Option<End>,
    torn: Option<Torn>,
}

struct End {
    file: Arc<str>,
    offset: usize,
    bytes: Vec<u8>,
    header: LogHeader,
}

impl End {
    fn this_use(&self) -> LogUse {
        LogUse { generation: self.header.generation, number: log_number(&self.file) }
    }
}

impl<D: Disk> Log<'_, D> {
    /// Reads the frames of all files in their order, up to the end of the log.
    fn replay(&mut self) -> Result<(), OpenError> {
        let used = std::mem::take(&mut self.used);
        for (index, file) in used.iter().enumerate() {
            // A later owner wrote the frames from `void_from` on again, so the frames of this file from that number on are void.
            let void_from = used[index + 1..].iter().map(|later| later.first).min().unwrap_or(u64::MAX);
            // If all frames of a file are void, the file is not read, and not used again before a checkpoint: the frame that makes them void
            // may not be durable, and then a power cut makes this file the newest again.
            if file.first < void_from {
                if file.first > self.replay.end.frame + 1 {
                    if self.is_proven(&used[index..])? || self.damage.is_some() {
                        let before = index.checked_sub(1).map_or(0, |index| used[index].header.generation);
                        return Err(self.gap(file, before));
                    }
                    // The missing frame had not been synced, so no frame behind it had been synced. This file and the later ones are cut
                    // off.
                    self.torn = Some(Torn {
                        file: file.file.name.to_string(),
                        offset: FRAMES_AT,
                        bytes: file.file.len.saturating_sub(FRAMES_AT),
                    });
                    self.idle.extend(used[index..].iter().map(|file| file.file.clone()));
                    break;
                }
                self.read(file, void_from)?;
            }
            self.kept.push_back(file.kept());
        }
        self.used = used;
        Ok(())
    }

    /// Returns the highest generation of a log file that was seen, in a header or in the checkpoint.
    fn generation(&self) -> u64 {
        let idle = self.idle.iter().filter_map(|file| file.header);
        let headers = self.used.iter().map(|file| file.header).chain(idle);
        headers.map(|header| header.generation).fold(self.start.generation, u64::max)
    }

    /// Takes the files that are not needed. `in_chain`: the generations of the files that the headers name, from the last file back. The
    /// frames of such a file may never have been synced, and a power cut may have taken all of them. The header of the next file still
    /// names it, so it is kept.
    fn spares(&mut self, in_chain: &[u64]) -> Vec<Spare> {
        let mut spares = Vec::new();
        for LogFile { name, len, header, .. } in std::mem::take(&mut self.idle) {
            match header.filter(|header| in_chain.contains(&header.generation)) {
                Some(LogHeader { generation, .. }) => self.kept.push_front(Kept { name, len, generation }),
                None => spares.push(Spare { name, len }),
            }
        }
        spares
    }

    /// Reads the frames of one file, up to the first frame that is not valid, and at most up to the frame before `void_from`. Applies the
    /// frames that the checkpoint does not cover to the catalog.
    fn read(&mut self, used: &Used, void_from: u64) -> Result<(), OpenError> {
        let bytes = read_all(self.disk, &used.file.name)?;
        let mut at = FRAMES_AT as usize;
        let mut expected = used.first;
        while expected < void_from {
            let Ok(frame) = read_frame(&bytes, at, used.header.generation, self.seeds) else { break };
            let number = frame.head.number;
            let next_at = at + crate::log::frame_bytes(frame.ops.len());
            if number != expected {
                let what = format!("frame {number} stands where frame {expected} should");
                return Err(OpenError::corrupt(&*used.file.name, at as u64, what));
            }
            if number > self.start.frame {
                let taken = self.replay.take(&frame);
                taken.map_err(|what| OpenError::corrupt(&*used.file.name, at as u64, what))?;
            }
            expected += 1;
            at = next_at;
        }
        self.end = Some(End { file: Arc::clone(&used.file.name), offset: at, bytes, header: used.header });
        Ok(())
    }

    /// Returns the error for frames that are missing between the last frame and the frames of `next`. The error names the damaged
    /// checkpoint if there is one, or else the place where the missing frames should be, as exactly as is known.
    fn gap(&mut self, next: &Used, generation_before: u64) -> OpenError {
        let (last, first) = (self.replay.end.frame, next.first);
        if let Some(Damage { file, offset, what }) = &self.damage {
            let what = format!("{what}, and the log begins at frame {first}");
            return OpenError::corrupt(file.clone(), *offset, what);
        }
        let mut what = format!("the frames from {} to {} are missing", last + 1, first - 1);
        if self.without_checkpoint && last == 0 {
            what += OR_CHECKPOINT;
        }
        let between = generation_before..next.header.generation;
        let silent = |file: &&LogFile| file.header.is_some_and(|header| between.contains(&header.generation));
        match self.unreached() {
            Err(error) => error,
            Ok(Some((file, ..))) => OpenError::corrupt(&*file.name, file.frames_at(), what),
            Ok(None) => match (self.idle.iter().find(silent), &self.end) {
                (Some(file), _) => OpenError::corrupt(&*file.name, FRAMES_AT, what),
                (None, Some(end)) => OpenError::corrupt(&*end.file, end.offset as u64, what),
                (None, None) => OpenError::corrupt(SHARD, 0, format!("{what}, and no checkpoint has them")),
            },
        }
    }

    /// Whether a frame in one of these files proves that the frame after the last one that was read was there.
    fn is_proven(&mut self, later: &[Used]) -> Result<bool, OpenError> {
        for file in later {
            let bytes = read_all(self.disk, &file.file.name)?;
            if find_proof(&bytes, 0, self.replay.end.frame + 1, self.seeds).is_some() {
                return Ok(true);
            }
        }
        Ok(self.unreached()?.is_some())
    }

    /// Finds a file from which no frame was read, with a frame which proves that one more frame was there. Returns the file, the offset of
    /// the proving frame (bytes), and its number.
    ///
    /// There are three kinds of proof. First: the writer of the found frame knew the missing frame to be synced. Second: the found frame is
    /// the missing frame itself, and its use is not earlier than that of any file that was read. Third: the found frame is in a later use
    /// than all files that were read, and its number is at most that of the missing frame. The header of its file and the frame before it
    /// were synced first, so one of these two is damaged. (Remains of earlier uses have lower generations, and remains of unsynced commits
    /// have higher numbers.)
    fn unreached(&mut self) -> Result<Option<(&LogFile, usize, u64)>, OpenError> {
        let latest = self.end.as_ref().map_or(0, |end| end.header.generation).max(self.start.generation);
        let next = self.replay.end.frame + 1;
        for file in &self.idle {
            let bytes = read_all(self.disk, &file.name)?;
            let proves = |head: &FrameHead| {
                head.durable >= next
                    || head.generation >= latest && comes_next(&self.replay.end, head)
                    || head.generation > latest && head.number <= next
            };
            if let Some((at, Frame { head, .. })) = find_frame(&bytes, 0, self.seeds, proves) {
                return Ok(Some((file, at, head.number)));
            }
        }
        Ok(None)
    }

    /// Finds the remains of the frame that would have been next: behind the last frame, or at the beginning of a later file.
    fn find_torn(&mut self) -> Result<Option<Torn>, OpenError> {
        let mut generation = self.start.generation;
        if let Some(end) = &self.end {
            generation = generation.max(end.header.generation);
            let found = torn(&end.file, end.offset, &end.bytes, end.header, self.seeds);
            if found.is_some() {
                return Ok(found);
            }
        }
        for file in &self.idle {
            let Some(header) = file.header.filter(|header| header.generation > generation) else { continue };
            let bytes = read_all(self.disk, &file.name)?;
            let found = torn(&file.name, FRAMES_AT as usize, &bytes, header, self.seeds);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Checks that the log may end at the last frame that was read. Stores the remains of an unfinished frame in `torn`.
    fn check_end(&mut self, must_reach: u64) -> Result<(), OpenError> {
        let last = self.replay.end.frame;
        if let Some(end) = &self.end {
            // A head behind the end proves damage if its writer knew the next frame to be synced, or if it is the head of the next frame.
            // In the second case, the damaged frame is in front of the next frame, and the checkpoint covers the damaged frame.
            let generation = end.header.generation;
            let proves = |head: &FrameHead| {
                head.durable > last || head.generation == generation && comes_next(&self.replay.end, head)
            };
            let later = find_frame(&end.bytes, end.offset, self.seeds, proves);
            if let Some((at, Frame { head, .. })) = later {
                let what = format!(
                    "no frame begins here that checks out; frame {} at byte {at} was written after frame {} was synced",
                    head.number, head.durable,
                );
                return Err(OpenError::corrupt(&*end.file, end.offset as u64, what));
            }
        }
        if self.torn.is_none() {
            self.torn = self.find_torn()?;
        }
        if let Some((file, at, number)) = self.unreached()? {
            let what = format!("frame {number} at byte {at} cannot be reached from frame {last}");
            return Err(OpenError::corrupt(&*file.name, file.frames_at(), what));
        }
        // No frame was read, so the log cannot replace the damaged checkpoint. The damaged checkpoint may have been the only one.
        if let Some(Damage { file, offset, what }) = self.damage.as_ref().filter(|_| self.end.is_none()) {
            return Err(OpenError::corrupt(file.clone(), *offset, what.clone()));
        }
        // If no frame was read, the damage is where the first frame should be.
        let first = self
            .idle
            .iter()
            .filter(|file| file.header.is_some_and(|header| header.generation >= self.start.generation));
        let first = first.min_by_key(|file| file.header.map(|header| header.generation));
        let place = || match (&self.end, first) {
            (Some(end), _) => (end.file.to_string(), end.offset as u64),
            (None, Some(file)) => (file.name.to_string(), FRAMES_AT),
            (None, None) => (SHARD.to_owned(), 0),
        };
        if last < must_reach {
            let (file, offset) = place();
            let what = format!("the log ends at frame {last}, and frame {must_reach} was synced");
            return Err(OpenError::corrupt(file, offset, what));
        }
        if let Some(id) = self.replay.bodiless() {
            let (file, offset) = place();
            return Err(OpenError::corrupt(file, offset, format!("the payload of task {id} is nowhere")));
        }
        Ok(())
    }
}

/// Whether a frame with this head comes next behind the last frame that was read.
fn comes_next(last: &Last, head: &FrameHead) -> bool {
    head.number == last.frame + 1 && head.prev_seq == last.seq
}

/// Returns the remains of an unfinished frame at `offset` of a file, as far as they can be recognized. `None` if a whole frame is at
/// `offset`, or no remains.
fn torn(file: &str, offset: usize, bytes: &[u8], header: LogHeader, seeds: &Seeds) -> Option<Torn> {
    let rest = bytes.get(offset..).filter(|rest| rest.len() >= END_MARK_BYTES)?;
    let bytes = match read_frame(bytes, offset, header.generation, seeds) {
        Ok(_) => return None,
        Err(Bad::Torn(bytes)) => bytes.min(rest.len() as u64),
        // Such a file was all zero behind its header before this use, so each byte that is not zero was part of a frame.
        Err(Bad::Nothing) if header.fresh => last_not_zero(rest)? as u64 + 1,
        // Other files may have bytes of an earlier use behind the end. But each frame writes zeroes behind itself, so other bytes at the
        // end are of a new frame.
        Err(Bad::Nothing) if rest[..END_MARK_BYTES].iter().any(|byte| *byte != 0) => END_MARK_BYTES as u64,
        Err(Bad::Nothing) => return None,
    };
    Some(Torn { file: file.to_owned(), offset: offset as u64, bytes })
}
