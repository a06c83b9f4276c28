//! S2: batches of 1000 puts, one after the other.

use std::time::Instant;

use super::feed::{BATCH, fed};
use super::raw::{self, Beside, Rate};
use super::record::wall;
use super::scene::Scene;
use super::subject::Keeper;
use crate::sample::Sample;

/// What a commit of a batch takes.
pub(crate) const RAW_BYTES: usize = 256 << 10;

/// Puts for the span, at most half as many as are pending.
pub(crate) fn sample<K: Keeper>(scene: &mut Scene<'_, K>) -> anyhow::Result<Sample> {
    let Scene { keeper, records, next, n, span, dir, .. } = scene;
    let end = *next + (*n / 2).next_multiple_of(BATCH);
    let mut rate = Rate::default();
    let beside = raw::beside(dir, RAW_BYTES, *span, |span| {
        rate += fed::<K, _>(records, *next..end, |batches| {
            let (begun, mut count) = (Instant::now(), 0);
            for batch in batches {
                count += batch.len() as u64;
                keeper.commit(wall(), batch)?;
                if begun.elapsed() >= span {
                    break;
                }
            }
            *next += count;
            Ok(Rate { count, seconds: begun.elapsed().as_secs_f64() })
        })?;
        Ok(())
    })?;
    let mut sample = Sample { measured: rate.count, ..Sample::default() };
    figures(&mut sample, "tasks_s", rate, &beside);
    sample.figure("fill_s", scene.filled);
    Ok(sample)
}

/// A rate of tasks in batches, beside the disk.
pub(crate) fn figures(sample: &mut Sample, name: &str, rate: Rate, beside: &Beside) {
    let (rate, raw) = (rate.per_second(), beside.times.per_second());
    sample.figure(name, rate);
    sample.figure("raw_s", raw);
    sample.figure("raw_swing", beside.swing);
    sample.figure(&format!("{name}/1000-raw"), rate / (BATCH as f64 * raw));
}
