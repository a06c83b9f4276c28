//! S8: resident memory while tasks wait.

use std::path::Path;

use super::feed::fill;
use super::record::{Keys, Records, wall};
use super::subject::Keeper;
use crate::rss;
use crate::sample::Sample;

/// What this process has more than before it opened the store, once nothing happens any more. What the sizes have in common is
/// told apart by their slope.
pub(crate) fn sample<K: Keeper>(data: &Path, n: u64, keys: Keys) -> anyhow::Result<Sample> {
    let records = Records::new(keys)?;
    let before = rss::resident_bytes()?;
    let mut keeper = K::open(data, wall())?;
    fill(&mut keeper, &records, 0..n)?;
    keeper.rest()?;
    let bytes = rss::resident_bytes()?.saturating_sub(before);
    keeper.close()?;
    let mut sample = Sample { measured: n, ..Sample::default() };
    sample.figure(RESIDENT, bytes as f64 / 1e6);
    sample.check("pending", n);
    Ok(sample)
}

/// The name of that figure.
pub(crate) const RESIDENT: &str = "resident_mb";
