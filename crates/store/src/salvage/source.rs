//! Reads the parts of a damaged place that a disk still gives.

use std::io;

use rustix::io::Errno;

use crate::disk::{Disk, DiskError};
use crate::layout::zeroes;

/// The size of the blocks that are read one by one after a larger read failed.
const BLOCK_BYTES: u64 = 4_096;
/// Bytes that are read at once where one record follows the other.
const WINDOW_BYTES: u64 = 256 << 10;

/// A damaged place. A part that the disk fails to read is taken for zeroes, and noted. So each caller checks the bytes by a checksum.
pub(super) struct Source<'d, D> {
    disk: &'d mut D,
    /// File, first byte, and the first byte behind it.
    unreadable: Vec<(String, u64, u64)>,
    /// Why the first of them was not read.
    first_failure: Option<DiskError>,
    /// The first failure that is no damage of the disk: the files may be whole, and another try may read them.
    refusal: Option<DiskError>,
    window: Window,
    /// The window that is not used at present.
    other: Window,
}

/// Bytes of one file that were read last.
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

    /// # Errors
    /// Some file was not read, and the disk is not the cause: this user may not read the file, it is a link, or no more files can be
    /// opened.
    pub(super) fn check_refusal(&mut self) -> Result<(), DiskError> {
        self.refusal.take().map_or(Ok(()), Err)
    }

    /// The first part that the disk failed to read, and why.
    pub(super) fn first_failure(&self) -> Option<String> {
        self.first_failure.as_ref().map(|error| format!("the first read that failed: {error}"))
    }

    /// Changes to the other of the two windows: a body that stands elsewhere does not take the place of the records that come next.
    pub(super) fn change_window(&mut self) {
        std::mem::swap(&mut self.window, &mut self.other);
    }

    /// Forgets the bytes of the window, so that the disk is asked again.
    pub(super) fn forget(&mut self) {
        self.window = Window::default();
    }

    /// The part of these bytes of a file that the disk failed to read, if there is one.
    pub(super) fn unreadable_in(&self, file: &str, from: u64, to: u64) -> Option<(u64, u64)> {
        let touches = |(known, start, end): &&(String, u64, u64)| known == file && *start < to && from < *end;
        self.unreadable.iter().find(touches).map(|(_, start, end)| (*start, *end))
    }

    /// Whether the disk failed to read anything so far.
    pub(super) fn has_failed(&self) -> bool {
        !self.unreadable.is_empty()
    }

    pub(super) fn into_unreadable(self) -> Vec<(String, u64, u64)> {
        self.unreadable
    }

    /// # Errors
    /// The folder cannot be listed.
    pub(super) fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        self.disk.list(dir)
    }

    /// The length (bytes). `None` if the file is not there, or cannot be opened.
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

    /// The bytes from `from` on, at most `len`: fewer at the end of the file only.
    pub(super) fn read(&mut self, file: &str, from: u64, len: u64) -> Vec<u8> {
        let len = len.min(self.len(file).unwrap_or(0).saturating_sub(from));
        let mut bytes = zeroes(len);
        // A read that ends early counts as a failed one, because the file is longer.
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

    /// Reads as [`read`](Self::read) does, for callers that go on with the bytes behind: more is read at once.
    pub(super) fn next(&mut self, file: &str, from: u64, len: u64) -> &[u8] {
        let has = |window: &Window| {
            window.file == file && window.at <= from && from + len <= window.at + window.bytes.len() as u64
        };
        if !has(&self.window) {
            if self.window.file != file && self.other.file != self.window.file {
                // A directory may have thousands of files, and a process not as many descriptors.
                self.disk.close(&self.window.file);
            }
            // Where the caller looks for records byte by byte, the next record may begin a byte later.
            let bytes = self.read(file, from, len.saturating_mul(2).max(WINDOW_BYTES));
            self.window = Window { file: file.to_owned(), at: from, bytes };
        }
        let at = usize::try_from(from - self.window.at).expect("a window fits the memory");
        let rest = &self.window.bytes[at.min(self.window.bytes.len())..];
        &rest[..rest.len().min(usize::try_from(len).unwrap_or(usize::MAX))]
    }
}

/// Whether the disk, or the file system on it, lost the bytes.
fn is_damage(error: &io::Error) -> bool {
    let Some(code) = error.raw_os_error() else {
        // A disk that is no file system.
        return error.kind() == io::ErrorKind::Other;
    };
    let mut damages = vec![Errno::IO, Errno::BADMSG];
    // The file system does not check out, the medium has a hole, and the device behind a network failed.
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
