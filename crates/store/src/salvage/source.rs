//! Reads from a damaged disk the parts that can still be read.

use std::io;

use rustix::io::Errno;

use crate::disk::{Disk, DiskError};
use crate::layout::zeroes;

/// The size of the blocks that are read one by one after a larger read failed (bytes).
const BLOCK_BYTES: u64 = 4_096;
/// The least number of bytes that are read at once where one record follows the other.
const WINDOW_BYTES: u64 = 256 << 10;

/// The damaged directory. A part that the disk fails to read is returned as zeroes, and noted. So each caller checks the bytes by a
/// checksum.
pub(super) struct Source<'d, D> {
    disk: &'d mut D,
    /// The parts that could not be read: file, first byte, and the first byte behind the part.
    unreadable: Vec<(String, u64, u64)>,
    /// The first failure that is damage of the disk, as [`is_damage`] tells.
    first_failure: Option<DiskError>,
    /// The first failure that is no damage of the disk: the files may be whole, and another try may read them.
    refusal: Option<DiskError>,
    window: Window,
    /// The window that is not used at present.
    other: Window,
}

/// A part of one file that was read last, and is in memory.
#[derive(Default)]
struct Window {
    file: String,
    at: u64,
    bytes: Vec<u8>,
}

impl<'d, D: Disk> Source<'d, D> {
    pub(super) fn new(disk: &'d mut D) -> Self {
        let (window, other) = (Window::default(), Window::default());
        Self { disk, unreadable: Vec::new(), first_failure: None, refusal: None, window, other }
    }

    /// Returns, and forgets, the first failure that is no damage of the disk.
    ///
    /// # Errors
    /// Some file was not read, and the disk is not the cause: this user may not read the file, it is a link, or no more files can be
    /// opened.
    pub(super) fn check_refusal(&mut self) -> Result<(), DiskError> {
        self.refusal.take().map_or(Ok(()), Err)
    }

    /// Returns a sentence about the first part that the disk failed to read, and why.
    pub(super) fn first_failure(&self) -> Option<String> {
        self.first_failure.as_ref().map(|error| format!("the first read that failed: {error}"))
    }

    /// Swaps the two windows. A body of another record is read through the other window, so the records that come next stay in the first
    /// one.
    pub(super) fn change_window(&mut self) {
        std::mem::swap(&mut self.window, &mut self.other);
    }

    /// Forgets the bytes of the window, so that the disk is asked again.
    pub(super) fn forget(&mut self) {
        self.window = Window::default();
    }

    /// Returns the first unreadable part of the file that has bytes between `from` and `to`, if there is one.
    pub(super) fn unreadable_in(&self, file: &str, from: u64, to: u64) -> Option<(u64, u64)> {
        let touches = |(known, start, end): &&(String, u64, u64)| known == file && *start < to && from < *end;
        self.unreadable.iter().find(touches).map(|(_, start, end)| (*start, *end))
    }

    /// Whether any part could not be read so far.
    pub(super) fn has_failed(&self) -> bool {
        !self.unreadable.is_empty()
    }

    pub(super) fn into_unreadable(self) -> Vec<(String, u64, u64)> {
        self.unreadable
    }

    /// Lists a folder.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub(super) fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        self.disk.list(dir)
    }

    /// Returns the length of a file (bytes). `None` if the file is missing or cannot be opened. A file that cannot be opened is noted as
    /// unreadable.
    pub(super) fn len(&mut self, file: &str) -> Option<u64> {
        match self.disk.len(file) {
            Ok(len) => Some(len),
            Err(error) => {
                if error.source.kind() != io::ErrorKind::NotFound {
                    self.note(file, 0, u64::MAX);
                    self.failed(error);
                }
                None
            }
        }
    }

    pub(super) fn close(&mut self, file: &str) {
        self.disk.close(file);
    }

    /// Reads at most `len` bytes from offset `from` on; fewer only at the end of the file. Parts that cannot be read are zeroes.
    pub(super) fn read(&mut self, file: &str, from: u64, len: u64) -> Vec<u8> {
        let len = len.min(self.len(file).unwrap_or(0).saturating_sub(from));
        let mut bytes = zeroes(len);
        // A read that ends early is treated as a failed one, because the file is longer.
        if !self.disk.read(file, from, &mut bytes).is_ok_and(|count| count == bytes.len()) {
            self.read_in_blocks(file, from, &mut bytes);
        }
        bytes
    }

    fn read_in_blocks(&mut self, file: &str, from: u64, bytes: &mut [u8]) {
        let end = from + bytes.len() as u64;
        let mut at = from;
        while at < end {
            let next = (at / BLOCK_BYTES + 1).saturating_mul(BLOCK_BYTES).min(end);
            let block = &mut bytes[(at - from) as usize..(next - from) as usize];
            let read = self.disk.read(file, at, block);
            if !read.as_ref().is_ok_and(|count| *count == block.len()) {
                block.fill(0);
                self.note(file, at, next);
            }
            if let Err(error) = read {
                self.failed(error);
            }
            at = next;
        }
    }

    fn failed(&mut self, error: DiskError) {
        let failure = if is_damage(&error.source) { &mut self.first_failure } else { &mut self.refusal };
        failure.get_or_insert(error);
    }

    fn note(&mut self, file: &str, from: u64, to: u64) {
        if self.unreadable.iter().any(|(known, start, end)| known == file && *start <= from && to <= *end) {
            return;
        }
        match self.unreadable.last_mut() {
            Some((known, _, end)) if known == file && *end == from => *end = to,
            _ => self.unreadable.push((file.to_owned(), from, to)),
        }
    }

    /// Returns the same bytes as [`read`](Self::read), from a window in memory. The caller goes on with the bytes behind, so more of them
    /// are read at once.
    pub(super) fn next(&mut self, file: &str, from: u64, len: u64) -> &[u8] {
        let has = |window: &Window| {
            window.file == file && window.at <= from && from + len <= window.at + window.bytes.len() as u64
        };
        if !has(&self.window) {
            if self.window.file != file && self.other.file != self.window.file {
                // A directory may have more files than a process may have open. So a file that no window has is closed.
                self.disk.close(&self.window.file);
            }
            // A search byte by byte asks for the next record one byte later. So at least twice the length is read, and the window serves
            // the next calls.
            let bytes = self.read(file, from, len.saturating_mul(2).max(WINDOW_BYTES));
            self.window = Window { file: file.to_owned(), at: from, bytes };
        }
        let at = usize::try_from(from - self.window.at).expect("a window fits the memory");
        let rest = &self.window.bytes[at.min(self.window.bytes.len())..];
        &rest[..rest.len().min(usize::try_from(len).unwrap_or(usize::MAX))]
    }
}

/// Whether the error says that the disk, or the file system on it, lost the bytes.
fn is_damage(error: &io::Error) -> bool {
    let Some(code) = error.raw_os_error() else {
        // Without an error number, the error comes from a simulated disk. Such a disk reports damage as `Other`.
        return error.kind() == io::ErrorKind::Other;
    };
    let mut damages = vec![Errno::IO, Errno::BADMSG];
    // `UCLEAN`: the file system is damaged. `NODATA`: the medium has lost the bytes. `REMOTEIO`: the device behind a network failed.
    #[cfg(target_os = "linux")]
    damages.extend([Errno::UCLEAN, Errno::NODATA, Errno::REMOTEIO]);
    damages.iter().any(|damage| damage.raw_os_error() == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_disk_has_lost_is_damage() {
        let of_code = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        assert!(is_damage(&of_code(Errno::IO)) && is_damage(&of_code(Errno::BADMSG)));
        for errno in
            [Errno::ACCESS, Errno::PERM, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::ISDIR, Errno::STALE]
        {
            assert!(!is_damage(&of_code(errno)), "{errno:?}");
        }
        assert!(!is_damage(&io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link")));
    }
}
