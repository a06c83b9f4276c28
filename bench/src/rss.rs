//! Resident memory of a process.

use anyhow::Context;

/// Resident bytes of this one now.
pub(crate) fn resident_bytes() -> anyhow::Result<u64> {
    of_status(&std::fs::read_to_string("/proc/self/status").context("read /proc/self/status")?)
}

/// Those of the process that such a file tells of.
pub(crate) fn of_status(status: &str) -> anyhow::Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("find VmRSS in it")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().context("read VmRSS")?;
    Ok(kilobytes * 1_024)
}
