//! The limit: how often the disk overwrites and syncs, how long it takes at worst, and how fast it streams.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;

/// A file filled with zeroes, like a log file before its first frame.
const FILE_BYTES: usize = 16 << 20;
/// Written in one go, and then synced.
const STREAM_BYTES: usize = 64 << 20;
const MEGABYTE: usize = 1 << 20;
/// A disk of a shared machine swings within seconds: it is measured as often as that beside one piece of work.
const STRETCHES: u32 = 5;

/// Times of single writes, each with its sync.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// One more.
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many in a second, one after the other.
    pub(crate) fn per_second(&self) -> f64 {
        self.0.len() as f64 / self.0.iter().sum::<Duration>().as_secs_f64()
    }

    /// Milliseconds below which that share of them is: 1 for the longest.
    pub(crate) fn quantile_ms(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        let at = (share * last as f64).ceil() as usize;
        sorted.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}

/// A zero-filled file that is overwritten block by block, and goes with this.
#[derive(Debug)]
struct Probe {
    file: File,
    path: PathBuf,
    block: Vec<u8>,
    times: Times,
    /// Of each stretch, how many in a second.
    rates: Vec<f64>,
}

impl Probe {
    fn new(dir: &Path, block_bytes: usize) -> anyhow::Result<Self> {
        let path = dir.join("raw");
        let file = File::create(&path).with_context(|| format!("create {}", path.display()))?;
        let zeroes = vec![0; MEGABYTE];
        for at in (0..FILE_BYTES).step_by(zeroes.len()) {
            file.write_all_at(&zeroes, at as u64)?;
        }
        file.sync_all()?;
        Ok(Self { file, path, block: vec![7; block_bytes], times: Times::default(), rates: Vec::new() })
    }

    /// Overwrites and syncs, again and again for `span`, and once at least.
    fn run(&mut self, span: Duration) -> anyhow::Result<()> {
        let (begun, first) = (Instant::now(), self.times.len());
        while self.times.len() == first || begun.elapsed() < span {
            let at = self.times.len() % (FILE_BYTES / self.block.len()) * self.block.len();
            let one = Instant::now();
            self.file.write_all_at(&self.block, at as u64)?;
            self.file.sync_data()?;
            self.times.add(one.elapsed());
        }
        self.rates.push((self.times.len() - first) as f64 / begun.elapsed().as_secs_f64());
        Ok(())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // Whoever made the directory removes all of it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Overwrites `block_bytes` of a zero-filled file and syncs, again and again for `span`.
pub(crate) fn overwrite_and_sync(dir: &Path, block_bytes: usize, span: Duration) -> anyhow::Result<Times> {
    let mut probe = Probe::new(dir, block_bytes)?;
    probe.run(span)?;
    Ok(std::mem::take(&mut probe.times))
}

/// What the disk did beside some work.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) times: Times,
    /// The fastest stretch by the slowest. A ratio to a disk that changes its mind says little.
    pub(crate) swing: f64,
}

/// Calls `work` for a share of `span` again and again, and measures the disk before, between and after, as long in all.
pub(crate) fn beside(
    dir: &Path,
    block_bytes: usize,
    span: Duration,
    mut work: impl FnMut(Duration) -> anyhow::Result<()>,
) -> anyhow::Result<Beside> {
    let mut probe = Probe::new(dir, block_bytes)?;
    probe.run(span / (STRETCHES + 1))?;
    for _ in 0..STRETCHES {
        work(span / STRETCHES)?;
        probe.run(span / (STRETCHES + 1))?;
    }
    let fastest = probe.rates.iter().copied().fold(f64::MIN, f64::max);
    let slowest = probe.rates.iter().copied().fold(f64::MAX, f64::min);
    Ok(Beside { times: std::mem::take(&mut probe.times), swing: fastest / slowest })
}

/// Work that was done in several stretches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rate {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

impl Rate {
    pub(crate) fn per_second(self) -> f64 {
        self.count as f64 / self.seconds
    }
}

impl std::ops::AddAssign for Rate {
    fn add_assign(&mut self, more: Self) {
        self.count += more.count;
        self.seconds += more.seconds;
    }
}

/// Megabytes in a second, of a new file that is written and then synced.
pub(crate) fn stream(dir: &Path) -> anyhow::Result<f64> {
    let path = dir.join("stream");
    let file = File::create(&path).with_context(|| format!("create {}", path.display()))?;
    let block = vec![7; MEGABYTE];
    let begun = Instant::now();
    for at in (0..STREAM_BYTES).step_by(MEGABYTE) {
        file.write_all_at(&block, at as u64)?;
    }
    file.sync_data()?;
    let rate = (STREAM_BYTES / MEGABYTE) as f64 / begun.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_times() {
        let times = Times((1..=1_000).rev().map(Duration::from_millis).collect());
        assert_eq!(
            [0.0, 0.5, 0.999, 1.0].map(|share| times.quantile_ms(share)),
            [1.0, 501.0, 1_000.0, 1_000.0]
        );
        assert_eq!(Times::default().quantile_ms(1.0), 0.0);
        assert_eq!(Times(vec![Duration::from_millis(4); 7]).per_second(), 250.0);
    }

    #[test]
    fn the_disk_is_measured_between_stretches_of_work() {
        let dir = tempfile::tempdir().expect("a place for files");
        let (mut spans, mut rate) = (Duration::ZERO, Rate::default());
        let beside = beside(dir.path(), 4_096, Duration::from_millis(10), |span| {
            assert!(dir.path().join("raw").exists());
            spans += span;
            rate += Rate { count: 3, seconds: 0.5 };
            Ok(())
        });
        let beside = beside.expect("it works");
        assert_eq!((spans, rate.count, rate.per_second()), (Duration::from_millis(10), 15, 6.0));
        assert!(beside.times.len() >= 6 && beside.swing >= 1.0, "{beside:?}");
        assert!(!dir.path().join("raw").exists());
    }
}
