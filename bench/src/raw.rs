//! The limit: how often the disk overwrites and syncs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

/// A file filled with zeroes, like a log file before its first frame.
const FILE_BYTES: usize = 16 << 20;

/// Overwrites `block_bytes` of a zero-filled file and syncs, again and again for `span`. Returns times a second.
pub(crate) fn overwrite_and_sync(dir: &Path, block_bytes: usize, span: Duration) -> anyhow::Result<f64> {
    let path = dir.join("raw");
    let file = File::create(&path).with_context(|| format!("create {}", path.display()))?;
    let zeroes = vec![0; 1 << 20];
    for at in (0..FILE_BYTES).step_by(zeroes.len()) {
        file.write_all_at(&zeroes, at as u64)?;
    }
    file.sync_all()?;
    let block = vec![7; block_bytes];
    let begun = Instant::now();
    let mut times = 0_u64;
    while begun.elapsed() < span {
        let at = times as usize % (FILE_BYTES / block_bytes) * block_bytes;
        file.write_all_at(&block, at as u64)?;
        file.sync_data()?;
        times += 1;
    }
    let rate = times as f64 / begun.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(rate)
}
