//! Who but its owner may change a directory, and links in the place of files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The folders of a data directory to which others than its owner may write, the directory itself first. They can remove and replace
/// files there. A folder that cannot be looked at is left out.
///
/// A volume may be mounted so that everybody may write to it, so this is for a warning and no refusal.
#[must_use]
pub fn writable_by_others(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    let directory = directory.as_ref();
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| {
        let is_shard = entry.file_name().to_string_lossy().starts_with("shard-");
        is_shard && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    folders.sort();
    folders.insert(0, directory.to_owned());
    folders.retain(|path| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o022 != 0));
    folders
}

/// What to say of such folders, with the command that keeps others out; `None` if there are none.
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

/// As a shell takes it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

/// Opens a file as the options say, but not through a link in its place.
pub(crate) fn open_no_link(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).expect("the flags of open are an int");
    let opened = options.custom_flags(flags).open(path);
    opened.map_err(
        |error| if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) { link() } else { error },
    )
}

/// Whether something is in the place of a folder that is no link.
///
/// # Errors
/// It is a link, or cannot be looked at.
pub(crate) fn check_folder(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.file_type().is_symlink() { Err(link()) } else { Ok(()) }
}

pub(crate) fn link() -> io::Error {
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
