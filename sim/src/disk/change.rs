//! Changes that are not synced yet: writes to a file, changes of names.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Inode;
use crate::rng::Rng;

/// A change of a file.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Bytes { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

/// A change of a directory.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Dir(String),
    Link { name: String, inode: Inode },
    Unlink { name: String, inode: Inode },
    Rename { from: String, to: String, inode: Inode },
}

/// The content of the lost part of a torn write.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Lost {
    /// The bytes that were there before the write.
    Old,
    Zeroes,
    Garbage,
}

impl Write {
    pub(super) fn apply(&self, bytes_of_file: &mut Vec<u8>) {
        match self {
            Self::Bytes { offset, bytes } => {
                let end = offset + bytes.len();
                if bytes_of_file.len() < end {
                    bytes_of_file.resize(end, 0);
                }
                bytes_of_file[*offset..end].copy_from_slice(bytes);
            }
            Self::SetLen(len) => bytes_of_file.resize(*len, 0),
        }
    }

    /// Whether the write is a frame of the log.
    pub(super) fn is_frame(&self) -> bool {
        matches!(self, Self::Bytes { bytes, .. } if bytes.starts_with(b"TWfr"))
    }

    /// The bytes of the file that the write changes.
    pub(super) fn range(&self) -> Range<usize> {
        match self {
            Self::Bytes { offset, bytes } => *offset..offset + bytes.len(),
            Self::SetLen(len) => *len..usize::MAX,
        }
    }

    /// Applies the first `unit` bytes of the write; of a write that is not longer, the first half.
    pub(super) fn apply_beginning(&self, unit: usize, durable: &mut Vec<u8>) {
        match self {
            Self::Bytes { offset, bytes } => {
                let kept = if bytes.len() > unit { unit } else { bytes.len() / 2 };
                Self::Bytes { offset: *offset, bytes: bytes[..kept].to_vec() }.apply(durable);
            }
            Self::SetLen(_) => {}
        }
    }

    /// Applies a random part of the write, or all of it. Returns whether it was torn.
    pub(super) fn apply_torn(&self, durable: &mut Vec<u8>, rng: &mut Rng) -> bool {
        let Self::Bytes { offset, bytes } = self else {
            self.apply(durable);
            return false;
        };
        if bytes.is_empty() || rng.chance(50) {
            self.apply(durable);
            return false;
        }
        let unit = rng.pick(&[1, 512, 4_096]);
        let units = bytes.len().div_ceil(unit);
        let old_len = durable.len();
        let mode = rng.below(4);
        let lost = rng.pick(&[Lost::Old, Lost::Old, Lost::Zeroes, Lost::Garbage]);
        let kept = rng.index(units + 1);
        for at in 0..units {
            let keeps = match mode {
                0 => rng.chance(50),     // any of its sectors
                1 => at >= units - kept, // its end
                _ => at < kept,          // its beginning
            };
            let part = &bytes[at * unit..bytes.len().min((at + 1) * unit)];
            let stands = match lost {
                _ if keeps => part.to_vec(),
                Lost::Zeroes if rng.chance(20) => vec![0; part.len()],
                Lost::Garbage if rng.chance(20) => part.iter().map(|_| rng.next_u64() as u8).collect(),
                Lost::Old | Lost::Zeroes | Lost::Garbage => continue,
            };
            Self::Bytes { offset: offset + at * unit, bytes: stands }.apply(durable);
        }
        if rng.chance(20) && old_len < offset + bytes.len() && durable.len() < offset + bytes.len() {
            // The file has its new length, but the data was not written.
            durable.resize(offset + bytes.len(), 0);
        }
        true
    }
}

impl NameChange {
    /// Applies the change to `names` and `dirs`. They may differ from the names at the time of the change, because an
    /// earlier change was lost.
    pub(super) fn apply(self, names: &mut BTreeMap<String, Inode>, dirs: &mut Vec<String>) {
        match self {
            Self::Dir(name) => {
                if !dirs.contains(&name) {
                    dirs.push(name);
                }
            }
            Self::Link { name, inode } => {
                names.insert(name, inode);
            }
            Self::Unlink { name, inode } => {
                if names.get(&name) == Some(&inode) {
                    names.remove(&name);
                }
            }
            Self::Rename { from, to, inode } => {
                if names.get(&from) == Some(&inode) {
                    names.remove(&from);
                }
                names.insert(to, inode);
            }
        }
    }
}
