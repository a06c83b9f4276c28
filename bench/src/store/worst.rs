//! S7: how long a single commit takes at worst, while the store does all that it does besides.

use std::time::{Duration, Instant};

use tickwheel_engine::DueKey;

use super::feed::{BATCH, batch};
use super::place;
use super::raw::{self, Times};
use super::record::AHEAD_MS;
use super::scene::Scene;
use super::subject::{End, Keeper};
use crate::sample::Sample;

/// What a commit of one put takes.
const RAW_BYTES: usize = 4 << 10;
/// So much longer than other measurements: what is rare has to happen.
const SPANS: u32 = 4;
/// Commits of one put in each turn.
const SINGLES: u64 = 16;
/// How far time goes in each turn. The tasks of two days are due in a thousand.
const STEP_MS: u64 = 180_000;
/// How often somebody looks which files there are.
const LOOK: Duration = Duration::from_millis(50);

/// Turns of a batch, some single commits, and the end of what is due by then: files fill up, are opened and go. Only the single
/// commits are measured.
pub(crate) fn sample<K: Keeper>(scene: &mut Scene<'_, K>) -> anyhow::Result<Sample> {
    let (dir, span) = (scene.dir, scene.span);
    let mut files = place::files(scene.data)?;
    let (known, mut singles, mut after) = (files.len(), Times::default(), DueKey::START);
    scene.moved = scene.wall().saturating_plus_ms(AHEAD_MS);
    let beside = raw::beside(dir, RAW_BYTES, span, |span| {
        let (begun, mut looked) = (Instant::now(), Instant::now());
        while begun.elapsed() < span * SPANS {
            turn(scene, &mut singles)?;
            after = end_due(scene, after)?;
            scene.moved = scene.moved.saturating_plus_ms(STEP_MS);
            if looked.elapsed() >= LOOK {
                files.append(&mut place::files(scene.data)?);
                looked = Instant::now();
            }
        }
        files.append(&mut place::files(scene.data)?);
        Ok(())
    })?;
    let raw = beside.times;
    let mut sample = Sample { measured: singles.len() as u64, ..Sample::default() };
    for (name, share) in [("p50_ms", 0.5), ("p999_ms", 0.999), ("worst_ms", 1.0)] {
        sample.figure(name, singles.quantile_ms(share));
        sample.figure(&format!("raw_{name}"), raw.quantile_ms(share));
        sample.figure(&format!("{name}/raw"), singles.quantile_ms(share) / raw.quantile_ms(share));
    }
    sample.figure("ms_beyond/raw", singles.quantile_ms(1.0) - raw.quantile_ms(1.0));
    sample.figure("files_made", (files.len() - known) as f64);
    Ok(sample)
}

/// A batch, and some commits of one put.
fn turn<K: Keeper>(scene: &mut Scene<'_, K>, singles: &mut Times) -> anyhow::Result<()> {
    let Scene { keeper, records, next, moved, .. } = scene;
    keeper.commit(*moved, batch::<K>(records, *next..*next + BATCH, *moved)?)?;
    *next += BATCH;
    for _ in 0..SINGLES {
        let put = batch::<K>(records, *next..*next + 1, *moved)?;
        *next += 1;
        let begun = Instant::now();
        keeper.commit(*moved, put)?;
        singles.add(begun.elapsed());
    }
    Ok(())
}

/// Ends what is due. Nothing that comes later is due earlier.
fn end_due<K: Keeper>(scene: &mut Scene<'_, K>, mut after: DueKey) -> anyhow::Result<DueKey> {
    loop {
        let page = scene.keeper.page(after, scene.moved, BATCH as usize)?;
        let Some(last) = page.last() else { return Ok(after) };
        after = last.place;
        let ends =
            page.into_iter().map(|pending| scene.keeper.end(pending, End::Done, scene.moved)).collect();
        scene.keeper.commit(scene.moved, ends)?;
    }
}
