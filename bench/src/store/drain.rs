//! S4: tasks are taken in due order and ended, while time goes on.

use std::time::{Duration, Instant};

use anyhow::ensure;
use tickwheel_engine::DueKey;
use tickwheel_queue::Timestamp;

use super::batches::{RAW_BYTES, figures};
use super::feed::BATCH;
use super::raw::{self, Rate};
use super::record::HOUR_MS;
use super::scene::Scene;
use super::subject::{End, Keeper};
use crate::sample::Sample;

/// How far a scan goes beyond the next task. With a million pending it finds some thousands, so that most pages are full.
const WINDOW_MS: u64 = 6 * HOUR_MS;

/// Takes for the span, or until nothing is left, which a large store does not reach.
pub(crate) fn sample<K: Keeper>(scene: &mut Scene<'_, K>) -> anyhow::Result<Sample> {
    let Scene { keeper, span, dir, .. } = scene;
    let (mut rate, mut after) = (Rate::default(), DueKey::START);
    let beside = raw::beside(dir, RAW_BYTES, *span, |span| {
        rate += drain(keeper, &mut after, span)?;
        Ok(())
    })?;
    let mut sample = Sample { measured: rate.count, ..Sample::default() };
    figures(&mut sample, "tasks_s", rate, &beside);
    Ok(sample)
}

/// Scans six hours after six hours in pages, from `after` on, and ends each page in a batch when its last task is due. The next page
/// is read meanwhile.
pub(crate) fn drain<K: Keeper>(keeper: &mut K, after: &mut DueKey, span: Duration) -> anyhow::Result<Rate> {
    let (begun, mut count) = (Instant::now(), 0);
    let mut until = window(keeper, *after)?;
    while let Some(due_by) = until.filter(|_| begun.elapsed() < span) {
        let mut page = keeper.page(*after, due_by, BATCH as usize)?;
        while let Some(last) = page.last().map(|pending| pending.place) {
            for pending in &page {
                ensure!(pending.place > *after, "{:?} came after {after:?}", pending.place);
                *after = pending.place;
            }
            count += page.len() as u64;
            let ends = page.into_iter().map(|pending| keeper.end(pending, End::Done, last.due_at)).collect();
            if begun.elapsed() >= span {
                keeper.commit(last.due_at, ends)?;
                break;
            }
            page = keeper.commit_and_page(last.due_at, ends, (*after, due_by, BATCH as usize))?;
        }
        until = window(keeper, *after)?;
    }
    Ok(Rate { count, seconds: begun.elapsed().as_secs_f64() })
}

/// The end of the next window: it begins with the next task.
fn window<K: Keeper>(keeper: &mut K, after: DueKey) -> anyhow::Result<Option<Timestamp>> {
    let next = keeper.page(after, Timestamp::MAX, 1)?;
    Ok(next.first().map(|pending| pending.place.due_at.saturating_plus_ms(WINDOW_MS)))
}
