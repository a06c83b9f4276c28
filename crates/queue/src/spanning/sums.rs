//! Answers of all shards that are added up, one after the other.

use std::sync::Arc;

use tickwheel_engine::{ForecastView, QueueName, Stats, TargetRecord, Unavailable, WheelView};

use super::pages::queue_page;
use crate::thread::pending::Pending;

/// Adds up the answers of the shards. The first error is the answer, if there is one.
pub(super) async fn sum<T, E: From<Unavailable>>(
    asked: Vec<Pending<T, E>>,
    mut add: impl FnMut(T, T) -> T,
) -> Result<T, E> {
    let mut asked = asked.into_iter();
    let mut sum = asked.next().expect("a queue has a shard").await?;
    for pending in asked {
        sum = add(sum, pending.await?);
    }
    Ok(sum)
}

/// Adds two forecasts, which have the same buckets.
pub(crate) fn forecast(mut sum: ForecastView, other: ForecastView) -> ForecastView {
    for (count, more) in sum.counts.iter_mut().zip(other.counts) {
        *count += more;
    }
    ForecastView { as_of: sum.as_of.min(other.as_of), ..sum }
}

type Targets = Vec<(QueueName, Arc<TargetRecord>)>;

/// Merges two lists of targets in the order of the names of the queues.
pub(crate) fn targets(mut sum: Targets, other: Targets) -> Targets {
    sum.extend(other);
    sum.sort_by(|(one, _), (other, _)| one.cmp(other));
    sum
}

/// Merges two wheels. The hands are those of the first wheel: the hands of the other one differ by the time between two
/// turns.
pub(crate) fn wheel(mut sum: Box<WheelView>, other: Box<WheelView>) -> Box<WheelView> {
    sum.tasks += other.tasks;
    for (ring, more) in sum.rings.iter_mut().zip(other.rings) {
        for (word, more) in ring.occupied.iter_mut().zip(more.occupied) {
            *word |= more;
        }
    }
    sum
}

/// Adds the figures of two shards, and merges their pages of at most `max` queues.
pub(crate) fn stats(max: usize, mut sum: Box<Stats>, mut other: Box<Stats>) -> Box<Stats> {
    let pages = [&mut sum, &mut other].map(|stats| core::mem::take(&mut stats.page));
    sum.add(&other);
    let [one, more] = pages;
    sum.page = queue_page(max, one, more);
    if sum.page.next.is_some() {
        // The shards whose page was the last one say it again with the last page of all.
        sum.gone.clear();
    }
    sum
}
