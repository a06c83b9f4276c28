//! The first pass: everything that checks out, and what is missing.

use std::sync::Arc;

use tickwheel_engine::{Seq, ShardId, Task};

use super::base::{Base, floor_of};
use super::fetch::op_sum;
use super::found::{Found, Progress, Reading, Said};
use super::index::Spot;
use super::logs::{FrameAt, LogFile, Ordered, order};
use super::report::{Loss, ReadReport, Unit};
use super::rules::RuleTraces;
use super::segments::{Outcome, Wanted, read_segment};
use super::source::Source;
use crate::checkpoint::Listed;
use crate::checksum::{Seeds, Use};
use crate::codec::{Names, Op, split_ops};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::index::Naming;
use crate::layout::{
    HEADER_BYTES, Kind, Listing, META, SHARD, UNFINISHED_MARK, kind_of, le_u64, newest_file, segment_file,
};
use crate::log::{FrameHead, HEAD_BYTES, read_frame, read_log_header};
use crate::mend::{Mended, read_mended};
use crate::meta::{CLOCK_AT, Meta, SECRET_AT, SHARD_AT, SHARDS_AT, shard_of};
use crate::newest::{self, Newest};
use crate::options::ClockMode;
use crate::segment::read_segment_header;

/// Reads the damaged data directory behind `disk`. Nothing in the directory is changed.
///
/// # Errors
/// The directory cannot be read at all: `meta` is missing, too damaged, of another version or of another directory; the folder of the shard
/// is missing; the directory was never finished; or the system refuses to list a folder or to open a file.
pub fn read<D: Disk>(disk: &mut D, progress: &mut dyn FnMut(Progress)) -> Result<Found, OpenError> {
    read_member(disk, None, progress)
}

/// Works as [`read`], for the directory of this shard below a root. The directory is taken for that of the shard, also if the numbers in its
/// `meta` are damaged.
///
/// # Errors
/// As [`read`].
pub fn read_member<D: Disk>(
    disk: &mut D,
    shard: Option<ShardId>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Found, OpenError> {
    let mut source = Source::new(disk);
    let meta = read_meta(&mut source);
    source.check_refusal()?;
    let Read { meta, mended, note } = meta?;
    let meta = Meta { shard: shard.unwrap_or(meta.shard), ..meta };
    let (listing, report) = list(&mut source)?;
    source.check_refusal()?;
    let found = Found::nothing(meta);
    let mut reading = Reading {
        seeds: Seeds::new(found.meta.secret),
        naming: Naming::new(found.meta.secret),
        names: Names::new(),
        suspects: Vec::new(),
        said: Vec::new(),
        traces: RuleTraces::default(),
        done: 0,
        total: report.bytes,
        fits: false,
        found,
    };
    reading.found.report.read = report;
    reading.found.report.read.mended.extend(mended.map(|at| (META.to_owned(), at)));
    reading.read(&mut source, &listing, progress);
    source.check_refusal()?;
    let first_failure = source.first_failure();
    let fits = reading.fits || reading.found.report.read.records > 0 || source.has_failed();
    if reading.found.meta.has_log && reading.found.report.read.files > 0 && !fits {
        return Err(OpenError::OtherMeta);
    }
    let mut found = reading.found;
    found.report.notes.extend(note.into_iter().chain(first_failure));
    found.report.read.unreadable = source.into_unreadable();
    Ok(found)
}

/// The content of `meta`.
struct Read {
    meta: Meta,
    /// The offset of the one damaged byte of `meta`, if there is one.
    mended: Option<u64>,
    note: Option<String>,
}

fn read_meta<D: Disk>(source: &mut Source<'_, D>) -> Result<Read, OpenError> {
    let names = source.list("")?;
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has(UNFINISHED_MARK) {
        return Err(OpenError::Unfinished);
    }
    if !has(SHARD) {
        return Err(OpenError::corrupt(SHARD, 0, "the folder is missing, and all tasks were in it"));
    }
    if !has(META) {
        return Err(no_secret("it is missing"));
    }
    let bytes = source.read(META, 0, HEADER_BYTES as u64);
    source.check_refusal()?;
    let read = Meta::from_bytes(&bytes);
    if let Err(error @ OpenError::NewerFormat { .. }) = read {
        return Err(error);
    }
    match read_mended(&bytes, |bytes| Meta::from_bytes(bytes).ok()) {
        Some(Mended { value: meta, at }) => Ok(Read { meta, mended: at, note: None }),
        None => rebuilt(source, &bytes)?.ok_or_else(|| no_secret("more than one byte of it is damaged")),
    }
}

/// Rebuilds `meta` if several of its bytes are damaged and its secret is whole. The secret counts as whole if the note of the newest log
/// file or the header of a log file checks out with it. `None`: the secret is not whole.
fn rebuilt<D: Disk>(source: &mut Source<'_, D>, bytes: &[u8]) -> Result<Option<Read>, OpenError> {
    let Some(secret) = bytes.get(SECRET_AT..).and_then(|rest| rest.first_chunk::<16>()) else {
        return Ok(None);
    };
    let seeds = Seeds::new(*secret);
    let newest = source.read(&newest_file(), 0, HEADER_BYTES as u64);
    let has_newest = matches!(newest::of_bytes(&newest, &seeds), Ok(Some(_)));
    let (listing, _) = list(source)?;
    let is_log = |file: &Arc<str>| {
        let header = source.read(file, 0, HEADER_BYTES as u64);
        source.close(file);
        read_log_header(&header, &seeds).is_ok_and(|header| header.is_some())
    };
    if !has_newest && !listing.logs.iter().any(is_log) {
        return Ok(None);
    }
    let clock = if le_u64(bytes, CLOCK_AT) == 1 { ClockMode::Virtual } else { ClockMode::Real };
    let shard = shard_of(le_u64(bytes, SHARD_AT), le_u64(bytes, SHARDS_AT)).unwrap_or(ShardId::ONLY);
    let meta = Meta { clock, secret: *secret, has_log: true, shard };
    let note = format!(
        "several bytes of {META} are damaged; the secret in it is whole, for other files check out by it; the clock is taken for the {clock} one"
    );
    Ok(Some(Read { meta, mended: None, note: Some(note) }))
}

/// Returns the error for a `meta` that cannot be read. The text says where another `meta` with the same secret may be.
fn no_secret(why: &str) -> OpenError {
    let what = format!(
        "{why}, and no file can be read without the secret in it; it is the same in each backup of this directory: copy the directory, put \
         the `meta` of a backup into the copy, and salvage that"
    );
    OpenError::corrupt(META, 0, what)
}

/// Lists the folder of the shard. The report gets the number and the bytes of the store's files, without files that were never finished.
fn list<D: Disk>(source: &mut Source<'_, D>) -> Result<(Listing, ReadReport), OpenError> {
    let mut report = ReadReport::default();
    let names = source.list(SHARD)?;
    let is_read = |kind: Kind| kind != Kind::Unfinished && kind != Kind::Stamp;
    for name in names.iter().filter(|name| kind_of(name).is_some_and(is_read)) {
        let path = format!("{SHARD}/{name}");
        report.files += 1;
        report.bytes += source.len(&path).unwrap_or(0);
        source.close(&path);
    }
    Ok((Listing::of(&names), report))
}

impl Reading {
    fn read<D: Disk>(
        &mut self,
        source: &mut Source<'_, D>,
        listing: &Listing,
        progress: &mut dyn FnMut(Progress),
    ) {
        let newest = self.newest(source);
        let logs: Vec<LogFile> = listing
            .logs
            .iter()
            .map(|name| {
                let file = LogFile::read(source, Arc::clone(name), &self.seeds);
                self.advance(file.len, progress);
                file
            })
            .collect();
        let base = self.choose_base(source, listing, &logs, newest);
        let is_log = |file: &LogFile| file.header.is_some() || !file.frames.is_empty();
        let is_base = |base: &Base| base.start.is_some() || base.pieces.end.is_some();
        self.fits |= newest.is_some() || logs.iter().any(is_log) || base.as_ref().is_some_and(is_base);
        let floor = floor_of(base.as_ref());
        for file in logs.iter().filter(|file| file.generation >= floor.generation.max(1)) {
            self.found.report.read.mended.extend(file.mended.map(|at| (file.name.to_string(), at)));
        }
        let ordered = order(&logs, floor, newest);
        self.take_base(base.as_ref());
        self.read_segments(source, listing, base.as_ref(), &ordered, progress);
        for gap in &ordered.gaps {
            self.found.index.miss(gap.changes.0, gap.changes.1.unwrap_or(u64::MAX));
        }
        self.read_frames(source, &logs, &ordered);
        for gap in &ordered.gaps {
            self.lose_gap(source, &logs, gap);
        }
        if let Some(base) = &base
            && base.start.is_none()
        {
            self.lose_start(base, &ordered);
        }
        self.resolve(source, &logs);
    }

    fn newest<D: Disk>(&mut self, source: &mut Source<'_, D>) -> Option<Newest> {
        if !self.found.meta.has_log {
            return None;
        }
        let file = newest_file();
        let bytes = source.read(&file, 0, HEADER_BYTES as u64);
        match read_mended(&bytes, |bytes| newest::of_bytes(bytes, &self.seeds).ok().flatten()) {
            Some(Mended { value: newest, at }) => {
                self.found.report.read.mended.extend(at.map(|at| (file.to_string(), at)));
                Some(newest)
            }
            None => {
                let what = "the note of the newest log file is damaged; if that log file is missing, this cannot be seen";
                let loss = Loss::new(&*file, 0, None, Unit::Frames, what).at_most(None, None);
                self.found.log_is_torn = true;
                self.found.report.losses.push(Loss { certain: false, ..loss });
                None
            }
        }
    }

    fn read_segments<D: Disk>(
        &mut self,
        source: &mut Source<'_, D>,
        listing: &Listing,
        base: Option<&Base>,
        ordered: &Ordered,
        progress: &mut dyn FnMut(Progress),
    ) {
        let list = base.and_then(|base| base.pieces.segments.as_ref());
        if let Some(list) = list {
            for listed in list {
                self.read_listed(source, listing, *listed);
                self.advance(listed.len, progress);
            }
            return;
        }
        // If the log has everything from its first frame on, no segment is needed: each belongs to a checkpoint that is damaged or was
        // never finished.
        let whole_log = base.is_none()
            && ordered.frames.first().is_some_and(|(_, frame)| frame.head.number == 1)
            && ordered.gaps.iter().all(|gap| !gap.certain);
        if whole_log || listing.segments.is_empty() {
            return;
        }
        if base.is_none() {
            let what = "no checkpoint is there; it would say which segments count and where the log goes on";
            let loss = Loss::new(SHARD, 0, None, Unit::Checkpoint, what).at_most(Some(0), None);
            self.found.log_is_torn = true;
            self.found.report.losses.push(loss);
        }
        let mut buried = Vec::new();
        for generation in &listing.segments {
            let file = segment_file(*generation);
            let len = source.len(&file).unwrap_or(0);
            buried.extend(self.read_segment(source, &file, *generation, None));
            self.advance(len, progress);
        }
        // Without a list, all segments are read, also those whose records were copied to other segments. So a record may look live although
        // its copy is dead.
        buried.into_iter().for_each(|(id, seq)| self.found.index.bury(id, seq));
    }

    /// Reads a segment that the checkpoint lists, also if the file has another name now. Adds a loss if the file is missing.
    fn read_listed<D: Disk>(&mut self, source: &mut Source<'_, D>, listing: &Listing, listed: Listed) {
        let Listed { generation, len, records, .. } = listed;
        let named = segment_file(generation);
        let mut file = Arc::clone(&named);
        if !self.is_segment(source, &file, generation) {
            // A user may have given the file another name.
            let others =
                listing.segments.iter().map(|other| segment_file(*other)).filter(|other| *other != named);
            let found = others.into_iter().find(|other| self.is_segment(source, other, generation));
            match found {
                Some(other) => {
                    self.found.report.notes.push(format!("{other} is what {named} should be"));
                    file = other;
                }
                None if source.len(&file).is_none() => {
                    let what = format!("it is missing, and the checkpoint counts on it: {records} records");
                    let loss = Loss::new(&*file, 0, Some(len), Unit::Segment, what);
                    return self.found.report.losses.push(loss.at_most(Some(records), Some(0)));
                }
                None => {}
            }
        }
        self.read_segment(source, &file, generation, Some((len, records)));
    }

    fn is_segment<D: Disk>(&self, source: &mut Source<'_, D>, file: &str, generation: u64) -> bool {
        let bytes = source.read(file, 0, HEADER_BYTES as u64);
        matches!(read_segment_header(&bytes, generation, &self.seeds), Ok(Some(_)))
    }

    /// Reads a segment, and takes in its records and its losses. Returns the id and seq of each dead record if no checkpoint lists the
    /// segment, else no records.
    fn read_segment<D: Disk>(
        &mut self,
        source: &mut Source<'_, D>,
        file: &Arc<str>,
        generation: u64,
        listed: Option<(u64, u64)>,
    ) -> Vec<(u64, Seq)> {
        let seed = self.seeds.of(Use::Segment(generation));
        let number = self.file(file, Some(seed));
        let mut buried = Vec::new();
        let Self { found: Found { index, .. }, names, traces, .. } = self;
        let wanted = Wanted { file, seed, listed };
        let mut take = |offset: u64, task: Task, is_dead: bool| {
            if !is_dead {
                traces.task(&task);
                index.store(&task, Spot { file: number, offset, sum: 0 }, false);
            } else if listed.is_none() {
                buried.push((task.id, task.seq));
            }
            index.see(task.id, task.seq);
        };
        let outcome = read_segment(source, wanted, names, &mut take);
        let Outcome { suspects, losses, named, records, mended, .. } = outcome;
        self.found.report.read.records += records;
        self.found.report.read.mended.extend(mended.into_iter().map(|at| (file.to_string(), at)));
        let first = self.found.report.losses.len();
        let said = named.into_iter();
        let said = said.map(|(loss, task)| Said { loss: first + loss, frame: 0, op: Op::Stored(task) });
        self.said.extend(said);
        self.found.report.losses.extend(losses);
        self.suspects.extend(suspects.into_iter().map(|suspect| (Arc::clone(file), suspect)));
        buried
    }

    fn read_frames<D: Disk>(&mut self, source: &mut Source<'_, D>, logs: &[LogFile], ordered: &Ordered) {
        let numbers: Vec<u32> = logs.iter().map(|file| self.file(&file.name, None)).collect();
        for (file, frame) in &ordered.frames {
            let log = &logs[*file];
            match self.frame_again(source, log, frame) {
                Some(ops) => self.take_frame(log, numbers[*file], frame, &ops),
                None => self.lose_frame(log, frame),
            }
            self.take_head(frame);
        }
        for log in logs {
            source.close(&log.name);
        }
    }

    /// Reads again the records of a frame that checked out in the first reading. `None`: the disk does not give the same bytes any more.
    fn frame_again<D: Disk>(
        &self,
        source: &mut Source<'_, D>,
        log: &LogFile,
        frame: &FrameAt,
    ) -> Option<Vec<u8>> {
        let mut once = || {
            let bytes = source.next(&log.name, frame.at, frame.end() - frame.at);
            let found = read_frame(bytes, 0, frame.head.generation, &self.seeds).ok();
            let found = found.filter(|found| found.head == frame.head).map(|found| found.ops.to_vec());
            if found.is_none() {
                source.forget();
            }
            found
        };
        once().or_else(once)
    }

    fn take_frame(&mut self, log: &LogFile, file: u32, frame: &FrameAt, ops: &[u8]) {
        let ops_at = frame.at + HEAD_BYTES as u64;
        let mut read = 0;
        let mut names = std::mem::replace(&mut self.names, Names::new());
        for record in split_ops(ops, &mut names) {
            read = record.at + record.bytes;
            let offset = ops_at + record.at as u64;
            let spot = Spot { file, offset, sum: op_sum(&ops[record.at..read]) };
            match record.op {
                Ok(op) => self.take_op(op, spot, frame.head.number),
                Err(error) => {
                    let what = format!("a record of frame {}: {error}", frame.head.number);
                    let to = offset + record.bytes as u64;
                    let loss = Loss::new(&*log.name, offset, Some(to), Unit::Record, what);
                    self.found.report.losses.push(loss.at_most(Some(1), Some(1)));
                }
            }
        }
        self.names = names;
        if read < ops.len() {
            let what = format!("frame {} has something that is no record", frame.head.number);
            let (at, to) = (ops_at + read as u64, Some(frame.end()));
            self.found.report.losses.push(Loss::new(&*log.name, at, to, Unit::Frame, what));
        }
    }

    /// Adds a loss for a frame that checked out when the file was read first, and cannot be read again.
    fn lose_frame(&mut self, log: &LogFile, frame: &FrameAt) {
        let FrameHead { number, prev_seq, seq, .. } = frame.head;
        let what = format!("frame {number} was read once, and the disk fails to read it again");
        let changes = Some(seq.0.saturating_sub(prev_seq.0));
        let loss = Loss::new(&*log.name, frame.at, Some(frame.end()), Unit::Frame, what);
        let mut loss = loss.at_most(changes, changes);
        (loss.rules_may_be_older, loss.ends_may_be_forgotten) = (true, true);
        self.found.report.losses.push(loss);
        self.found.index.miss(prev_seq.0, seq.0);
        self.found.state.forget_numbers();
    }

    fn take_head(&mut self, frame: &FrameAt) {
        let head = &frame.head;
        self.found.report.read.frames += 1;
        self.found.epoch = self.found.epoch.max(head.epoch);
        self.found.seq = self.found.seq.max(head.seq);
        self.found.wall = self.found.wall.max(head.wall);
    }

    fn take_op(&mut self, op: Op, spot: Spot, frame: u64) {
        self.found.report.read.records += 1;
        match &op {
            Op::Stored(task) | Op::StoredBodyKnown(task) => self.traces.task(task),
            Op::Rule((name, _)) => self.traces.said(name, frame),
            Op::Ended(_) | Op::State(_) => {}
        }
        match op {
            Op::Stored(task) => self.found.index.store(&task, spot, true),
            Op::StoredBodyKnown(task) => self.found.index.store_bodiless(task, spot),
            Op::Ended(ended) => self.take_ended(&ended),
            Op::State(state) => self.found.state.join(state),
            Op::Rule(effect) => self.found.rules.apply(effect, &mut self.found.histories),
        }
    }
}
