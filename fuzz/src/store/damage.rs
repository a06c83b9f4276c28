//! [`Damage`]: what bytes do to the files of a directory.
//!
//! Any bytes are damage, and what is missing at the end is 0. Each change is a byte that says what, one that says which file, two that say where, and
//! a few more.

use std::collections::BTreeMap;

use super::sample::Sample;
use super::stamp;

/// No more changes than this.
const EDITS_MAX: usize = 8;

/// What a number may be put to: the edges at which arithmetic goes wrong.
const EDGES: [u64; 12] = [
    0,
    1,
    2,
    0x7f,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// Which files, and which parts of them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Log files: headers and what is written behind them.
    Frames,
    /// Segments, all of them.
    Segments,
    /// What a segment says of itself: footers of runs, tombstones, tails.
    SavedIndex,
    /// Checkpoints.
    Checkpoints,
}

/// A change to one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The file.
    pub file: String,
    /// From which byte on.
    pub at: usize,
    /// What happens there.
    pub what: Change,
}

/// What happens to a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// One bit of the byte is flipped.
    Flip(u8),
    /// So many bytes are zero.
    Zero(usize),
    /// The file ends here.
    Cut,
    /// So many bytes of the same file, from this one on, stand here too: a write that went to another place.
    Copy(usize, usize),
    /// So many bytes of noise, made of a seed.
    Noise(usize, u8),
    /// So many zeroes more at the end.
    Grow(usize),
    /// These bytes.
    Write(Vec<u8>),
    /// This number, in so many bytes.
    Number(u64, usize),
    /// The varint that stands here becomes this one, shorter or longer.
    Varint(u64),
    /// These bytes are put in between.
    Insert(Vec<u8>),
    /// So many bytes are taken out.
    Remove(usize),
}

/// Some changes to a sample.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Which sample.
    pub sample: u8,
    /// Whether the checksums are made right again: then it is no damage but nonsense, written by whoever knows the secret.
    pub stamped: bool,
    /// The changes, made one after the other.
    pub edits: Vec<Edit>,
}

impl Damage {
    /// Reads bytes. Never fails.
    #[must_use]
    pub fn read(target: Target, bytes: &[u8]) -> Self {
        let mut reader = Reader(bytes);
        let code = reader.byte();
        let (sample, stamped) = (code & 3, code & 4 != 0);
        let places = places(target, Sample::nth(sample));
        let mut edits = Vec::new();
        while !reader.0.is_empty() && !places.is_empty() && edits.len() < EDITS_MAX {
            let code = reader.byte();
            let (file, spans) = &places[usize::from(reader.byte()) % places.len()];
            let at = pick(spans, reader.pair());
            let what = reader.change(code, stamped, spans);
            edits.push(Edit { file: (*file).clone(), at, what });
        }
        Self { sample, stamped, edits }
    }

    /// The files as they are then.
    #[must_use]
    pub fn apply(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = Sample::nth(self.sample).files.clone();
        for Edit { file, at, what } in &self.edits {
            if let Some(bytes) = files.get_mut(file) {
                let before = bytes.len();
                apply(bytes, *at, what);
                if self.stamped && file.contains("/checkpoint-") {
                    stamp::resize_block(bytes, *at, before);
                }
            }
        }
        if self.stamped {
            // Segments first: they may change what checkpoints say of them.
            let mut names: Vec<&String> = self.edits.iter().map(|edit| &edit.file).collect();
            names.sort_unstable_by(|a, b| b.cmp(a));
            names.dedup();
            names.into_iter().for_each(|name| stamp::stamp(&mut files, name));
        }
        files
    }
}

/// Parts of files that are worth changing.
type Spans = Vec<(usize, usize)>;

fn places(target: Target, sample: &Sample) -> Vec<(&String, Spans)> {
    let part = match target {
        Target::Frames => "/log-",
        Target::Segments | Target::SavedIndex => "/segment-",
        Target::Checkpoints => "/checkpoint-",
    };
    let spans = |bytes: &[u8]| match target {
        Target::Frames => {
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 16);
            vec![(0, stamp::HEADER), (4_096, used.clamp(4_104, bytes.len()))]
        }
        Target::SavedIndex => stamp::sections(bytes)
            .iter()
            .rev()
            .map(|section| (section.footer_at, section.tail_at + 64))
            .collect(),
        Target::Segments | Target::Checkpoints => vec![(0, bytes.len())],
    };
    sample.named(part).into_iter().map(|name| (name, spans(&sample.files[name]))).collect()
}

/// A byte of the spans, by a number of 16 bits.
fn pick(spans: &Spans, number: usize) -> usize {
    let total: usize = spans.iter().map(|(from, to)| to - from).sum();
    let mut nth = number % total.max(1);
    for (from, to) in spans {
        if nth < to - from {
            return from + nth;
        }
        nth -= to - from;
    }
    0
}

fn apply(bytes: &mut Vec<u8>, at: usize, what: &Change) {
    let at = at.min(bytes.len());
    let room = bytes.len() - at;
    match what {
        Change::Flip(bit) => bytes[at..].iter_mut().take(1).for_each(|byte| *byte ^= 1 << bit),
        Change::Zero(count) => bytes[at..].iter_mut().take(*count).for_each(|byte| *byte = 0),
        Change::Cut => bytes.truncate(at),
        Change::Copy(from, count) => {
            let from = (*from).min(bytes.len());
            let count = (*count).min(room).min(bytes.len() - from);
            bytes.copy_within(from..from + count, at);
        }
        Change::Noise(count, seed) => {
            let mut state = u64::from(*seed) + 1;
            for byte in bytes[at..].iter_mut().take(*count) {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 33) as u8;
            }
        }
        Change::Grow(count) => bytes.resize(bytes.len() + count, 0),
        Change::Write(new) => bytes[at..].iter_mut().zip(new).for_each(|(byte, new)| *byte = *new),
        Change::Number(number, width) => {
            bytes[at..].iter_mut().zip(&number.to_le_bytes()[..*width]).for_each(|(byte, new)| *byte = *new);
        }
        Change::Varint(number) => {
            if let Some((_, end)) = stamp::varint(bytes, at) {
                bytes.splice(at..end, stamp::put_varint(*number));
            }
        }
        Change::Insert(new) => drop(bytes.splice(at..at, new.iter().copied())),
        Change::Remove(count) => drop(bytes.drain(at..at + room.min(*count))),
    }
}

/// The bytes that are left.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn pair(&mut self) -> usize {
        usize::from(self.byte()) | usize::from(self.byte()) << 8
    }

    fn count(&mut self) -> usize {
        1 + usize::from(self.byte())
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.byte() % 32).map(|_| self.byte()).collect()
    }

    fn number(&mut self) -> u64 {
        let code = usize::from(self.byte());
        EDGES.get(code % 16).copied().unwrap_or_else(|| self.pair() as u64)
    }

    /// Without stamps nothing may be written that the bytes say themselves: a fuzzer that watches comparisons would forge checksums.
    fn change(&mut self, code: u8, stamped: bool, spans: &Spans) -> Change {
        match code % if stamped { 11 } else { 6 } {
            0 => Change::Flip(self.byte() % 8),
            1 => Change::Zero(self.count()),
            2 => Change::Cut,
            3 => Change::Copy(pick(spans, self.pair()), self.count()),
            4 => Change::Noise(self.count(), self.byte()),
            5 => Change::Grow(16 * self.count()),
            6 => Change::Write(self.bytes()),
            7 => Change::Number(self.number(), [1, 2, 4, 8][usize::from(self.byte() % 4)]),
            8 => Change::Varint(self.number()),
            9 => Change::Insert(self.bytes()),
            _ => Change::Remove(self.count()),
        }
    }
}
