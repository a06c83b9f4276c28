//! [`Written`]: bytes that went to a disk, counted in three ways, for none of them is the whole truth.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;

/// Counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Handed to write calls by this process: exact, and without what the file system adds or rounds up.
    pub(crate) handed: u64,
    /// What the system charges this process with, less what a truncation took back: pages that became dirty. Where it keeps files in
    /// larger pieces than a page it charges the whole piece for each byte that is overwritten.
    pub(crate) charged: u64,
    /// Written by the disk itself, for everybody on this machine. Nothing if the directory is on no disk of its own.
    pub(crate) device: Option<u64>,
}

impl Written {
    /// By now. What waits to be written to the file system of `dir` is written first.
    pub(crate) fn now(dir: &Path) -> anyhow::Result<Self> {
        let opened = File::open(dir).with_context(|| format!("open {}", dir.display()))?;
        rustix::fs::syncfs(&opened).with_context(|| format!("sync the file system of {}", dir.display()))?;
        let io = std::fs::read_to_string("/proc/self/io").context("read /proc/self/io")?;
        let (handed, charged) = of_process(&io).context("find the written bytes in /proc/self/io")?;
        let device = opened.metadata()?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let stat = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat"));
        Ok(Self { handed, charged, device: stat.ok().and_then(|stat| of_device(&stat)) })
    }

    /// What came since `earlier`, for each of `count`: handed, charged, and by the device.
    pub(crate) fn each_since(self, earlier: Self, count: u64) -> [Option<f64>; 3] {
        let each = |now: u64, then: u64| now.saturating_sub(then) as f64 / count as f64;
        let device = self.device.zip(earlier.device).map(|(now, then)| each(now, then));
        [Some(each(self.handed, earlier.handed)), Some(each(self.charged, earlier.charged)), device]
    }
}

fn of_process(io: &str) -> Option<(u64, u64)> {
    let number = |name: &str| -> Option<u64> {
        io.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    Some((number("wchar:")?, number("write_bytes:")?.saturating_sub(number("cancelled_write_bytes:")?)))
}

/// The seventh number: sectors of 512 bytes, whatever the disk's own are.
fn of_device(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(6)?.parse::<u64>().ok()?.checked_mul(512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_found() {
        let io = "rchar: 1\nwchar: 9\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\n";
        assert_eq!(of_process(io), Some((9, 4_096)));
        assert_eq!(of_process("wchar: 9\n"), None);
        assert_eq!(of_device(" 1 2 3 4 5 6 7 8 9"), Some(3_584));
        assert_eq!(of_device("1 2 3"), None);
    }

    #[test]
    fn what_is_written_counts() {
        let dir = tempfile::tempdir().expect("a place for files");
        let before = Written::now(dir.path()).expect("the system tells");
        std::fs::write(dir.path().join("a"), vec![1; 40_000]).expect("a file");
        let after = Written::now(dir.path()).expect("the system tells");
        let [handed, charged, device] = after.each_since(before, 10);
        assert!(handed.is_some_and(|bytes| bytes >= 4_000.0), "{handed:?}");
        assert!(charged.is_some() && device.is_none_or(|bytes| bytes >= 4_000.0), "{charged:?} {device:?}");
    }
}
