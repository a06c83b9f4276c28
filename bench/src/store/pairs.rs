//! S3: tasks that are cancelled before their time.

use std::ops::Range;
use std::time::Instant;

use anyhow::Context;

use super::batches::{RAW_BYTES, figures};
use super::clients::{pairs_of, pairs_sample};
use super::feed::{BATCH, fed};
use super::raw::{self, Rate};
use super::record::{Records, wall};
use super::scene::Scene;
use super::subject::{End, Keeper};
use crate::sample::Sample;

/// Puts a batch, finds it by key, cancels it, for the span; and the same by clients that each have one task.
pub(crate) fn sample<K: Keeper>(scene: &mut Scene<'_, K>) -> anyhow::Result<Sample> {
    let Scene { keeper, records, next, span, dir, .. } = scene;
    let mut rate = Rate::default();
    let beside = raw::beside(dir, RAW_BYTES, *span, |span| {
        // As many as there is time for.
        rate += fed::<K, _>(records, *next..u64::MAX, |batches| {
            let (begun, first) = (Instant::now(), *next);
            for batch in batches {
                keeper.commit(wall(), batch)?;
                cancel(keeper, records, *next..*next + BATCH)?;
                *next += BATCH;
                if begun.elapsed() >= span {
                    break;
                }
            }
            Ok(Rate { count: *next - first, seconds: begun.elapsed().as_secs_f64() })
        })?;
        Ok(())
    })?;
    let mut sample = Sample { measured: rate.count, ..Sample::default() };
    figures(&mut sample, "pairs_s", rate, &beside);
    pairs_sample(&mut sample, pairs_of(scene)?);
    Ok(sample)
}

fn cancel<K: Keeper>(keeper: &mut K, records: &Records, numbers: Range<u64>) -> anyhow::Result<()> {
    let keys = numbers.map(|n| records.key(n)).collect::<Result<Vec<_>, _>>()?;
    let ends = keeper.get(&keys)?.into_iter().map(|found| {
        let pending = found.context("a task that was just put is not found")?;
        Ok(keeper.end(pending, End::Cancelled, wall()))
    });
    let ends = ends.collect::<anyhow::Result<Vec<_>>>()?;
    keeper.commit(wall(), ends)
}
