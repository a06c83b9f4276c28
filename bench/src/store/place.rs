//! Where the data lies: on which file system, how large.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// Type and mount point of the file system that a directory is on.
pub(crate) fn file_system(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let words = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let around = words.filter(|(mount, _)| dir.starts_with(mount));
    // Of two on one point the later one is seen.
    match around.max_by_key(|(mount, _)| mount.len()) {
        Some((mount, kind)) => format!("{kind} at {mount}"),
        None => "an unknown file system".to_owned(),
    }
}

/// Refuses what would fill the disk.
pub(crate) fn check_room(dir: &Path, wanted_bytes: u64) -> anyhow::Result<()> {
    let stat = rustix::fs::statvfs(dir).with_context(|| format!("ask for the space of {}", dir.display()))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let (free_mb, wanted_mb) = (free >> 20, wanted_bytes >> 20);
    ensure!(
        free >= wanted_bytes,
        "{} has {free_mb} MiB left and this takes up to {wanted_mb}; choose another --dir, or fewer --pending",
        dir.display()
    );
    Ok(())
}

/// Bytes that a directory takes on the disk.
pub(crate) fn disk_bytes(dir: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    visit(dir, &mut |_, blocks| bytes += blocks * 512)?;
    Ok(bytes)
}

/// The files in it, by their names.
pub(crate) fn files(dir: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    visit(dir, &mut |path, _| {
        files.insert(path);
    })?;
    Ok(files)
}

fn visit(dir: &Path, seen: &mut impl FnMut(PathBuf, u64)) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("list {}", dir.display()))? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => visit(&entry.path(), seen)?,
            Ok(metadata) => seen(entry.path(), metadata.blocks()),
            // It went away meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_directory_goes_with_all_that_is_in_it() {
        let parent = tempfile::tempdir().expect("a place for files");
        let scratch = Scratch::new(parent.path(), "a").expect("a directory");
        std::fs::create_dir(scratch.path().join("b")).expect("a directory");
        std::fs::write(scratch.path().join("b/c"), vec![1; 10_000]).expect("a file");
        assert_eq!(files(scratch.path()).expect("a list").len(), 1);
        assert!(disk_bytes(scratch.path()).expect("a size") >= 8_192);
        check_room(scratch.path(), 1).expect("a byte");
        assert!(check_room(scratch.path(), u64::MAX).expect_err("too much").to_string().contains("--dir"));
        assert!(file_system(scratch.path()).contains(" at /"));
        let again = Scratch::new(parent.path(), "a").expect("a directory");
        assert_eq!(disk_bytes(again.path()).expect("a size"), 0);
        drop(again);
        assert!(!parent.path().join("a").exists());
    }
}
