//! A file that gets its final name when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tickwheel_api::ExportLine;

/// The step of the backward search for the last cursor line (bytes). A block of an export has at most some pages of 4 MiB.
const TAIL_BYTES: u64 = 1 << 20;

/// The file as `FILE.unfinished`, until it becomes `FILE`.
#[derive(Debug)]
pub(crate) struct Unfinished {
    file: BufWriter<File>,
    unfinished: PathBuf,
    path: PathBuf,
}

impl Unfinished {
    /// Makes a new file that only its owner can read.
    ///
    /// # Errors
    /// One of the two names is taken, or the system refuses.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let unfinished = beside(path);
        check_free(path)?;
        let file = options().create_new(true).open(&unfinished);
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => bail!(
                "{} is left from an interrupted export: continue it with --resume, or remove it",
                unfinished.display()
            ),
            file => file.with_context(|| format!("failed to create {}", unfinished.display()))?,
        };
        Ok(Self { file: BufWriter::with_capacity(1 << 20, file), unfinished, path: path.to_owned() })
    }

    /// Opens the file of an interrupted export and cuts it after its last complete cursor line. Also returns the cursor in that line.
    ///
    /// # Errors
    /// There is no such file, it has no whole cursor line, or the final name is taken.
    pub(crate) fn resume(path: &Path) -> Result<(Self, String)> {
        check_free(path)?;
        let unfinished = beside(path);
        let mut file = options()
            .open(&unfinished)
            .with_context(|| format!("failed to open {}, to go on with", unfinished.display()))?;
        let Some((length, cursor)) = last_cursor(&mut file).context("failed to find the last cursor line")?
        else {
            bail!(
                "{} has no whole cursor line, so the export cannot be continued; remove the file and begin anew",
                unfinished.display()
            );
        };
        file.set_len(length).with_context(|| format!("failed to cut {}", unfinished.display()))?;
        file.seek(SeekFrom::End(0))?;
        let file = BufWriter::with_capacity(1 << 20, file);
        Ok((Self { file, unfinished, path: path.to_owned() }, cursor))
    }

    /// The name of the file until it is whole.
    pub(crate) fn name(&self) -> &Path {
        &self.unfinished
    }

    /// Syncs the whole file and gives it its name.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn finish(mut self) -> Result<()> {
        let failed = || format!("failed to finish {}", self.path.display());
        self.file.flush().and_then(|()| self.file.get_ref().sync_all()).with_context(failed)?;
        check_free(&self.path)?;
        fs::rename(&self.unfinished, &self.path).with_context(failed)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        folder.with_context(failed)
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Removes the file of an export that wrote nothing, so that the next export begins at the start. True if there was such a file.
///
/// # Errors
/// The system refuses.
pub(crate) fn remove_empty(path: &Path) -> Result<bool> {
    let unfinished = beside(path);
    let is_empty = fs::metadata(&unfinished).is_ok_and(|found| found.len() == 0);
    if is_empty {
        fs::remove_file(&unfinished)
            .with_context(|| format!("failed to remove {}, which is empty", unfinished.display()))?;
    }
    Ok(is_empty)
}

/// Refuses to overwrite a file.
fn check_free(path: &Path) -> Result<()> {
    if path.exists() {
        bail!("{} exists already; remove it, or choose another name", path.display());
    }
    Ok(())
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    name.into()
}

/// The options of a file for its owner alone, because it holds payloads.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// The offset of the end of the last complete cursor line, and the cursor in it.
fn last_cursor(file: &mut File) -> io::Result<Option<(u64, String)>> {
    const WORD: &[u8] = b"{\"cursor\":";
    let length = file.seek(SeekFrom::End(0))?;
    let (mut from, mut tail) = (length, Vec::new());
    while from > 0 {
        let read = from.min(TAIL_BYTES);
        from -= read;
        file.seek(SeekFrom::Start(from))?;
        let mut piece = vec![0; usize::try_from(read).expect("1 MiB at most")];
        file.read_exact(&mut piece)?;
        // Two pieces may share a line. So the beginning of the later piece, up to its first line end, is appended to the earlier piece.
        piece.extend_from_slice(&tail);
        let mut end = piece.len();
        while let Some(at) = piece[..end].iter().rposition(|byte| *byte == b'\n') {
            let begins = piece[..at].iter().rposition(|byte| *byte == b'\n').map(|before| before + 1);
            let Some(begins) = begins.or((from == 0).then_some(0)) else { break };
            if piece[begins..at].starts_with(WORD)
                && let Ok(ExportLine::Cursor(cursor)) = ExportLine::parse(&piece[begins..at])
            {
                return Ok(Some((from + at as u64 + 1, cursor)));
            }
            end = begins;
        }
        piece.truncate(end);
        tail = piece;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &[u8]) -> Option<(u64, String)> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(text).expect("written");
        last_cursor(&mut file).expect("read")
    }

    #[test]
    fn the_last_whole_cursor_line_is_found_wherever_the_file_was_cut() {
        let text = b"{\"export\":{}}\n{\"cursor\":\"a\"}\n{\"task\":1}\n{\"cursor\":\"b\"}\n{\"task\":2}\n";
        let first = 14 + 15;
        let second = first + 11 + 15;
        for cut in 0..=text.len() {
            let expected = match cut {
                cut if cut < first => None,
                cut if cut < second => Some((first as u64, "a".to_owned())),
                _ => Some((second as u64, "b".to_owned())),
            };
            assert_eq!(of(&text[..cut]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_cursor_line_far_before_the_end_is_found() {
        let long = [&b"{\"task\":\""[..], &vec![b'x'; 3 << 20], b"\"}\n"].concat();
        let text = [&b"{\"export\":{}}\n{\"cursor\":\"a\"}\n"[..], &long, &long[..1_000]].concat();
        assert_eq!(of(&text), Some((29, "a".to_owned())));
        let many = b"{\"task\":1}\n".repeat(300_000);
        assert_eq!(of(&[&b"{\"cursor\":\"a\"}\n"[..], &many].concat()), Some((15, "a".to_owned())));
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("all.ndjson");
        let mut file = Unfinished::create(&path).expect("created");
        file.write_all(b"{\"cursor\":\"a\"}\n{\"ta").expect("written");
        file.flush().expect("written");
        drop(file);
        assert!(!path.exists());
        assert!(Unfinished::create(&path).expect_err("it is there").to_string().contains("--resume"));
        let (mut file, cursor) = Unfinished::resume(&path).expect("resumed");
        file.write_all(b"{\"end\":{}}\n").expect("written");
        file.finish().expect("finished");
        assert_eq!(cursor, "a");
        assert_eq!(fs::read(&path).expect("there"), b"{\"cursor\":\"a\"}\n{\"end\":{}}\n");
        assert!(Unfinished::create(&path).is_err(), "nothing is written over");
        fs::write(beside(&path), "{\"cursor\":\"b\"}\n").expect("written");
        let told = Unfinished::resume(&path).expect_err("nothing is written over").to_string();
        assert!(told.contains("exists already"), "{told}");
        assert!(!remove_empty(&path).expect("left alone") && beside(&path).exists(), "it is not empty");
        // Another file took the name during the export.
        fs::remove_file(&path).expect("removed");
        let (file, _) = Unfinished::resume(&path).expect("resumed");
        fs::write(&path, "another").expect("written");
        file.finish().expect_err("nothing is written over");
        assert_eq!(fs::read(&path).expect("there"), b"another");
    }
}
