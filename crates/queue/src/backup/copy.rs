//! Copies files into a new directory, which gets its name when it is whole.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use tickwheel_store::open_no_link;

use super::hand::Hand;
use super::manifest::{Manifest, ManifestFile};
use super::report::BackupError;

/// What the name of a copy ends in until it is whole.
pub(super) const UNFINISHED: &str = ".unfinished";

/// The beginning of a file that belongs to a copy.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// From the data directory on. It comes from a list of ours, never from a user.
    pub(super) name: String,
    /// `None`: all of it.
    pub(super) bytes: Option<u64>,
    /// The copy gets zeroes behind them until it is so long.
    pub(super) len: u64,
    /// The copy has these bytes instead.
    pub(super) content: Option<Vec<u8>>,
}

/// A copy on its way. If it is dropped before it has its name, what there is of it is removed.
#[derive(Debug)]
pub(super) struct Copy {
    target: PathBuf,
    /// Where it is until then.
    made_as: PathBuf,
    is_named: bool,
}

impl Copy {
    /// Makes the directory that is to become `target`, beside it.
    pub(super) fn begin(source: &Path, target: &Path) -> Result<Self, BackupError> {
        match fs::read_dir(target) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(BackupError::NotEmpty { path: target.to_owned() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed("look into", target, source)),
        }
        let Some(name) = target.file_name() else {
            return Err(BackupError::NoName { path: target.to_owned() });
        };
        let beside = folder_of(target);
        let real = |path: &Path| fs::canonicalize(path).map_err(|source| failed("find", path, source));
        if real(beside)?.starts_with(real(source)?) {
            return Err(BackupError::Inside { path: target.to_owned() });
        }
        let mut made_as = OsString::from(name);
        made_as.push(UNFINISHED);
        let made_as = beside.join(made_as);
        match make_dir(&made_as) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(BackupError::Unfinished { path: made_as })
            }
            made => {
                made.map_err(|source| failed("make", &made_as, source))?;
                Ok(Self { target: target.to_owned(), made_as, is_named: false })
            }
        }
    }

    /// Where it is now.
    pub(super) fn path(&self) -> &Path {
        &self.made_as
    }

    /// Copies these files. All of them are durable when it returns. Returns what was copied.
    pub(super) fn take(
        &self,
        source: &Path,
        parts: &[Part],
        hand: &mut Hand,
    ) -> Result<Vec<ManifestFile>, BackupError> {
        let bytes = parts.iter().map(|part| part.expected(source)).sum();
        hand.watch().begins(parts.len() as u64, bytes);
        hand.look_after(source, &self.made_as, bytes)?;
        let mut copied = Vec::new();
        let mut folders: Vec<PathBuf> = Vec::new();
        for part in parts {
            let to = self.made_as.join(&part.name);
            let folder = folder_of(&to).to_owned();
            if folder != self.made_as && !folders.contains(&folder) {
                make_dir(&folder).map_err(|source| failed("make", &folder, source))?;
                folders.push(folder);
            }
            let (bytes, crc) = match &part.content {
                Some(content) => write_file(&to, content, hand)?,
                None => copy_file(&source.join(&part.name), &to, part, hand)?,
            };
            copied.push(ManifestFile::new(&part.name, bytes, crc));
        }
        folders.push(self.made_as.clone());
        folders.iter().try_for_each(|folder| sync_dir(folder))?;
        Ok(copied)
    }

    /// Writes down what the copy is. It is durable when this returns.
    pub(super) fn describe(&self, manifest: &Manifest) -> Result<(), BackupError> {
        let to = self.made_as.join(Manifest::FILE);
        write_file(&to, &manifest.to_bytes(), &mut Hand::quick())?;
        sync_dir(&self.made_as)
    }

    /// Gives it its name, durably.
    pub(super) fn finish(mut self) -> Result<(), BackupError> {
        // An empty directory at the target gives way.
        fs::rename(&self.made_as, &self.target).map_err(|source| failed("rename", &self.made_as, source))?;
        self.is_named = true;
        sync_dir(folder_of(&self.target))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.is_named {
            // What cannot be removed has a name that says what it is.
            let _left = fs::remove_dir_all(&self.made_as);
        }
    }
}

impl Part {
    /// How many bytes the copy of it has, about: the file may be gone, which is found later.
    fn expected(&self, source: &Path) -> u64 {
        let whole = || fs::metadata(source.join(&self.name)).map_or(0, |found| found.len());
        let content = self.content.as_ref().map(|content| content.len() as u64);
        content.or(self.bytes).unwrap_or_else(whole).max(self.len)
    }
}

/// Returns how many bytes it has, and their checksum.
fn write_file(to: &Path, content: &[u8], hand: &mut Hand) -> Result<(u64, u32), BackupError> {
    let write = |source| failed("write", to, source);
    let mut target = new_file(to).map_err(write)?;
    target.write_all(content).map_err(write)?;
    target.sync_all().map_err(|source| failed("sync", to, source))?;
    hand.watch().copied(content.len() as u64)?;
    Ok((content.len() as u64, crc32c::crc32c(content)))
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Returns how many bytes it has, and their checksum.
fn copy_file(from: &Path, to: &Path, part: &Part, hand: &mut Hand) -> Result<(u64, u32), BackupError> {
    let read = |source| failed("read", from, source);
    let write = |source| failed("write", to, source);
    // The examined file was no link, and another user may have put one in its place since then.
    let source = open_no_link(OpenOptions::new().read(true), from).map_err(read)?;
    let wanted = match part.bytes {
        Some(bytes) => bytes,
        None => source.metadata().map_err(read)?.len(),
    };
    let whole = wanted.max(part.len);
    let mut target = new_file(to).map_err(write)?;
    let mut piece = vec![0; hand.piece_bytes().min(usize::try_from(whole).unwrap_or(usize::MAX))];
    let (mut done, mut crc) = (0, 0);
    while done < whole {
        let begun = Instant::now();
        let end = if done < wanted { wanted } else { whole };
        let left = usize::try_from(end - done).map_or(piece.len(), |left| left.min(piece.len()));
        let count = if done < wanted {
            match source.read_at(&mut piece[..left], done) {
                Ok(0) => return Err(BackupError::Short { path: from.to_owned(), found: done, wanted }),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(read(source)),
            }
        } else {
            piece[..left].fill(0);
            left
        };
        target.write_all(&piece[..count]).map_err(write)?;
        crc = crc32c::crc32c_append(crc, &piece[..count]);
        done += count as u64;
        hand.wrote((to, &target), done, count as u64, begun)?;
    }
    target.sync_all().map_err(|source| failed("sync", to, source))?;
    Ok((done, crc))
}

fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn sync_dir(path: &Path) -> Result<(), BackupError> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(|source| failed("sync", path, source))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn failed(op: &'static str, path: &Path, source: io::Error) -> BackupError {
    BackupError::Io { op, path: path.to_owned(), source }
}
