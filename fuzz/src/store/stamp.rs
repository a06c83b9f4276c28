//! Makes checksums right again, as `docs/explanation/format.md` says how they are made. Nothing of the store is called.

use std::collections::BTreeMap;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::life::SECRET;

/// Bytes of a header, and of a section's tail.
pub(super) const HEADER: usize = 64;
const TAIL: usize = 64;
const FRAMES_AT: usize = 4_096;
const FRAME_HEAD: usize = 72;
const BLOCK_HEAD: usize = 24;
const RECORD_HEAD: usize = 9;

/// A frame as it stands in a log file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    pub(super) at: usize,
    /// Where its records end.
    pub(super) end: usize,
    pub(super) number: u64,
    pub(super) durable: u64,
    pub(super) seq: u64,
}

/// A section as it stands in a segment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Section {
    pub(super) start: usize,
    pub(super) footer_at: usize,
    pub(super) tail_at: usize,
    is_run: bool,
}

/// Stamps a changed file of a directory anew. If a segment became longer or shorter, the checkpoints that list it say so.
pub(super) fn stamp(files: &mut BTreeMap<String, Vec<u8>>, name: &str) {
    let Some((kind, number)) = kind_and_number(name) else { return };
    let Some(bytes) = files.get_mut(name).filter(|bytes| bytes.len() >= HEADER) else { return };
    match kind {
        "log" => stamp_log(bytes),
        "segment" => stamp_segment(bytes, number),
        _ => stamp_checkpoint(bytes, number),
    }
    if kind == "segment" {
        let len = bytes.len() as u64;
        for (name, bytes) in files.iter_mut().filter(|(name, _)| name.contains("/checkpoint-")) {
            if let Some((_, checkpoint)) = kind_and_number(name).filter(|_| relist(bytes, number, len)) {
                stamp_checkpoint(bytes, checkpoint);
            }
        }
    }
}

/// Finds that every file of a whole directory is stamped as it would be here.
///
/// # Panics
/// If one is not: then this is not what the store does.
pub(super) fn check(files: &BTreeMap<String, Vec<u8>>) {
    let mut stamped = files.clone();
    for name in files.keys() {
        stamp(&mut stamped, name);
        let differs = files[name].iter().zip(&stamped[name]).position(|(a, b)| a != b);
        assert!(stamped[name] == files[name], "{name} is stamped otherwise at {differs:?}");
    }
}

/// The frames of a log file, of its present use.
pub(super) fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut at = FRAMES_AT;
    while let Some(head) = bytes.get(at..at + FRAME_HEAD) {
        if &head[..4] != b"TWfr" || le64(head, 24) != le64(bytes, 16) {
            break;
        }
        let end = at + FRAME_HEAD + le32(head, 8) as usize;
        frames.push(Frame { at, end, number: le64(head, 32), durable: le64(head, 40), seq: le64(head, 56) });
        at = end.next_multiple_of(8);
    }
    frames
}

/// The sections of a segment, last to first.
pub(super) fn sections(bytes: &[u8]) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut end = bytes.len();
    while end >= HEADER + TAIL {
        let tail_at = end - TAIL;
        let tail = &bytes[tail_at..];
        let number = |at| usize::try_from(le64(tail, at)).unwrap_or(usize::MAX);
        let (start, footer_at) = (number(16), number(24));
        if start < HEADER || start > footer_at || footer_at > tail_at {
            break;
        }
        sections.push(Section { start, footer_at, tail_at, is_run: le32(tail, 12) == 1 });
        end = start;
    }
    sections
}

fn kind_and_number(name: &str) -> Option<(&str, u64)> {
    let (kind, number) = name.strip_prefix("shard-0000/")?.split_once('-')?;
    Some((kind, number.parse().ok()?))
}

fn seed(kind: u64, number: u64) -> u32 {
    let mut hasher = SipHasher13::new_with_key(&SECRET);
    hasher.write(b"tickwheel store ");
    hasher.write(&kind.to_le_bytes());
    hasher.write(&number.to_le_bytes());
    hasher.finish() as u32
}

fn crc(seed: u32, parts: &[&[u8]]) -> u32 {
    parts.iter().fold(seed, |sum, part| crc32c::crc32c_append(sum, part))
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn put32(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

fn stamp_header(bytes: &mut [u8], seed: u32) {
    let sum = crc(seed, &[&bytes[..12], &bytes[16..HEADER]]);
    put32(bytes, 12, sum);
}

fn stamp_log(bytes: &mut [u8]) {
    stamp_header(bytes, seed(1, 0));
    let mut at = FRAMES_AT;
    while let Some(frame) =
        bytes.get_mut(at..).filter(|frame| frame.len() >= FRAME_HEAD && frame.starts_with(b"TWfr"))
    {
        let seed = seed(2, le64(frame, 24));
        let end = FRAME_HEAD + le32(frame, 8) as usize;
        if let Some(records) = frame.get(FRAME_HEAD..end) {
            let sum = crc(seed, &[records]);
            put32(frame, 12, sum);
        }
        let sum = crc(seed, &[&frame[8..FRAME_HEAD]]);
        put32(frame, 4, sum);
        at += end.next_multiple_of(8);
    }
}

fn stamp_segment(bytes: &mut [u8], generation: u64) {
    let seed = seed(4, generation);
    stamp_header(bytes, seed);
    for Section { start, footer_at, tail_at, is_run } in sections(bytes) {
        let mut at = start;
        while is_run && at + RECORD_HEAD <= footer_at {
            let end = at + RECORD_HEAD + le32(bytes, at + 5) as usize;
            if end > footer_at {
                break;
            }
            let sum = crc(seed, &[&(at as u64).to_le_bytes(), &bytes[at + 4..end]]);
            put32(bytes, at, sum);
            at = end;
        }
        let sum = crc(seed, &[&bytes[footer_at..tail_at]]);
        put32(bytes, tail_at + 32, sum);
        let tail = &bytes[tail_at..tail_at + TAIL];
        let sum = crc(seed, &[&(tail_at as u64).to_le_bytes(), &tail[..8], &tail[12..]]);
        put32(bytes, tail_at + 8, sum);
    }
}

fn stamp_checkpoint(bytes: &mut Vec<u8>, number: u64) {
    let seed = seed(3, number);
    stamp_header(bytes, seed);
    let (mut sums, mut at) = (0, HEADER);
    while let Some(end) = block_end(bytes, at) {
        let end = if le32(bytes, at + 8) == 2 { put_sums(bytes, at, end, sums) } else { end };
        let block = &bytes[at..end];
        let sum = crc(seed, &[&block[..4], &block[8..]]);
        put32(bytes, at + 4, sum);
        sums = crc(sums, &[&sum.to_le_bytes()]);
        at = end;
    }
}

fn blocks(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut at = HEADER;
    let next = || {
        let begin = at;
        at = block_end(bytes, at)?;
        Some((begin, at))
    };
    core::iter::from_fn(next).collect()
}

/// Where the block ends that begins at `at`, if it is whole.
fn block_end(bytes: &[u8], at: usize) -> Option<usize> {
    let head = bytes.get(at..at + BLOCK_HEAD)?;
    Some(at + BLOCK_HEAD + le32(head, 0) as usize).filter(|end| *end <= bytes.len())
}

/// A checkpoint had so many bytes before its content changed at `at`: the block there says how long it is now.
pub(super) fn resize_block(bytes: &mut [u8], at: usize, before: usize) {
    let block =
        blocks(bytes).into_iter().map(|(block, _)| block).take_while(|block| block + BLOCK_HEAD <= at).last();
    if let Some(block) = block.filter(|_| bytes.len() != before) {
        let length = (le32(bytes, block) as usize + bytes.len()).saturating_sub(before);
        put32(bytes, block, length as u32);
    }
}

/// The sixth number of the last block is the checksum of all checksums. Returns where the block ends now.
fn put_sums(bytes: &mut Vec<u8>, at: usize, end: usize, sums: u32) -> usize {
    let mut from = at + BLOCK_HEAD;
    for _ in 0..5 {
        let Some((_, next)) = varint(&bytes[..end], from) else { return end };
        from = next;
    }
    let Some((_, to)) = varint(&bytes[..end], from) else { return end };
    splice(bytes, at, from, to, u64::from(sums));
    at + BLOCK_HEAD + le32(bytes, at) as usize
}

/// Puts a varint in the place of another in the block at `at`.
fn splice(bytes: &mut Vec<u8>, at: usize, from: usize, to: usize, number: u64) {
    let new = put_varint(number);
    let length = le32(bytes, at) as usize + new.len() - (to - from);
    bytes.splice(from..to, new);
    put32(bytes, at, length as u32);
}

/// Makes a checkpoint list a segment as so long. Whether it lists it as anything else.
fn relist(bytes: &mut Vec<u8>, generation: u64, len: u64) -> bool {
    let Some((block, end)) = blocks(bytes).into_iter().find(|(at, _)| le32(bytes, at + 8) == 3) else {
        return false;
    };
    let mut at = block + BLOCK_HEAD;
    while at < end {
        let mut numbers = [(0, at, at); 6];
        for number in &mut numbers {
            let Some((value, next)) = varint(&bytes[..end], at) else { return false };
            *number = (value, at, next);
            at = next;
        }
        let (listed, from, to) = numbers[4];
        if numbers[0].0 == generation && listed != len {
            splice(bytes, block, from, to, len);
            return true;
        }
    }
    false
}

/// The varint at `at`, and where it ends.
pub(super) fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0;
    for (nth, byte) in bytes.get(at..)?.iter().take(10).enumerate() {
        number |= u64::from(byte & 127) << (7 * nth);
        if byte & 128 == 0 {
            return Some((number, at + nth + 1));
        }
    }
    None
}

pub(super) fn put_varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 127 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
