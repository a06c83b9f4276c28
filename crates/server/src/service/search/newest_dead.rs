//! The newest dead tasks of a queue.
//!
//! The store has dead tasks in the order in which they are removed, and reads them from the oldest on. Where millions are dead, the
//! newest are found by trying: a guess of the instant behind which they begin, and better ones from the number of tasks
//! behind it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tickwheel_api::{DeadWindow, Problem};
use tickwheel_queue::{Death, List, Queue, QueueName, State, TaskCursor, TaskFilter, TaskPage, Timestamp};

use crate::base::aside::Steps;
use crate::service::search::dead_group::Corpse;
use crate::translate;

/// The number of tasks that are wanted.
const WINDOW: usize = 10_000;
/// The largest number of tasks that one guess reads. With more behind it, the guess was bad.
const GUESS_MAX: usize = 4 * WINDOW;
const PAGE: usize = 1_000;
/// The largest number of pages that one search reads.
const PAGES_MAX: usize = 500;
/// The largest time for one search.
const TIME_MAX: Duration = Duration::from_secs(2);
/// The first guess: the newest tasks died within this time.
const FIRST_GUESS_MS: i64 = 1_000;
/// The largest factor by which a guess is made longer.
const GROWTH_MAX: i64 = 16;
/// No task that is removed after a time is removed as late as this (ms from now). Behind it are those that workers
/// buried, which are never removed.
const REMOVED_MS_MAX: i64 = 100 * 366 * 86_400_000;

/// Dead tasks, and which of all they are.
pub(crate) struct Newest {
    pub(crate) corpses: Vec<Corpse>,
    pub(crate) window: DeadWindow,
}

/// Finds the newest 10,000 dead tasks, or fewer.
///
/// # Errors
/// The queue cannot be read.
pub(crate) async fn newest(queue: &Queue, name: &QueueName) -> Result<Newest, Problem> {
    let removed = Search::new(queue, name, None).newest().await?;
    let buried = Search::new(queue, name, Some(Death::Buried)).newest().await?;
    Ok(both(removed, buried))
}

/// The newest of two lists. A task is left out if the other list may have had a newer one that was not found.
fn both(one: Newest, other: Newest) -> Newest {
    let begins = |of: &Newest| match of.window {
        DeadWindow::All => None,
        DeadWindow::Newest | DeadWindow::Part => of.corpses.iter().map(|corpse| corpse.at).min(),
    };
    let from = begins(&one).max(begins(&other));
    let window = match (one.window, other.window) {
        (DeadWindow::Part, _) | (_, DeadWindow::Part) => DeadWindow::Part,
        (DeadWindow::All, DeadWindow::All) => DeadWindow::All,
        _ => DeadWindow::Newest,
    };
    let mut corpses = [one.corpses, other.corpses].concat();
    corpses.sort_by_key(|corpse| std::cmp::Reverse(corpse.at));
    let all = corpses.len();
    corpses.retain(|corpse| window == DeadWindow::Part || from.is_none_or(|from| from <= corpse.at));
    corpses.truncate(WINDOW);
    let window = if window == DeadWindow::All && corpses.len() < all { DeadWindow::Newest } else { window };
    Newest { corpses, window }
}

/// A search in one of the two orders: tasks that are removed after a time, and buried ones.
struct Search<'a> {
    queue: &'a Queue,
    list: List,
    pages: usize,
    until: Instant,
    steps: Steps,
    /// The time between a death and the instant by which the store orders it (ms), as it was seen last.
    kept_ms: i64,
}

/// The tasks behind a cursor.
struct Behind {
    /// The last of them, at most as many as are wanted.
    last: VecDeque<Corpse>,
    count: usize,
    /// Whether there are no more.
    is_end: bool,
    /// The cursor up to which they were read.
    reached: Option<TaskCursor>,
}

impl<'a> Search<'a> {
    fn new(queue: &'a Queue, name: &QueueName, why: Option<Death>) -> Self {
        let filter = TaskFilter { why, ..TaskFilter::in_state(State::Dead) };
        let list = List { filter, max: PAGE, ..List::new(name) };
        let until = Instant::now() + TIME_MAX;
        Self { queue, list, pages: 0, until, steps: Steps::default(), kept_ms: 0 }
    }

    async fn newest(mut self) -> Result<Newest, Problem> {
        let Behind { last: first, count, is_end, reached } = self.read(None, WINDOW + 1).await?;
        if is_end {
            let window = if count > WINDOW { DeadWindow::Newest } else { DeadWindow::All };
            return Ok(Newest { corpses: first.into(), window });
        }
        let begins_ms = reached.map_or(0, |reached| reached.due_at.as_ms());
        let end_ms = self.queue.now().as_ms().saturating_add(self.kept_ms);
        let shard = self.queue.shard_of(&self.list.queue).number();
        let mut best: VecDeque<Corpse> = VecDeque::new();
        let mut factor = GROWTH_MAX;
        // The longest guess that was good, and the shortest that had too many tasks.
        let (mut good_ms, mut bad_ms) = (0, None);
        let mut guess_ms = FIRST_GUESS_MS;
        while self.has_time() {
            let from_ms = end_ms.saturating_sub(guess_ms);
            if from_ms <= begins_ms {
                // The guess begins before the cursor up to which the oldest tasks were read: the rest is read from there.
                let rest = self.read(reached, GUESS_MAX).await?;
                if rest.is_end {
                    best = first.into_iter().chain(rest.last).collect();
                    best.drain(..best.len().saturating_sub(WINDOW));
                    return Ok(Newest { corpses: best.into(), window: DeadWindow::Newest });
                }
                bad_ms = Some(end_ms.saturating_sub(begins_ms));
            } else {
                let from = Timestamp::from_ms(from_ms).unwrap_or_default();
                let read = self.read(Some(TaskCursor::before(shard, from)), GUESS_MAX).await?;
                match read.is_end {
                    true if read.count >= WINDOW => {
                        return Ok(Newest { corpses: read.last.into(), window: DeadWindow::Newest });
                    }
                    true => {
                        // A longer guess that finds no more is in a gap, which may be long.
                        let is_gap = read.last.len() == best.len();
                        factor = if is_gap { GROWTH_MAX } else { growth(read.last.len()) };
                        (good_ms, best) = (guess_ms, read.last);
                    }
                    false => bad_ms = Some(guess_ms),
                }
            }
            guess_ms = match bad_ms {
                None => good_ms.saturating_mul(factor),
                Some(bad_ms) if bad_ms - good_ms > 1 => good_ms + (bad_ms - good_ms) / 2,
                Some(_) => break,
            };
        }
        match best.is_empty() {
            true => Ok(Newest { corpses: first.into(), window: DeadWindow::Part }),
            false => Ok(Newest { corpses: best.into(), window: DeadWindow::Newest }),
        }
    }

    fn has_time(&self) -> bool {
        self.pages < PAGES_MAX && Instant::now() < self.until
    }

    /// Reads tasks behind a cursor, to the end or until there are this many.
    async fn read(&mut self, after: Option<TaskCursor>, max: usize) -> Result<Behind, Problem> {
        let mut behind = Behind { last: VecDeque::new(), count: 0, is_end: false, reached: after };
        let end_ms = match self.list.filter.why {
            None => self.queue.now().as_ms().saturating_add(REMOVED_MS_MAX),
            Some(_) => i64::MAX,
        };
        // A search that has no more time has read a part of the list, and says so.
        while behind.count < max && (self.has_time() || behind.count == 0 && self.pages == 0) {
            let list = List { after: behind.reached, ..self.list.clone() };
            self.pages += 1;
            let page = self.queue.list(list).await.map_err(|error| translate::unavailable(&error))?;
            let TaskPage { tasks, cursors, next, .. } = page;
            for (task, cursor) in tasks.iter().zip(cursors) {
                self.steps.did(0).await;
                let Some(corpse) = Corpse::of(task).filter(|_| cursor.due_at.as_ms() < end_ms) else {
                    continue;
                };
                self.kept_ms = cursor.due_at.as_ms() - corpse.at.as_ms();
                behind.count += 1;
                behind.last.push_back(corpse);
                if behind.last.len() > WINDOW {
                    behind.last.pop_front();
                }
            }
            match next.filter(|next| next.due_at.as_ms() < end_ms) {
                Some(next) => behind.reached = Some(next),
                None => {
                    behind.is_end = true;
                    break;
                }
            }
        }
        Ok(behind)
    }
}

/// The factor by which a guess with this number of tasks is made longer.
fn growth(found: usize) -> i64 {
    let factor = WINDOW.checked_div(found).and_then(|factor| i64::try_from(factor).ok());
    factor.unwrap_or(GROWTH_MAX).clamp(2, GROWTH_MAX)
}
