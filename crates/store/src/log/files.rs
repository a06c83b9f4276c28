//! [`Files`]: which log file is written, which file is next, and which files are not needed any more.

use std::collections::VecDeque;
use std::sync::Arc;

use super::file::{FRAMES_AT, LogHeader, LogUse};
use super::frame::END_MARK_BYTES;
use crate::checksum::Seeds;
use crate::io::Call;
use crate::layout::{SHARD, log_file, log_number, newest_file_unfinished};
use crate::newest::Newest;

/// A log file that takes no new frames and is still needed: a recovery would read it, or the header of a needed file names it as the file
/// before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    pub(crate) name: Arc<str>,
    pub(crate) len: u64,
    pub(crate) generation: u64,
}

/// A log file whose content is not needed. It can be used again or removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spare {
    pub(crate) name: Arc<str>,
    pub(crate) len: u64,
}

/// The place of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FrameOffset {
    pub(crate) file: Arc<str>,
    pub(crate) offset: u64,
    pub(crate) generation: u64,
    /// The length of the file (bytes).
    pub(crate) len: u64,
}

/// A log file and its current use: the current file, the next file, a file that is being prepared, or a file that was too small.
#[derive(Clone, Debug)]
struct Ready {
    name: Arc<str>,
    len: u64,
    generation: u64,
    /// The offset at which the next frame begins (bytes).
    used: u64,
    /// The file that took frames before this one, as its header says.
    before: Option<LogUse>,
}

impl Ready {
    fn this_use(&self) -> LogUse {
        LogUse { generation: self.generation, number: log_number(&self.name) }
    }
}

/// A file that is being prepared as the next one.
#[derive(Clone, Debug)]
struct Preparing {
    file: Ready,
    /// The offset up to which the calls that were handed out fill the file with zeroes (bytes); `None` for a spare, which is long enough
    /// already.
    zeroed: Option<u64>,
    stage: Stage,
    /// The earlier next file, if it was too small. The note may name this small file, so it becomes a spare only when the note names the
    /// larger file.
    too_small: Option<Ready>,
}

/// The stage of a preparation: which calls were handed out last.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Stage {
    Filling,
    /// The calls that write the header and sync it.
    Header,
    /// The calls that write the note, which names this file as the newest.
    Note,
}

/// The numbers that the log has reached.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Progress {
    /// The last generation that was given out.
    pub(crate) generation: u64,
    /// The last file number that was given out.
    pub(crate) number: u64,
    /// The last frame that is known to be synced.
    pub(crate) synced: u64,
    /// The newest file that took frames.
    pub(crate) newest: Option<LogUse>,
}

/// How large the log files are, and how many spares are kept.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Sizes {
    /// The usual length of a log file (bytes).
    pub(crate) file_bytes: u64,
    /// The most spares that stay when a checkpoint frees files. The other spares are removed then.
    pub(crate) spares_max: usize,
}

/// The files of one shard's log.
///
/// `Files` returns the calls that are to be made, and its caller makes them and reports that they are done. A file goes through these
/// stages: made and filled with zeroes in bounded steps, or taken from the spares → *next*, with a header that is synced and a note that
/// names the file as the newest → *current*, taking frames → *kept*, until a durable checkpoint begins in a later file → spare again, or
/// removed.
///
/// The header of each file names the file that took frames before it. A recovery walks back from file to file, and ends at the file in
/// which the checkpoint begins. So a file that took frames becomes a spare only when a durable checkpoint begins in a later file.
#[derive(Debug)]
pub(crate) struct Files {
    seeds: Seeds,
    sizes: Sizes,
    kept: VecDeque<Kept>,
    current: Option<Ready>,
    next: Option<Ready>,
    preparing: Option<Preparing>,
    spares: Vec<Spare>,
    progress: Progress,
    /// Bytes of log since the last checkpoint began. The unused ends of full files count too. After an opening, all bytes of the kept files
    /// count.
    since_checkpoint: u64,
    /// A recovery reads no file of a generation below this one.
    floor: u64,
}

impl Files {
    pub(crate) fn new(
        seeds: Seeds,
        sizes: Sizes,
        kept: VecDeque<Kept>,
        spares: Vec<Spare>,
        progress: Progress,
    ) -> Self {
        let since_checkpoint = kept.iter().map(|file| file.len).sum();
        Self {
            seeds,
            sizes,
            kept,
            current: None,
            next: None,
            preparing: None,
            spares,
            progress,
            since_checkpoint,
            floor: 0,
        }
    }

    /// Returns the place for the next frame, which has `bytes` bytes. If the current file has no space for the frame, the next file becomes
    /// the current one. `None` if a file has to be prepared first.
    pub(crate) fn place(&mut self, bytes: u64) -> Option<FrameOffset> {
        if self.current.as_ref().is_none_or(|file| file.used + bytes > file.len) {
            let next = self.next.take_if(|file| file.used + bytes <= file.len)?;
            assert_eq!(next.before, self.progress.newest, "frames went elsewhere than {} says", next.name);
            self.retire_current();
            self.progress.newest = Some(next.this_use());
            self.current = Some(next);
        }
        let file = self.current.as_ref()?;
        debug_assert!(file.generation >= self.floor, "no recovery would read {}", file.name);
        let (offset, generation, len) = (file.used, file.generation, file.len);
        Some(FrameOffset { file: Arc::clone(&file.name), offset, generation, len })
    }

    /// Takes in that the frame that was placed last has `bytes` bytes and is written.
    pub(crate) fn written(&mut self, bytes: u64) {
        let file = self.current.as_mut().expect("a frame was placed");
        file.used += bytes;
        self.since_checkpoint += bytes;
    }

    fn retire_current(&mut self) {
        let Some(Ready { name, len, generation, used, .. }) = self.current.take() else { return };
        self.since_checkpoint += len - used;
        self.kept.push_back(Kept { name, len, generation });
    }

    /// Returns how many bytes frames can take without a new file.
    pub(crate) fn bytes_left(&self) -> u64 {
        let left = |file: &Option<Ready>| file.as_ref().map_or(0, |file| file.len - file.used);
        left(&self.current) + left(&self.next)
    }

    /// Returns the kept files and the current file: for each, the name, the used bytes, and the length (bytes). All bytes of a kept file
    /// count as used.
    pub(crate) fn used(&self) -> impl Iterator<Item = (&Arc<str>, u64, u64)> {
        let kept = self.kept.iter().map(|file| (&file.name, file.len, file.len));
        kept.chain(self.current.iter().map(|file| (&file.name, file.used, file.len)))
    }

    /// Returns the bytes of the files that a checkpoint would free if the checkpoint began now.
    pub(crate) fn bytes_kept(&self) -> u64 {
        self.kept.iter().map(|file| file.len).sum()
    }

    /// Takes out all spares. The caller has to remove the returned files.
    pub(crate) fn give_up_spares(&mut self) -> Vec<Arc<str>> {
        self.spares.drain(..).map(|spare| spare.name).collect()
    }

    pub(crate) fn since_checkpoint(&self) -> u64 {
        self.since_checkpoint
    }

    /// Sets the bytes of log since the last checkpoint: when a checkpoint begins, or when a checkpoint was given up and its bytes count
    /// again.
    pub(crate) fn set_since_checkpoint(&mut self, bytes: u64) {
        self.since_checkpoint = bytes;
    }

    /// Returns a generation that is not above the generation of any later frame.
    pub(crate) fn current_generation(&self) -> u64 {
        let too_small = self.preparing.as_ref().and_then(|preparing| preparing.too_small.as_ref());
        // Before the first frame, the result is the generation of the next file. A file that was too small becomes the next file again if
        // the disk has no space for the larger file.
        let lowest = self.current.as_ref().or(self.next.as_ref()).or(too_small);
        lowest.map_or(self.progress.generation, |file| file.generation)
    }

    /// Takes in that all frames up to `frame` are synced.
    pub(crate) fn synced_through(&mut self, frame: u64) {
        self.progress.synced = self.progress.synced.max(frame);
    }

    /// Returns the newest file that took frames, and the last synced frame. The file is among those that [`used`](Self::used) returns.
    pub(crate) fn newest(&self) -> Newest {
        Newest { file: self.progress.newest, frame: self.progress.synced }
    }

    /// Whether the preparation step that was handed out last writes the note.
    pub(crate) fn is_noting(&self) -> bool {
        self.preparing.as_ref().is_some_and(|preparing| preparing.stage == Stage::Note)
    }

    /// Returns the name that the note under way has until it is finished.
    pub(crate) fn note_under_way(&self) -> Arc<str> {
        newest_file_unfinished(self.preparing.as_ref().map_or(0, |preparing| preparing.file.generation))
    }

    /// Whether a file has to be prepared: for a frame of `wanted` bytes that waits, or, if `wanted` is `None`, for later frames.
    pub(crate) fn wants_preparation(&self, wanted: Option<u64>) -> bool {
        let fits = |file: &Ready| wanted.is_none_or(|bytes| file.used + bytes <= file.len);
        if self.preparing.is_some() {
            return true;
        }
        match (&self.next, &self.current, wanted) {
            (Some(next), _, _) => !fits(next),
            (None, _, Some(_)) | (None, None, None) => true,
            // If no frame waits, the preparation begins when a quarter of the current file is used. A store that hardly writes prepares no
            // file.
            (None, Some(current), None) => current.used >= current.len / 4,
        }
    }

    /// Returns the calls of the next step of the preparation, with at most `step_bytes` bytes of zeroes in the file. The caller makes the
    /// calls, calls [`step_done`](Self::step_done), and repeats this while [`wants_preparation`](Self::wants_preparation) returns true.
    pub(crate) fn preparation_step(&mut self, wanted: Option<u64>, step_bytes: usize) -> Vec<Call> {
        let seeds = self.seeds;
        let mut preparing = self.preparing.take().unwrap_or_else(|| self.begin(wanted));
        let name = Arc::clone(&preparing.file.name);
        let len = preparing.file.len;
        if preparing.stage == Stage::Header {
            preparing.stage = Stage::Note;
            let newest = Newest { file: Some(preparing.file.this_use()), frame: self.progress.synced };
            self.preparing = Some(preparing);
            return newest.calls(&seeds);
        }
        let mut calls = Vec::new();
        if let Some(zeroed) = &mut preparing.zeroed {
            if *zeroed == 0 {
                calls.push(Call::Create(Arc::clone(&name)));
            }
            let bytes = usize::try_from(len - *zeroed).map_or(step_bytes, |rest| rest.min(step_bytes));
            if bytes > 0 {
                calls.push(Call::Zero { file: Arc::clone(&name), offset: *zeroed, bytes });
                *zeroed += bytes as u64;
            }
        }
        let finishing = preparing.zeroed.is_none_or(|zeroed| zeroed == len);
        if preparing.zeroed.is_none() {
            // A spare may be from a process whose syncs failed. Then it is unknown whether the spare's end is durable, so the end is
            // written again, and the sync below covers it. A file with a frame of this use therefore has all its bytes.
            let end = len - END_MARK_BYTES as u64;
            calls.push(Call::Zero { file: Arc::clone(&name), offset: end, bytes: END_MARK_BYTES });
        }
        if finishing {
            preparing.stage = Stage::Header;
            let fresh = preparing.zeroed.is_some();
            let Ready { generation, before, .. } = preparing.file;
            let header = LogHeader { generation, len, fresh, before };
            let mut bytes = header.to_bytes(&seeds).to_vec();
            bytes.resize(FRAMES_AT as usize + END_MARK_BYTES, 0);
            calls.push(Call::Write { file: Arc::clone(&name), offset: 0, bytes });
        }
        calls.push(Call::Sync(name));
        if finishing && preparing.zeroed.is_some() {
            calls.push(Call::SyncDir(SHARD.into()));
        }
        self.preparing = Some(preparing);
        calls
    }

    fn begin(&mut self, wanted: Option<u64>) -> Preparing {
        let needed = wanted.map_or(0, |bytes| (FRAMES_AT + bytes).next_multiple_of(4_096));
        let len = self.sizes.file_bytes.max(needed);
        // Files take frames in the order of their generations. So a prepared file that is too small is prepared again later, with a higher
        // generation.
        let too_small = self.next.take();
        self.progress.generation += 1;
        let spare = self.spares.iter().position(|spare| spare.len >= len).map(|at| self.spares.remove(at));
        let (name, len, zeroed) = match spare {
            Some(spare) => (spare.name, spare.len, None),
            None => {
                self.progress.number += 1;
                (log_file(self.progress.number), len, Some(0))
            }
        };
        let Progress { generation, newest, .. } = self.progress;
        // No other file becomes the current one before this file is ready, so `newest` will still be the file before it.
        let file = Ready { name, len, generation, used: FRAMES_AT, before: newest };
        Preparing { file, zeroed, stage: Stage::Filling, too_small }
    }

    /// Takes in that the calls of the last step were made. If they wrote the note, the prepared file becomes the next one, and its name is
    /// returned.
    pub(crate) fn step_done(&mut self) -> Option<Arc<str>> {
        let done = self.preparing.take_if(|preparing| preparing.stage == Stage::Note)?;
        self.spares.extend(done.too_small.map(|file| Spare { name: file.name, len: file.len }));
        Some(Arc::clone(&self.next.insert(done.file).name))
    }

    /// Takes in that the rename of the note failed on a full disk. The next step writes the note again.
    pub(crate) fn note_again(&mut self) {
        if let Some(preparing) = &mut self.preparing {
            preparing.stage = Stage::Header;
        }
    }

    /// Takes in that the last step failed on a full disk, and gives the file up. Returns the file if it has to be removed; a spare stays a
    /// spare.
    pub(crate) fn step_refused(&mut self) -> Option<Arc<str>> {
        let preparing = self.preparing.take()?;
        self.next = preparing.too_small;
        let Ready { name, len, .. } = preparing.file;
        if preparing.zeroed.is_some() {
            return Some(name);
        }
        self.spares.push(Spare { name, len });
        None
    }

    /// Takes in that a durable checkpoint begins in the file of this generation, so the checkpoint covers all files of lower generations.
    /// Makes these files spares. Returns the spares that have to be removed.
    ///
    /// The file in which the checkpoint begins stays, even if the checkpoint covers all its frames: the header of the next file names this
    /// file, and a recovery may look for it.
    pub(crate) fn free_below(&mut self, generation: u64) -> Vec<Arc<str>> {
        self.floor = self.floor.max(generation);
        let files = std::mem::take(&mut self.kept).into_iter();
        let (kept, freed): (VecDeque<Kept>, VecDeque<Kept>) =
            files.partition(|file| file.generation >= generation);
        self.kept = kept;
        self.spares.extend(freed.into_iter().map(|Kept { name, len, .. }| Spare { name, len }));
        let Sizes { file_bytes, spares_max } = self.sizes;
        let mut stay = 0;
        let goes = |spare: &mut Spare| {
            let stays = spare.len == file_bytes && stay < spares_max;
            stay += usize::from(stays);
            !stays
        };
        self.spares.extract_if(.., goes).map(|spare| spare.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        Files::new(
            Seeds::new([3; 16]),
            Sizes { file_bytes: 16_384, spares_max: 4 },
            VecDeque::new(),
            Vec::new(),
            Progress { generation: 0, number: 0, synced: 0, newest: None },
        )
    }

    fn prepare(files: &mut Files, wanted: Option<u64>) -> usize {
        let mut steps = 0;
        while files.wants_preparation(wanted) {
            assert!(!files.preparation_step(wanted, 4_096).is_empty(), "a step without a call");
            files.step_done();
            steps += 1;
        }
        steps
    }

    #[test]
    fn files_go_round() {
        let mut files = files();
        assert_eq!(files.place(100), None, "there is no file yet");
        assert_eq!(prepare(&mut files, Some(100)), 5, "four steps of zeroes, and the note");
        let mut used = Vec::new();
        for _ in 1..=30 {
            prepare(&mut files, None);
            let place = files.place(4_096).expect("a file was prepared");
            files.written(4_096);
            used.push((place.generation, place.file.to_string(), place.offset));
            let removed = files.free_below(place.generation);
            assert_eq!(removed, Vec::<Arc<str>>::new());
        }
        let generations: Vec<u64> = used.iter().map(|(generation, ..)| *generation).collect();
        assert!(generations.is_sorted(), "{generations:?}");
        assert_eq!(generations.last(), Some(&10), "three frames to a file");
        let mut names: Vec<&String> = used.iter().map(|(_, name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 2, "one is written while the other is prepared: {names:?}");
    }

    #[test]
    fn a_large_frame_gets_a_file_of_its_own_size_that_is_not_kept() {
        let mut files = files();
        prepare(&mut files, None);
        files.place(100).expect("a file was prepared");
        files.written(100);
        prepare(&mut files, Some(50_000));
        let place = files.place(50_000).expect("a file was prepared");
        files.written(50_000);
        assert_eq!(place.offset, FRAMES_AT);
        prepare(&mut files, Some(8_000));
        let last = files.place(8_000).expect("a file was prepared");
        files.written(8_000);
        assert_eq!(files.free_below(place.generation), Vec::<Arc<str>>::new());
        assert_eq!(files.free_below(last.generation), [place.file]);
    }

    /// The story: a file was prepared and noted as the newest, and then a larger file was needed. If the small file were removed or used
    /// again before the note names the large file, a crash would leave a note of a missing file, although no data was lost.
    #[test]
    fn a_file_that_is_noted_is_not_given_away_before_the_note_is_of_another() {
        let mut files = files();
        prepare(&mut files, Some(100));
        let small = log_file(1);
        let wanted = Some(50_000);
        while files.wants_preparation(wanted) {
            files.preparation_step(wanted, 4_096);
            assert!(files.spares.is_empty() && files.free_below(9).is_empty(), "{small} is still noted");
            files.step_done();
        }
        assert_eq!(files.spares.iter().map(|spare| &spare.name).collect::<Vec<_>>(), [&small]);
        // If the disk has no space for the large file, the small file is the next one again.
        let mut files = self::files();
        prepare(&mut files, Some(100));
        files.preparation_step(wanted, 4_096);
        files.step_refused();
        assert_eq!(files.place(100).map(|place| place.file), Some(small));
    }

    #[test]
    fn a_checkpoint_before_the_first_frame_covers_no_file_that_may_take_it() {
        let mut files = files();
        prepare(&mut files, Some(100));
        assert_eq!(files.current_generation(), 1, "the next file takes the first frame");
        files.preparation_step(Some(50_000), 4_096);
        let begins_in = files.current_generation();
        // The disk has no space for the larger file, so the small file is the next one again.
        files.step_refused();
        files.free_below(begins_in);
        let place = files.place(100).expect("a file was prepared");
        assert!(place.generation >= begins_in, "no recovery would read {place:?}");
    }

    #[test]
    fn a_file_that_finds_no_space_is_removed_and_a_spare_is_not() {
        let mut files = files();
        files.preparation_step(None, 4_096);
        assert_eq!(files.step_refused(), Some(log_file(1)));
        assert!(files.wants_preparation(None), "nothing to write to, and nothing wanted");
        files.spares.push(Spare { name: log_file(9), len: 16_384 });
        files.preparation_step(None, 4_096);
        assert_eq!(files.step_refused(), None);
        assert_eq!(files.spares.len(), 1);
    }
}
