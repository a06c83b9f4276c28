//! S5: live tasks, found by their keys.

use std::time::Instant;

use anyhow::ensure;

use super::scene::Scene;
use super::subject::Keeper;
use crate::random::Random;
use crate::sample::Sample;

/// Keys asked for at once: as many as clients wait.
const TOGETHER: usize = 64;

/// Half of the span many at a time, half of it one by one. The keys are random ones of those that were there from the begin.
pub(crate) fn sample<K: Keeper>(scene: &mut Scene<'_, K>) -> anyhow::Result<Sample> {
    let mut random = Random::new(5);
    let together = look_up(scene, &mut random, TOGETHER)?;
    let alone = look_up(scene, &mut random, 1)?;
    let mut sample = Sample::default();
    for (name, (count, seconds)) in [("lookups_s", together), ("single_lookups_s", alone)] {
        sample.figure(name, count as f64 / seconds);
        sample.measured += count;
    }
    Ok(sample)
}

fn look_up<K: Keeper>(
    scene: &mut Scene<'_, K>,
    random: &mut Random,
    together: usize,
) -> anyhow::Result<(u64, f64)> {
    let Scene { keeper, records, n, span, .. } = scene;
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < *span / 2 {
        let numbers: Vec<u64> = (0..together).map(|_| random.below(*n)).collect();
        let keys = numbers.iter().map(|&number| records.key(number)).collect::<Result<Vec<_>, _>>()?;
        for (found, number) in keeper.get(&keys)?.iter().zip(&numbers) {
            let is_it = found.as_ref().is_some_and(|pending| pending.number == *number);
            ensure!(is_it, "number {number} was asked for, and {found:?} found");
        }
        count += together as u64;
    }
    Ok((count, begun.elapsed().as_secs_f64()))
}
