//! Pages of lists over several shards.

use tickwheel_engine::{
    Call, LeaseCursor, LeasePage, ListAllTasks, ListLeases, QueuePage, ScheduleView, TaskCursor, TaskPage,
    Unavailable,
};

use crate::thread::mailbox::Caller;
use crate::thread::pending::Pending;

/// A list whose cursors name a shard: the shards follow one another in the order of their numbers.
pub(crate) trait InTurn: Call<Answer: Send, Error = Unavailable> + Clone + Send + 'static {
    /// Returns the number of the shard in which the page begins.
    fn begins_in(&self) -> u32;

    /// Whether the page has no entry and is the last one of its shard.
    fn is_empty_end(page: &Self::Answer) -> bool;

    /// If this is the last page of its shard: says that the list goes on with shard `next`.
    fn continue_in(page: &mut Self::Answer, next: u32);
}

/// Returns a page of the list. A page has entries of one shard, so it may have fewer entries than were asked for, although more follow.
pub(crate) fn in_turn<L: InTurn>(shards: Vec<Caller>, list: L) -> Pending<L::Answer, L::Error> {
    let begins_in = list.begins_in();
    let first = shards.get(begins_in as usize).map(|caller| caller.call(list.clone()));
    Pending::many(async move {
        let Some(mut page) = first else {
            // A cursor beyond the last shard. The last shard says that the list has ended.
            let last = shards.last().expect("a queue has a shard");
            return last.call(list).await;
        };
        let mut number = begins_in;
        loop {
            let mut found = page.await?;
            number += 1;
            let Some(caller) = shards.get(number as usize) else { return Ok(found) };
            if !L::is_empty_end(&found) {
                L::continue_in(&mut found, number);
                return Ok(found);
            }
            page = caller.call(list.clone());
        }
    })
}

impl InTurn for ListAllTasks {
    fn begins_in(&self) -> u32 {
        self.after.map_or(0, |after| after.shard)
    }

    fn is_empty_end(page: &TaskPage) -> bool {
        page.tasks.is_empty() && page.next.is_none()
    }

    fn continue_in(page: &mut TaskPage, next: u32) {
        page.next.get_or_insert(TaskCursor { shard: next, ..TaskCursor::START });
    }
}

impl InTurn for ListLeases {
    fn begins_in(&self) -> u32 {
        self.after.map_or(0, |after| after.shard)
    }

    fn is_empty_end(page: &LeasePage) -> bool {
        page.leases.is_empty() && page.next.is_none()
    }

    fn continue_in(page: &mut LeasePage, next: u32) {
        page.next.get_or_insert(LeaseCursor::start_of(next));
    }
}

/// Merges two pages of a list of queues of at most `max` entries.
pub(crate) fn queue_page(max: usize, one: QueuePage, other: QueuePage) -> QueuePage {
    // Behind this name a shard may have queues that are not in its page.
    let known_to = [one.next, other.next].into_iter().flatten().min();
    let mut queues = one.queues;
    queues.extend(other.queues);
    queues.sort_unstable_by(|one, other| one.queue.cmp(&other.queue));
    if let Some(known_to) = &known_to {
        queues.retain(|counts| counts.queue <= *known_to);
    }
    if queues.len() <= max {
        return QueuePage { queues, next: known_to };
    }
    queues.truncate(max);
    let next = queues.last().map(|counts| counts.queue.clone());
    QueuePage { queues, next }
}

/// Merges two pages of a list of schedules of at most `max` entries.
pub(crate) fn schedule_page(
    max: usize,
    mut one: Vec<ScheduleView>,
    other: Vec<ScheduleView>,
) -> Vec<ScheduleView> {
    one.extend(other);
    one.sort_by(|one, other| (&one.queue, &one.name).cmp(&(&other.queue, &other.name)));
    one.truncate(max);
    one
}
