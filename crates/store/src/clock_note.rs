//! The file `clock`: the wall clock that was believed, and when that was by the boot-time clock.
//!
//! A later opening on the same boot can tell by it whether the wall clock was set meanwhile. The file is never synced: after a crash of the
//! machine, its boot is over, and the note has no meaning. A note that is absent, torn or damaged is no note.

use crate::disk::{Disk, DiskError};
use crate::io::Call;
use crate::layout::{CLOCK, HEADER_BYTES, Own, header, read_own};

const MAGIC: [u8; 8] = *b"TICKCLCK";
const FORMAT: u32 = 1;
const SEED: u32 = 0;

/// The wall clock that was believed at one moment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ClockNote {
    /// The boot of the machine: the number that the kernel drew for it.
    pub boot: u128,
    /// The boot-time clock at that moment (ns).
    pub boot_ns: u64,
    /// The wall clock that was believed at that moment (ns since 1970).
    pub wall_ns: u64,
    /// By how much the instant by which tasks fell due was behind `wall_ns`, because a start held them back (ns).
    pub held_ns: u64,
}

impl ClockNote {
    /// Reads the note of a directory, and makes its file if there is none.
    ///
    /// # Errors
    /// The disk failed. A damaged note is no error.
    pub(crate) fn take<D: Disk>(disk: &mut D) -> Result<Option<Self>, DiskError> {
        if !disk.exists(CLOCK)? {
            disk.create(CLOCK)?;
            return Ok(None);
        }
        let mut bytes = [0; HEADER_BYTES];
        let count = disk.read(CLOCK, 0, &mut bytes)?;
        disk.close(CLOCK);
        Ok(Self::of(&bytes[..count]))
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let [low, high, boot_ns, wall_ns, held_ns, _] = read_own(bytes, MAGIC, FORMAT, SEED).ok()??;
        Some(Self { boot: u128::from(high) << 64 | u128::from(low), boot_ns, wall_ns, held_ns })
    }

    /// Returns the call that writes this note.
    pub(crate) fn call(self) -> Call {
        let own: Own =
            [self.boot as u64, (self.boot >> 64) as u64, self.boot_ns, self.wall_ns, self.held_ns, 0];
        Call::Write { file: CLOCK.into(), offset: 0, bytes: header(MAGIC, FORMAT, SEED, own).to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written_and_a_damaged_one_is_none() {
        let note = ClockNote { boot: u128::MAX - 5, boot_ns: 7, wall_ns: u64::MAX, held_ns: 9 };
        let Call::Write { bytes, .. } = note.call() else { panic!("it is written") };
        assert_eq!(ClockNote::of(&bytes), Some(note));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(ClockNote::of(&damaged), None, "byte {at}");
            assert_eq!(ClockNote::of(&bytes[..at]), None, "{at} bytes");
        }
    }
}
