//! Whether the server takes work, and why not.

use std::time::Duration;

use tickwheel_api::ReadyBody;
use tickwheel_queue::{ListQueues, Queue, ShardId};
use tokio::time::{Instant, timeout_at};

use crate::service::app::App;
use crate::translate;

/// The longest wait for the queue's answer to a cheap question.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// The state of the server, with all reasons. A shard is asked, because an answer from memory would look good even if its
/// thread was stuck or dead.
pub(crate) async fn ready(app: &App) -> ReadyBody {
    let App { queue, admission, background, .. } = app;
    let silent = silent(queue).await;
    let stopping = background.stopping().is_given().then(|| "the server is stopping".to_owned());
    let (fatal, down): (Vec<_>, Vec<_>) =
        background.supervisor().down().into_iter().partition(|down| down.is_fatal);
    let closed = fatal.into_iter().next().map(|down| down.why);
    let down = down.into_iter().map(|down| down.why).collect();
    let trouble = stopping.or_else(|| waiting(queue)).or(silent).or(closed).or_else(|| unready(queue));
    translate::ready(queue.health(), admission.drain().is_on(), trouble, down)
}

/// Says what the shards wait for: another server has them, or the database does not answer. `None`: no shard waits.
fn waiting(queue: &Queue) -> Option<String> {
    let shards = queue.health_of_shards();
    let count = shards.len();
    let mut waiting: Vec<(ShardId, String)> = Vec::new();
    for (shard, health) in shards {
        waiting.extend(health.waits_for.filter(|_| !health.ready).map(|why| (shard, why.to_string())));
    }
    // A server that has no shard has one reason for all of them.
    if let Some((_, first)) = waiting.first()
        && waiting.len() == count
        && waiting.iter().all(|(_, why)| why == first)
    {
        return Some(first.clone());
    }
    first_of(waiting.into_iter().map(|(shard, why)| format!("{shard}: {why}")).collect())
}

/// Says which shards do not answer, and why; `None` if all of them do.
async fn silent(queue: &Queue) -> Option<String> {
    // One queue is enough to see whether a shard answers.
    let question = ListQueues { max: 1, ..ListQueues::default() };
    let until = Instant::now() + ANSWER_TIME_MAX;
    let mut silent = Vec::new();
    for (shard, asked) in queue.ask_shards(&question) {
        let why = match timeout_at(until, asked).await {
            Ok(Ok(_)) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the queue did not answer within {ANSWER_TIME_MAX:?}"),
        };
        silent.push(if shard.count() == 1 { why } else { format!("{shard}: {why}") });
    }
    first_of(silent)
}

/// Says which of several shards are not open; `None` if all of them are.
fn unready(queue: &Queue) -> Option<String> {
    let shards = queue.health_of_shards().into_iter();
    let unready = shards.filter(|(shard, health)| shard.count() > 1 && !health.ready);
    first_of(unready.map(|(shard, _)| format!("{shard}: the queue is not open")).collect())
}

/// The number of shards that one answer names.
const NAMED_MAX: usize = 3;

/// Joins the reasons of several shards: the first ones, and the number of the others.
fn first_of(mut reasons: Vec<String>) -> Option<String> {
    let more = reasons.len().saturating_sub(NAMED_MAX);
    reasons.truncate(NAMED_MAX);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use tickwheel_api::Readiness;

    use super::*;

    #[test]
    fn a_server_that_lacks_a_resource_is_degraded_and_ready() {
        let well = Queue::options().open_memory().expect("a queue").health();
        let of = |change: fn(&mut tickwheel_queue::Health), draining: bool, trouble: Option<&str>| {
            let mut health = well.clone();
            change(&mut health);
            let body = translate::ready(health, draining, trouble.map(str::to_owned), Vec::new());
            (body.ready, body.status, body.reasons.len(), body.why.is_some())
        };
        let (full, doubted): (fn(&mut _), fn(&mut _)) = (
            |health: &mut tickwheel_queue::Health| health.short_of_room = Some(7),
            |health: &mut tickwheel_queue::Health| health.clock_offset_ms = 3_600_000,
        );
        let failed =
            |health: &mut tickwheel_queue::Health| health.read_only = Some("sync a: it failed".into());
        assert_eq!(of(|_| {}, false, None), (true, Readiness::Ok, 0, false));
        assert_eq!(of(|_| {}, true, None), (true, Readiness::Draining, 0, false));
        assert_eq!(of(full, false, None), (true, Readiness::Degraded, 1, true));
        assert_eq!(of(doubted, true, None), (true, Readiness::Degraded, 1, true));
        assert_eq!(of(failed, false, Some("it is read-only")), (false, Readiness::ReadOnly, 2, true));
        assert_eq!(of(|health| health.ready = false, false, None), (false, Readiness::NotReady, 1, true));
        assert_eq!(of(full, false, Some("it is stopping")), (false, Readiness::NotReady, 2, true));
        let down = vec!["the background task `tokens` ended".to_owned()];
        let body = translate::ready(well, false, None, down.clone());
        assert_eq!((body.ready, body.status, body.reasons), (true, Readiness::Degraded, down));
    }

    #[tokio::test]
    async fn the_shards_that_do_not_answer_are_named() {
        let queue = Queue::options().shards(5).open_memory().expect("a queue");
        assert_eq!((silent(&queue).await, unready(&queue)), (None, None));
        queue.close();
        let told = silent(&queue).await.expect("it is closed");
        assert!(told.starts_with("shard 0 of 5: ") && told.ends_with("; and 2 more"), "{told}");
        let unready = unready(&queue).expect("it is closed");
        assert!(unready.starts_with("shard 0 of 5: the queue is not open; shard 1 of 5: "), "{unready}");
        let one = Queue::options().open_memory().expect("a queue");
        one.close();
        assert!(!silent(&one).await.expect("it is closed").contains("shard"));
    }
}
