//! [`Manifest`]: a file in which a backup describes itself.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tickwheel_engine::Timestamp;
use tickwheel_store::Durability;
use tickwheel_store::doctor::{BACKUP_MANIFEST, Examination};

use super::report::{BackupError, BackupReport, failed};

/// The version of the manifest.
const FORMAT: u32 = 1;
/// The most bytes that a manifest may have. It has some 110 bytes for each file, so 100,000 files fit.
const BYTES_MAX: u64 = 16 << 20;
/// The number of bytes of a file that are read at once.
const PIECE_BYTES: usize = 1 << 20;

/// The manifest of a backup: a file of JSON beside the copied files. The manifest is written when all of these files are durable and
/// checked.
///
/// A directory that was opened is no longer a backup, so an opening removes the manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the manifest's format.
    tickwheel_backup: u32,
    /// The version of the program that made the backup.
    version: String,
    /// The backup has everything that was acknowledged before this instant (RFC 3339).
    as_of: String,
    /// The identity of the data directory, see [`identity`](super::identity).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    /// The acknowledgement level of the running queue (which failures an acknowledged call survived): `fsync`, `os` or `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ack: Option<String>,
    /// The instant at which the backup began. Both this and `ended_at`, the instant at which it was whole, are by the system's clock.
    begun_at: String,
    ended_at: String,
    tasks: u64,
    dead: u64,
    queues: u64,
    ended: u64,
    checked_bytes: u64,
    files: Vec<ManifestFile>,
    /// The CRC-32C of the manifest with an empty text in this member, in hex.
    crc32c: String,
}

/// A file of a backup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct ManifestFile {
    /// The path of the file, relative to the backup.
    pub(super) file: String,
    pub(super) bytes: u64,
    /// The CRC-32C of all bytes of the file, in hex.
    crc32c: String,
}

impl ManifestFile {
    /// Reads the file `name` in the directory `at`, and describes it as a file of the folder `folder`, or of the backup itself if that is
    /// empty.
    pub(super) fn of(at: &Path, folder: &str, name: &str) -> Result<Self, BackupError> {
        let path = at.join(name);
        let unread = |source| failed("read", &path, source);
        let bytes = fs::metadata(&path).map_err(unread)?.len();
        let crc = sum_of(&path).map_err(unread)?;
        let file = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        Ok(Self::new(&file, bytes, crc))
    }

    pub(super) fn new(file: &str, bytes: u64, crc: u32) -> Self {
        Self { file: file.to_owned(), bytes, crc32c: hex(crc) }
    }
}

/// Returns the report of a copy of these files that was not checked yet: how many files and bytes it has.
pub(super) fn report_of(files: &[ManifestFile]) -> BackupReport {
    let bytes = files.iter().map(|file| file.bytes).sum();
    BackupReport { files: files.len() as u64, bytes, ..BackupReport::default() }
}

impl Manifest {
    /// The name of the manifest in the backup.
    pub const FILE: &str = BACKUP_MANIFEST;

    /// Makes the manifest of a copy that was checked. `ended_at` is the present time.
    pub(super) fn new(
        report: BackupReport,
        directory: Option<String>,
        files: Vec<ManifestFile>,
        begun_at: Timestamp,
        ended_at: Timestamp,
    ) -> Self {
        let as_of = report.as_of.unwrap_or(begun_at);
        let mut manifest = Self {
            tickwheel_backup: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            as_of: as_of.to_utc(),
            directory,
            ack: report.ack.map(|ack| name_of(ack).to_owned()),
            begun_at: begun_at.to_utc(),
            ended_at: ended_at.to_utc(),
            tasks: report.tasks.unwrap_or_default(),
            dead: report.dead.unwrap_or_default(),
            queues: report.queues.unwrap_or_default(),
            ended: report.ended.unwrap_or_default(),
            checked_bytes: report.checked_bytes,
            files,
            crc32c: String::new(),
        };
        manifest.crc32c = manifest.sum();
        manifest
    }

    /// Reads the manifest of the backup at this path. `None`: the backup has no manifest. `Queue::backup` writes none, and an opening
    /// removes it.
    ///
    /// # Errors
    /// [`BackupError::Differs`] if the manifest is damaged, too large, no plain file or of a later version, or the manifest cannot be read.
    pub fn read(backup: &Path) -> Result<Option<Self>, BackupError> {
        let path = backup.join(Self::FILE);
        let error = |source| failed("read", &path, source);
        match fs::symlink_metadata(&path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(other) => return Err(error(other)),
            Ok(found) if !found.is_file() => {
                return Err(differs(backup, "it is no plain file".to_owned()));
            }
            Ok(_) => {}
        }
        let mut text = Vec::new();
        let file = File::open(&path).map_err(error)?;
        file.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(error)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(differs(backup, format!("the file has more than {BYTES_MAX} bytes")));
        }
        Self::parse(&text).map(Some).map_err(|what| differs(backup, what))
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            tickwheel_backup: u32,
        }
        let damaged = |_| "the file is damaged".to_owned();
        let Version { tickwheel_backup: found } = serde_json::from_slice(text).map_err(damaged)?;
        if found != FORMAT {
            return Err(format!("it has version {found}, and this program reads version {FORMAT}"));
        }
        let manifest: Self = serde_json::from_slice(text).map_err(damaged)?;
        if manifest.crc32c != manifest.sum() {
            return Err("the file is damaged".to_owned());
        }
        Ok(manifest)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("plain members");
        text.push(b'\n');
        text
    }

    fn sum(&self) -> String {
        let empty = Self { crc32c: String::new(), ..self.clone() };
        hex(crc32c::crc32c(&empty.to_bytes()))
    }

    /// Returns an instant: the backup has everything that was acknowledged before it, with the exception that [`ack`](Self::ack) names.
    #[must_use]
    pub fn as_of(&self) -> Option<Timestamp> {
        instant(&self.as_of)
    }

    /// Returns the identity of the data directory that was copied, see [`identity`](super::identity). `None`: the backup
    /// does not say.
    #[must_use]
    pub fn directory(&self) -> Option<&str> {
        self.directory.as_deref()
    }

    /// Returns which failures an acknowledged call survived in the queue that was copied while it ran. With [`Durability::Memory`] some
    /// calls that were acknowledged in the last moments before [`as_of`](Self::as_of) may be missing. `None`: no queue ran, or the backup
    /// does not say.
    #[must_use]
    pub fn ack(&self) -> Option<Durability> {
        let all = [Durability::Fsync, Durability::Os, Durability::Memory];
        all.into_iter().find(|ack| self.ack.as_deref() == Some(name_of(*ack)))
    }

    /// Returns the instant at which the backup began, by the clock of its system.
    #[must_use]
    pub fn begun_at(&self) -> Option<Timestamp> {
        instant(&self.begun_at)
    }

    /// Returns the instant at which the backup was whole, by the clock of its system.
    #[must_use]
    pub fn ended_at(&self) -> Option<Timestamp> {
        instant(&self.ended_at)
    }

    /// Returns the figures of the copy: how many files and bytes were copied, and what the check counted in them.
    #[must_use]
    pub fn report(&self) -> BackupReport {
        let BackupReport { files, bytes, .. } = report_of(&self.files);
        BackupReport {
            as_of: self.as_of(),
            ack: self.ack(),
            tasks: Some(self.tasks),
            dead: Some(self.dead),
            queues: Some(self.queues),
            ended: Some(self.ended),
            checked_bytes: self.checked_bytes,
            files,
            bytes,
        }
    }

    /// Returns the list of the files, with the manifest itself, as files of the folder `folder`. `at`: the folder of this manifest.
    pub(super) fn files_below(&self, folder: &str, at: &Path) -> Result<Vec<ManifestFile>, BackupError> {
        let below =
            |file: &ManifestFile| ManifestFile { file: format!("{folder}/{}", file.file), ..file.clone() };
        let mut files: Vec<ManifestFile> = self.files.iter().map(below).collect();
        files.push(ManifestFile::of(at, folder, Self::FILE)?);
        Ok(files)
    }

    /// Compares the manifest of a backup of several shards with the manifests of its shards: it lists the file `shards` as it is, and
    /// exactly the files that they list. `below`: their lists, as files of this backup.
    ///
    /// # Errors
    /// [`BackupError::Differs`] with the first difference.
    pub(super) fn check_root(&self, backup: &Path, mut below: Vec<ManifestFile>) -> Result<(), BackupError> {
        let by_name = |one: &ManifestFile, other: &ManifestFile| one.file.cmp(&other.file);
        below.sort_by(by_name);
        let mut listed = self.files.clone();
        listed.sort_by(by_name);
        let other = below.iter().find(|file| listed.binary_search_by(|one| by_name(one, file)).is_err());
        if let Some(file) = other {
            return Err(differs(backup, format!("it does not list {}", file.file.escape_debug())));
        }
        let other = listed.iter().zip(&below).find(|(one, other)| one != other);
        if let Some((one, _)) = other.or_else(|| listed.get(below.len()).map(|more| (more, more))) {
            let name = one.file.escape_debug();
            return Err(differs(backup, format!("it lists `{name}` otherwise than it is")));
        }
        Ok(())
    }

    /// Compares the backup with the manifest, by what an examination found in the backup. With `bytes`, the checksum of each file is
    /// compared too.
    ///
    /// # Errors
    /// [`BackupError::Differs`] with the first difference, or a file cannot be read.
    pub fn check(&self, backup: &Path, found: &Examination, bytes: bool) -> Result<(), BackupError> {
        self.check_counts(backup, found)?;
        // The names are checked before the files. Otherwise a name of the list that is none of the directory's own files would be used as a
        // path.
        self.check_names(backup, found)?;
        for file in &self.files {
            let path = backup.join(&file.file);
            let len = match fs::symlink_metadata(&path) {
                Ok(found) if found.is_file() => found.len(),
                Ok(_) => return Err(differs(backup, format!("{} is no plain file", file.file))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(differs(backup, format!("{} is missing", file.file)));
                }
                Err(source) => return Err(failed("look at", &path, source)),
            };
            if len != file.bytes {
                let what = format!("{} has {len} bytes, and had {}", file.file, file.bytes);
                return Err(differs(backup, what));
            }
            if bytes {
                let sum = hex(sum_of(&path).map_err(|source| failed("read", &path, source))?);
                if sum != file.crc32c {
                    let what = format!(
                        "{} has {len} bytes with the checksum {sum}, and had {} with {}",
                        file.file, file.bytes, file.crc32c
                    );
                    return Err(differs(backup, what));
                }
            }
        }
        Ok(())
    }

    /// Checks that each file that an opening needs is listed, that no file is listed twice, and that the list has only files that the
    /// examination found in the directory.
    fn check_names(&self, backup: &Path, found: &Examination) -> Result<(), BackupError> {
        let mut listed = BTreeSet::new();
        let spare = found.logs.iter().map(|log| log.file.as_str());
        let known = found.needed.iter().map(|needed| needed.file.as_str()).chain(spare);
        let known: BTreeSet<&str> = known.chain(found.not_needed.iter().map(String::as_str)).collect();
        for file in &self.files {
            // Another person may have chosen the name. It will be printed, so control characters are escaped.
            let name = file.file.escape_debug();
            if !known.contains(file.file.as_str()) {
                return Err(differs(backup, format!("it lists `{name}`, which is no file of this backup")));
            }
            if !listed.insert(file.file.as_str()) {
                return Err(differs(backup, format!("it lists `{name}` twice")));
            }
        }
        match found.needed.iter().find(|needed| !listed.contains(needed.file.as_str())) {
            Some(needed) => {
                Err(differs(backup, format!("it does not list {}, which a start needs", needed.file)))
            }
            None => Ok(()),
        }
    }

    /// Compares what an examination counted with what the manifest says.
    pub(super) fn check_counts(&self, path: &Path, found: &Examination) -> Result<(), BackupError> {
        let report = BackupReport::default().checked(found);
        let counts = [
            ("live tasks", report.tasks, self.tasks),
            ("dead tasks", report.dead, self.dead),
            ("queues with tasks", report.queues, self.queues),
            ("remembered ends", report.ended, self.ended),
        ];
        for (name, there, said) in counts {
            if let Some(there) = there
                && there != said
            {
                return Err(differs(path, format!("there are {there} {name}, and there were {said}")));
            }
        }
        Ok(())
    }
}

/// Returns the word of the manifest for this durability.
fn name_of(ack: Durability) -> &'static str {
    match ack {
        Durability::Fsync => "fsync",
        Durability::Os => "os",
        Durability::Memory => "memory",
    }
}

/// Formats a CRC-32C as the manifest has it.
fn hex(crc: u32) -> String {
    format!("{crc:08x}")
}

/// Reads a file and returns its CRC-32C.
fn sum_of(path: &Path) -> io::Result<u32> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut crc = 0;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(crc),
            Ok(count) => crc = crc32c::crc32c_append(crc, &piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn instant(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Timestamp::from_ms(at.as_millisecond())
}

fn differs(path: &Path, what: String) -> BackupError {
    BackupError::Differs { path: path.to_owned(), what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwheel_store::doctor::Needed;

    fn manifest() -> Manifest {
        let at = |ms| Timestamp::from_ms(ms).expect("after 1970");
        let report = BackupReport {
            tasks: Some(7),
            as_of: Some(at(1_700_000_000_123)),
            ack: Some(Durability::Memory),
            ..BackupReport::default()
        };
        let files = vec![ManifestFile::new("meta", 64, 0xab)];
        Manifest::new(report, Some("00ab".to_owned()), files, at(1_700_000_000_000), at(1_700_000_005_000))
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let manifest = manifest();
        assert_eq!(Manifest::parse(&manifest.to_bytes()), Ok(manifest.clone()));
        assert_eq!(manifest.as_of().map(Timestamp::as_ms), Some(1_700_000_000_123));
        assert_eq!((manifest.report().files, manifest.report().bytes), (1, 64));
        assert_eq!((manifest.directory(), manifest.report().ack), (Some("00ab"), Some(Durability::Memory)));
    }

    #[test]
    fn names_that_are_no_files_of_the_backup_are_refused_before_they_are_looked_at() {
        let needed = |file: &str| Needed { file: file.to_owned(), bytes: 64, content: None };
        let mut found = Examination::default();
        found.needed = vec![needed("meta")];
        let with = |files: &[&str]| {
            let files = files.iter().map(|file| ManifestFile::new(file, 64, 0xab)).collect();
            let manifest = Manifest { files, ..manifest() };
            manifest.check_names(Path::new("b"), &found).map_err(|error| error.to_string())
        };
        assert_eq!(with(&["meta"]), Ok(()));
        let cases: [(&[&str], &str); 7] = [
            (&["meta", "../../etc/passwd"], "lists `../../etc/passwd`, which is no file"),
            (&["meta", "/proc/kcore"], "lists `/proc/kcore`"),
            (&["meta", "shard-0000/../meta"], "lists `shard-0000/../meta`"),
            (&["meta", "./meta"], "lists `./meta`"),
            (&["meta", "a\n\u{1b}[31m"], "lists `a\\n\\u{1b}[31m`"),
            (&["meta", "meta"], "lists `meta` twice"),
            (&[], "does not list meta"),
        ];
        for (files, what) in cases {
            let refused = with(files).expect_err(what);
            assert!(refused.contains(what), "{what} is not in {refused}");
        }
    }

    #[test]
    fn a_manifest_without_an_end_is_not_read_to_its_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = File::create(dir.path().join(Manifest::FILE)).expect("made");
        file.set_len(1 << 40).expect("a sparse file");
        let refused = Manifest::read(dir.path()).expect_err("too large").to_string();
        assert!(refused.contains("more than 16777216 bytes"), "{refused}");
    }

    #[test]
    fn each_changed_byte_of_it_is_seen() {
        let text = manifest().to_bytes();
        for at in 0..text.len() {
            let mut harmed = text.clone();
            harmed[at] ^= 1;
            // White space is no part of the manifest's content.
            if text[at].is_ascii_whitespace() {
                continue;
            }
            assert!(Manifest::parse(&harmed).is_err(), "byte {at} of {}", String::from_utf8_lossy(&text));
        }
        let later = String::from_utf8(text)
            .expect("text")
            .replace("\"tickwheel_backup\": 1", "\"tickwheel_backup\": 9");
        let refused = Manifest::parse(later.as_bytes()).expect_err("of a later version");
        assert!(refused.contains("version 9"), "{refused}");
    }
}
