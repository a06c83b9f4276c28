//! S6: what is due next is as near after many deletes as before.

use std::time::Instant;

use anyhow::ensure;
use tickwheel_engine::DueKey;
use tickwheel_queue::Timestamp;

use super::feed::BATCH;
use super::scene::Scene;
use super::subject::{End, Keeper};
use crate::report::median;
use crate::sample::Sample;

const DELETES: u64 = 500_000;
/// Tasks of one scan.
const WINDOW: u64 = 10_000;
const SCANS: u32 = 5;

/// Scans the first tasks, cancels half a million of them, at most half of all, and scans again what is first then.
pub(crate) fn sample<K: Keeper>(scene: &mut Scene<'_, K>) -> anyhow::Result<Sample> {
    let window = WINDOW.min(scene.n / 4);
    let before = scan_ms(&mut scene.keeper, window)?;
    let deletes = DELETES.min(scene.n / 2);
    delete(scene, deletes)?;
    let after = scan_ms(&mut scene.keeper, window)?;
    let mut sample = Sample { measured: deletes, ..Sample::default() };
    for (name, scans) in [("before_ms", &before), ("after_ms", &after)] {
        sample.figure(name, scans.median);
    }
    sample.figure("first_after_ms", after.first);
    sample.figure("after_ms/before", after.median / before.median);
    Ok(sample)
}

struct Scans {
    median: f64,
    first: f64,
}

fn scan_ms<K: Keeper>(keeper: &mut K, window: u64) -> anyhow::Result<Scans> {
    let mut times = Vec::new();
    for _ in 0..SCANS {
        let (begun, mut after, mut left) = (Instant::now(), DueKey::START, window);
        while left > 0 {
            let page = keeper.page(after, Timestamp::MAX, BATCH.min(left) as usize)?;
            let last = page.last().map(|pending| pending.place);
            ensure!(last > Some(after), "{left} tasks of {window} are missing after {after:?}");
            after = last.unwrap_or(after);
            left -= page.len() as u64;
        }
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let first = times[0];
    times.sort_by(f64::total_cmp);
    Ok(Scans { median: median(&times), first })
}

fn delete<K: Keeper>(scene: &mut Scene<'_, K>, count: u64) -> anyhow::Result<()> {
    let (mut after, mut left) = (DueKey::START, count);
    while left > 0 {
        let wall = scene.wall();
        let page = scene.keeper.page(after, Timestamp::MAX, BATCH.min(left) as usize)?;
        let last = page.last().map(|pending| pending.place);
        ensure!(last > Some(after), "{left} tasks of {count} are missing after {after:?}");
        after = last.unwrap_or(after);
        left -= page.len() as u64;
        let ends = page.into_iter().map(|pending| scene.keeper.end(pending, End::Cancelled, wall)).collect();
        scene.keeper.commit(wall, ends)?;
    }
    Ok(())
}
