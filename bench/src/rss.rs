//! Resident memory of this process.

use anyhow::Context;

/// Resident bytes now.
pub(crate) fn resident_bytes() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("read /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("find VmRSS in it")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().context("read VmRSS")?;
    Ok(kilobytes * 1_024)
}
