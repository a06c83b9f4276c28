//! Two checks of a data directory: whether users other than its owner may write to it, and whether a file or folder in it is a symbolic
//! link.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::layout::is_folder_name;

/// Returns the data directory, the directories of its shards and their folders, as far as users other than the owner may write to them. The directory comes first.
/// Such users can remove and replace files in these folders. A folder whose permissions cannot be read is left out.
///
/// Some volumes are mounted so that all users may write to them. So callers warn, and do not refuse.
#[must_use]
pub fn writable_by_others(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    let directory = directory.as_ref();
    let mut folders = vec![directory.to_owned()];
    let members = folders_in(directory, is_folder_name);
    for folder in std::iter::once(directory.to_owned()).chain(members.clone()) {
        folders.extend(folders_in(&folder, |name| name.starts_with("shard-")));
    }
    folders.extend(members);
    folders[1..].sort();
    folders.retain(|path| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o022 != 0));
    folders
}

/// Returns the folders in `directory` with names that are wanted, in the order of their names.
fn folders_in(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| {
        is_wanted(&entry.file_name().to_string_lossy()) && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// Returns a warning about the folders that [`writable_by_others`] returns, with the command that keeps other users out. Returns `None` if
/// there are no such folders.
#[must_use]
pub fn warning_of_others(directory: impl AsRef<Path>) -> Option<String> {
    let open = writable_by_others(directory);
    let quoted: Vec<String> = open.iter().map(|path| quoted(&path.display().to_string())).collect();
    let quoted = quoted.join(" ");
    let what = format!(
        "others than its owner may write to {quoted}, and can remove or replace the tasks there; `chmod go-w {quoted}` keeps them out"
    );
    (!open.is_empty()).then_some(what)
}

/// Quotes a path for a shell.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

/// Opens a file as the options say. Refuses a symbolic link in the place of the file.
///
/// # Errors
/// The file is a symbolic link, or the system refuses.
#[doc(hidden)]
pub fn open_no_link(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).expect("the flags of open are an int");
    let opened = options.custom_flags(flags).open(path);
    opened.map_err(
        |error| if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) { link() } else { error },
    )
}

/// Refuses a symbolic link in the place of a file or folder.
///
/// # Errors
/// The path is a symbolic link, or its metadata cannot be read.
pub(crate) fn check_no_link(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.file_type().is_symlink() { Err(link()) } else { Ok(()) }
}

fn link() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is a symbolic link, and a data directory has files and folders of its own only; \
         put what it points to in its place, or take it away if it is not yours",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_others_may_write_to_are_named_with_the_command() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("it's data");
        let shard = root.join("shard-0000");
        fs::create_dir_all(&shard).expect("made");
        let set =
            |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        for (of_root, of_shard, expected) in [
            (0o700, 0o700, vec![]),
            (0o755, 0o755, vec![]),
            (0o770, 0o700, vec![&root]),
            (0o702, 0o777, vec![&root, &shard]),
            (0o700, 0o720, vec![&shard]),
        ] {
            set(&root, of_root);
            set(&shard, of_shard);
            assert_eq!(writable_by_others(&root).iter().collect::<Vec<_>>(), expected);
            assert_eq!(warning_of_others(&root).is_some(), !expected.is_empty());
        }
        set(&root, 0o777);
        let said = warning_of_others(&root).expect("it is open");
        let command = said.split('`').nth(1).expect("a command");
        let done = std::process::Command::new("sh").args(["-c", command]).status().expect("a shell");
        assert!(done.success() && writable_by_others(&root).is_empty(), "{command}");
    }
}
