//! S9: bytes written to the disk in the life of a task.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use tickwheel_engine::DueKey;

use super::drain::drain;
use super::feed::fill;
use super::record::{Keys, Records, wall};
use super::subject::Keeper;
use super::written::Written;
use crate::sample::Sample;

/// Every so many records one is measured; they differ by the length of a number.
const EVERY: u64 = 997;
/// The ways of counting, as [`Written::each_since`] gives them.
const COUNTED: [&str; 3] = ["handed", "charged", "device"];

/// Puts all far ahead, lets time go past them, ends each as done, and closes.
pub(crate) fn sample<K: Keeper>(data: &Path, n: u64) -> anyhow::Result<Sample> {
    let records = Records::new(Keys::Own)?;
    let before = Written::now(data)?;
    let mut keeper = K::open(data, wall())?;
    fill(&mut keeper, &records, 0..n)?;
    keeper.rest()?;
    let put = Written::now(data)?;
    let mut after = DueKey::START;
    let drained = drain(&mut keeper, &mut after, Duration::MAX)?;
    ensure!(drained.count == n, "{} tasks of {n} came out", drained.count);
    keeper.rest()?;
    keeper.close()?;
    let all = Written::now(data)?;
    let record = mean_record_bytes(&records, n)?;
    let mut sample = Sample { measured: n, ..Sample::default() };
    sample.figure("record_bytes", record);
    let (put, life) = (put.each_since(before, n), all.each_since(before, n));
    for ((counted, put), life) in COUNTED.iter().zip(put).zip(life) {
        let Some((put, life)) = put.zip(life) else { continue };
        sample.figure(&format!("{counted}_put_bytes"), put);
        sample.figure(&format!("{counted}_bytes"), life);
        sample.figure(&format!("{counted}_bytes/record"), life / record);
    }
    sample.check("drained", drained.count);
    Ok(sample)
}

fn mean_record_bytes(records: &Records, n: u64) -> anyhow::Result<f64> {
    let (mut bytes, mut count) = (0, 0);
    for number in (0..n).step_by(EVERY as usize) {
        bytes += records.get(number, wall())?.bytes(number + 1);
        count += 1;
    }
    Ok(bytes as f64 / f64::from(count))
}
