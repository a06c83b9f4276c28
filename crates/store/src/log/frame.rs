//! A frame: the changes that one commit wrote.

use tickwheel_engine::{Epoch, Seq, Timestamp};

use super::file::FRAMES_AT;
use crate::checksum::{Seeds, Use, crc};
use crate::layout::{can_rise, le_u32, le_u64};

const MAGIC: u32 = u32::from_le_bytes(*b"TWfr");

/// The length of the head in front of a frame's records (bytes).
pub(crate) const HEAD_BYTES: usize = 72;

/// How many zeroes are written behind each frame, together with the frame, if the file has space for them (bytes). The next frame
/// overwrites them. The zeroes mark the end of the log: other bytes there are part of an incomplete or damaged frame.
pub(crate) const END_MARK_BYTES: usize = 8;

/// The head of a frame, in front of the frame's records.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct FrameHead {
    /// The generation of the file's use for which the frame was written.
    pub(crate) generation: u64,
    /// The epoch of the owner that wrote the frame.
    pub(crate) epoch: Epoch,
    /// The frame's number: one more than the number of the frame before it. An owner's first frame may repeat the number and the records of
    /// the last frame that the owner found. Then that last frame is void, and so are all frames behind it.
    pub(crate) number: u64,
    /// The last frame that the writer knew to be synced when it wrote this frame.
    pub(crate) durable: u64,
    /// The number of the last change before this frame.
    pub(crate) prev_seq: Seq,
    /// The number of the last change in this frame; equal to `prev_seq` if the frame has no change.
    pub(crate) seq: Seq,
    /// The wall clock of the owner at the commit, or the `wall` of the frame before, if that is later.
    pub(crate) wall: Timestamp,
}

/// A frame whose checksums match.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) head: FrameHead,
    /// The frame's records.
    pub(crate) ops: &'a [u8],
}

/// The reason why no frame was read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bad {
    /// The bytes do not look like a frame of this use.
    Nothing,
    /// The head is of this use, but the records are damaged or incomplete. The number is the length of the frame (bytes).
    Torn(u64),
}

/// Returns the length (bytes) of a frame whose records have `ops` bytes. Frames begin at multiples of eight, so the length is rounded up.
pub(crate) fn frame_bytes(ops: usize) -> usize {
    (HEAD_BYTES + ops).next_multiple_of(8)
}

/// Completes a frame: writes the head and the checksums. `bytes` has `HEAD_BYTES` bytes of space for the head, then the records.
pub(crate) fn stamp(bytes: &mut Vec<u8>, head: FrameHead, seeds: &Seeds) {
    let seed = seeds.of(Use::Frames(head.generation));
    let ops = bytes.len() - HEAD_BYTES;
    let length = u32::try_from(ops).expect("a commit is bounded far below 4 GiB by who fills it");
    let FrameHead { generation, epoch, number, durable, prev_seq, seq, wall } = head;
    bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&length.to_le_bytes());
    let sum = crc(seed, &bytes[HEAD_BYTES..]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    bytes[16..20].copy_from_slice(&epoch.0.to_le_bytes());
    bytes[20..24].copy_from_slice(&[0; 4]);
    let numbers = [generation, number, durable, prev_seq.0, seq.0, wall.as_tick()];
    for (chunk, number) in bytes[24..HEAD_BYTES].chunks_exact_mut(8).zip(numbers) {
        chunk.copy_from_slice(&number.to_le_bytes());
    }
    let sum = crc(seed, &bytes[8..HEAD_BYTES]);
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    bytes.resize(frame_bytes(ops), 0);
    debug_assert!(
        read_frame(bytes, 0, generation, seeds).is_ok_and(|frame| frame.head == head),
        "frame {number} does not read as it was written"
    );
}

/// Reads the frame at `at`, of the use that its head names. Returns the head, and the records. If the records are damaged or incomplete,
/// the length of the frame (bytes) is in place of the records. `None` if there is no valid head.
fn read_claimed<'a>(file: &'a [u8], at: usize, seeds: &Seeds) -> Option<(FrameHead, Result<&'a [u8], u64>)> {
    let bytes = file.get(at..)?.first_chunk::<HEAD_BYTES>()?;
    if le_u32(bytes, 0) != MAGIC {
        return None;
    }
    let generation = le_u64(bytes, 24);
    let seed = seeds.of(Use::Frames(generation));
    if le_u32(bytes, 4) != crc(seed, &bytes[8..]) {
        return None;
    }
    let head = FrameHead {
        generation,
        epoch: Epoch(le_u32(bytes, 16)),
        number: le_u64(bytes, 32),
        durable: le_u64(bytes, 40),
        prev_seq: Seq(le_u64(bytes, 48)),
        seq: Seq(le_u64(bytes, 56)),
        wall: Timestamp::from_ms(i64::try_from(le_u64(bytes, 64)).ok()?)?,
    };
    if head.epoch.0 == u32::MAX || !can_rise(&[generation, head.number, head.seq.0]) {
        return None;
    }
    let length = le_u32(bytes, 8) as usize;
    let ops = file[at + HEAD_BYTES..].get(..length).filter(|ops| crc(seed, ops) == le_u32(bytes, 12));
    Some((head, ops.ok_or((HEAD_BYTES + length) as u64)))
}

/// Reads the frame at `at` of a file that is in use as `generation`.
pub(crate) fn read_frame<'a>(
    file: &'a [u8],
    at: usize,
    generation: u64,
    seeds: &Seeds,
) -> Result<Frame<'a>, Bad> {
    match read_claimed(file, at, seeds) {
        Some((head, _)) if head.generation != generation => Err(Bad::Nothing),
        Some((head, Ok(ops))) => Ok(Frame { head, ops }),
        Some((_, Err(bytes))) => Err(Bad::Torn(bytes)),
        None => Err(Bad::Nothing),
    }
}

/// Finds the first frame from `from` on, of any use, that proves that the frame with this number was synced. A frame is a proof if its
/// writer knew the frame with this number to be synced.
///
/// Looks at every place where a frame could begin, so a damaged frame does not hide the frames behind it. The search is cheap: other bytes
/// fail at their first four bytes or at the head's checksum.
pub(crate) fn find_proof(file: &[u8], from: usize, number: u64, seeds: &Seeds) -> Option<(usize, FrameHead)> {
    let found = find_frame(file, from, seeds, |head| head.durable >= number);
    found.map(|(at, frame)| (at, frame.head))
}

/// Finds the first frame from `from` on, of any use, whose checksums match and for whose head `wanted` returns true. Returns its offset
/// too.
pub(crate) fn find_frame<'a>(
    file: &'a [u8],
    from: usize,
    seeds: &Seeds,
    wanted: impl Fn(&FrameHead) -> bool,
) -> Option<(usize, Frame<'a>)> {
    (from.next_multiple_of(8)..file.len()).step_by(8).find_map(|at| match read_claimed(file, at, seeds) {
        Some((head, Ok(ops))) if wanted(&head) => Some((at, Frame { head, ops })),
        _ => None,
    })
}

/// Returns all frames of a log file whose checksums match, of any use, each with its offset.
pub(crate) fn frames<'a>(file: &'a [u8], seeds: &'a Seeds) -> impl Iterator<Item = (usize, Frame<'a>)> {
    let mut from = FRAMES_AT as usize;
    std::iter::from_fn(move || {
        let (at, frame) = find_frame(file, from, seeds, |_| true)?;
        from = at + frame_bytes(frame.ops.len());
        Some((at, frame))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(number: u64) -> FrameHead {
        FrameHead {
            generation: 5,
            epoch: Epoch(2),
            number,
            durable: number - 1,
            prev_seq: Seq(10),
            seq: Seq(12),
            wall: Timestamp::MAX,
        }
    }

    fn frame(number: u64, ops: &[u8], seeds: &Seeds) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_BYTES];
        bytes.extend_from_slice(ops);
        stamp(&mut bytes, head(number), seeds);
        bytes
    }

    #[test]
    fn a_frame_reads_as_written_in_its_own_use_only() {
        let seeds = Seeds::new([1; 16]);
        let bytes = frame(3, b"records", &seeds);
        assert_eq!(bytes.len() % 8, 0);
        let read = read_frame(&bytes, 0, 5, &seeds).expect("a frame");
        assert_eq!((read.head, read.ops), (head(3), &b"records"[..]));
        assert_eq!(read_frame(&bytes, 0, 6, &seeds).expect_err("a stale frame"), Bad::Nothing);
        let other = Seeds::new([2; 16]);
        assert_eq!(read_frame(&bytes, 0, 5, &other).expect_err("another directory's"), Bad::Nothing);
    }

    /// The story: a frame had the highest possible number, and the next number overflowed.
    #[test]
    fn a_frame_with_the_last_number_there_is_is_none() {
        let seeds = Seeds::new([1; 16]);
        for raise in [32, 56] {
            let mut bytes = frame(3, b"records", &seeds);
            bytes[raise..raise + 8].fill(0xff);
            let sum = crc(seeds.of(Use::Frames(5)), &bytes[8..HEAD_BYTES]);
            bytes[4..8].copy_from_slice(&sum.to_le_bytes());
            assert_eq!(read_frame(&bytes, 0, 5, &seeds).expect_err("no frame"), Bad::Nothing, "byte {raise}");
        }
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let seeds = Seeds::new([1; 16]);
        let bytes = frame(3, b"12345678", &seeds);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read_frame(&damaged, 0, 5, &seeds).is_err(), "bit {bit} went unseen");
        }
        assert_eq!(read_frame(&bytes[..bytes.len() - 8], 0, 5, &seeds).expect_err("cut"), Bad::Torn(80));
    }

    #[test]
    fn a_later_frame_is_found_behind_damage_and_inside_no_payload() {
        let seeds = Seeds::new([1; 16]);
        // The payload of a client that knows the format of frames, but not the secret of the directory.
        let forged = frame(9, b"x", &Seeds::new([0; 16]));
        let mut file = frame(3, &forged, &seeds);
        file[20] ^= 1;
        assert_eq!(find_proof(&file, 0, 1, &seeds), None);
        let second_at = file.len();
        file.extend(frame(4, b"", &seeds));
        assert_eq!(find_proof(&file, 0, 3, &seeds).map(|(at, head)| (at, head.number)), Some((second_at, 4)));
        assert_eq!(find_proof(&file, 0, 4, &seeds), None, "nobody says that frame 4 was synced");
    }
}
