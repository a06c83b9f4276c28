//! The table of one shard.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::index::{Index, QueueIndex};
use crate::acquired;
use crate::history::{Histories, HistoryLimits};
use crate::rules::Rules;
use tickwheel_engine::{
    AcquiredCursor, AcquiredPage, DueHistogram, DueKey, Ended, EngineState, Filter, Found, Outcome, Page,
    Population, QueueName, Rule, RuleEffect, RuleName, Seq, Task, TaskEffect, Timestamp, Wanted,
};

/// A part of a due histogram ends after this many tasks, at the next task with another due time. To count them takes a millisecond or two.
const COUNTED_MAX: usize = 16_384;

/// The committed state of one shard: the live tasks, the ended tasks that are remembered, the rules, and the state of the engine. In this
/// table a task is live until it has ended, so a dead task is live too.
///
/// A store owns the table, and changes it only once a change is durable. Look-ups and scans only read. [`apply`](Table::apply) compares
/// records by their `seq` alone: an effect that is not newer than the record of its task in the table changes nothing. So effects may come
/// twice, and a log may be replayed onto a checkpoint that has newer records already.
///
/// The table does *not* decide whether a task is due, ready or leased. The engine decides that.
///
/// Invariants: each live task is once in each index that it belongs to. A task is live or ended, never both.
///
/// A change costs O(log n). A live task takes about 150 bytes in the indexes beside its record. The record is shared, not copied.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    live: BTreeMap<u64, Arc<Task>>,
    /// An upper bound of the bytes of the records of all live tasks.
    live_bytes: u64,
    index: Index,
    histories: Histories,
    state: EngineState,
    rules: Rules,
}

impl Table {
    /// Makes an empty table that remembers the last `history_per_queue` ended tasks of each queue. `secret` keeps clients from choosing
    /// keys whose hashes collide.
    #[must_use]
    pub fn new(secret: [u8; 16], history_per_queue: usize) -> Self {
        Self::with_history(secret, HistoryLimits::last(history_per_queue))
    }

    /// Makes an empty table with these limits for ended tasks.
    #[must_use]
    pub fn with_history(secret: [u8; 16], history: HistoryLimits) -> Self {
        Self {
            live: BTreeMap::new(),
            live_bytes: 0,
            index: Index::default(),
            histories: Histories::new(secret, history),
            state: EngineState::default(),
            rules: Rules::default(),
        }
    }

    /// Applies one effect. An effect that is not newer than the record of its task in the table changes nothing.
    pub fn apply(&mut self, effect: &TaskEffect) {
        let live = self.live.get(&effect.id()).map(|task| task.seq);
        let known = live.or_else(|| self.histories.seq_of(effect.id()));
        if known.is_some_and(|known| known >= effect.seq()) {
            return;
        }
        let old = match effect {
            TaskEffect::Stored { task, body_known: _ } => {
                self.live_bytes += record_bytes(task);
                let old = self.live.insert(task.id, Arc::clone(task));
                self.index.put(old.as_deref(), task);
                old
            }
            TaskEffect::Ended(ended) => {
                if ended.outcome != Outcome::Forgotten {
                    self.histories.add(ended);
                }
                let old = self.live.remove(&ended.id);
                if let Some(task) = &old {
                    self.index.remove(task);
                }
                old
            }
        };
        self.live_bytes -= old.as_deref().map_or(0, record_bytes);
    }

    /// Joins a state of the engine with the state in the table.
    pub fn join_state(&mut self, state: EngineState) {
        self.state.join(state);
    }

    /// Returns the state of the engine.
    #[must_use]
    pub fn state(&self) -> EngineState {
        self.state
    }

    /// Applies the change of a rule. The last change of a rule is the right one.
    pub fn apply_rule(&mut self, effect: RuleEffect) {
        self.rules.apply(effect, &mut self.histories);
    }

    /// Forgets the ended tasks that are too old at `now`.
    pub fn forget_until(&mut self, now: Timestamp) {
        self.histories.forget_until(now, usize::MAX);
    }

    /// Returns the rules, in the order of their names.
    #[must_use]
    pub fn rules(&self) -> Vec<(RuleName, Arc<Rule>)> {
        self.rules.by_name().iter().map(|(name, rule)| (name.clone(), Arc::clone(rule))).collect()
    }

    /// Returns how many tasks are live, dead tasks included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether no task is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many ended tasks are remembered.
    #[must_use]
    pub fn ended_len(&self) -> usize {
        self.histories.len()
    }

    /// Returns an upper bound of the bytes that the records of the live tasks take in frames.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Returns the live task with this id.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Arc<Task>> {
        self.live.get(&id)
    }

    /// Returns at most `max` of the facts that a new owner needs, behind `after`.
    pub(crate) fn acquired_page(&self, after: Option<&AcquiredCursor>, max: usize) -> AcquiredPage {
        let Index { queues, leased, .. } = &self.index;
        let (page, ids) = acquired::page(after, max, queues, QueueIndex::population, &self.rules, leased);
        let leased = ids.into_iter().filter_map(|id| self.live.get(&id)).cloned().collect();
        AcquiredPage { leased, ..page }
    }

    /// Returns at most `max` of the facts that a new owner needs, behind `after`: these queues, the rules of this table, and separately the
    /// ids of the leased tasks of the page. For a store that keeps its live tasks in another place.
    #[must_use]
    pub fn facts(
        &self,
        after: Option<&AcquiredCursor>,
        max: usize,
        queues: &BTreeMap<QueueName, Population>,
        leased: &BTreeSet<u64>,
    ) -> (AcquiredPage, Vec<u64>) {
        acquired::page(after, max, queues, |population| *population, &self.rules, leased)
    }

    /// Looks up one task: among the live tasks first, then among the ended tasks that are remembered.
    #[must_use]
    pub fn find(&self, wanted: &Wanted) -> Found {
        let (live, ended) = match wanted {
            Wanted::Id(id) => (self.live.get(id), self.histories.by_id(*id)),
            Wanted::Key(queue, key) => {
                let id = self.index.queues.get(queue).and_then(|queue| queue.with_key(key));
                (id.and_then(|id| self.live.get(&id)), self.histories.by_key(queue, key))
            }
        };
        match (live, ended) {
            (Some(task), _) => Found::Live(Arc::clone(task)),
            (None, Some(ended)) => Found::Ended(ended.clone()),
            (None, None) => Found::Absent,
        }
    }

    /// Returns live tasks behind `after`, due at or before `until`, at most `max` (at least 1), in the order of their due keys.
    ///
    /// `next` of the page is the due key to go on from, if there are more tasks. Costs O(log n) for each task.
    #[must_use]
    pub fn scan_due(&self, after: DueKey, until: Timestamp, max: usize) -> Page {
        self.page(&self.index.by_place, after, until, max)
    }

    /// Returns at most `max` tasks (at least 1) of one queue that are behind `after` and due between the two instants of the filter, both
    /// included, in the order of their due keys: the dead ones if `filter.dead` is set, else the others.
    #[must_use]
    pub fn scan_filter(&self, filter: &Filter, after: DueKey, max: usize) -> Page {
        let Some(queue) = self.index.queues.get(&filter.queue) else { return Page::default() };
        // No task has `put_seq` 0, so this due key comes before all tasks that are due at `due_from`.
        let after = after.max(DueKey { due_at: filter.due_from, put_seq: Seq::ZERO });
        let places = if filter.dead { &queue.dead_by_place } else { &queue.by_place };
        self.page(places, after, filter.due_to, max)
    }

    /// Counts how many tasks are due in each bucket, for one part of the histogram. Dead tasks do not count. Returns the counts and the
    /// instant up to which tasks were counted; `None`: up to the end.
    pub fn count(&self, histogram: &DueHistogram) -> (Vec<u64>, Option<Timestamp>) {
        self.count_part(histogram, COUNTED_MAX)
    }

    /// Works as [`count`](Self::count), with another limit for one part.
    fn count_part(&self, histogram: &DueHistogram, counted_max: usize) -> (Vec<u64>, Option<Timestamp>) {
        let mut counts = vec![0; histogram.grid.buckets()];
        let places = match &histogram.queue {
            None => Some(&self.index.by_place),
            Some(queue) => self.index.queues.get(queue).map(|queue| &queue.by_place),
        };
        let end = DueKey { due_at: histogram.end(), put_seq: Seq(u64::MAX) };
        if histogram.start() >= end {
            return (counts, None);
        }
        let mut last = histogram.after;
        let behind = places
            .into_iter()
            .flat_map(|places| places.range((Bound::Excluded(histogram.start()), Bound::Included(end))));
        for (looked, (place, id)) in behind.enumerate() {
            if looked >= counted_max && place.due_at > last {
                return (counts, Some(last));
            }
            last = place.due_at;
            let is_dead = self.live.get(id).is_some_and(|task| task.dead().is_some());
            if let Some(bucket) = histogram.bucket(place.due_at).filter(|_| !is_dead) {
                counts[bucket] += 1;
            }
        }
        (counts, None)
    }

    /// Returns the live tasks in the order of their ids, from `id` on.
    pub fn tasks_from(&self, id: u64) -> impl Iterator<Item = &Arc<Task>> {
        self.live.range(id..).map(|(_, task)| task)
    }

    /// Returns the ended tasks that are remembered, in the order of (queue, seq), strictly after `after`.
    pub fn ended_after(&self, after: Option<&(QueueName, Seq)>) -> impl Iterator<Item = &Ended> {
        self.histories.after(after)
    }

    fn page(&self, places: &BTreeMap<DueKey, u64>, after: DueKey, until: Timestamp, max: usize) -> Page {
        let end = DueKey { due_at: until, put_seq: Seq(u64::MAX) };
        if after >= end {
            return Page::default();
        }
        let mut behind = places.range((Bound::Excluded(after), Bound::Included(end)));
        let mut page = Page::default();
        let mut last = after;
        for (place, id) in behind.by_ref().take(max.max(1)) {
            let task = self.live.get(id);
            debug_assert!(task.is_some(), "task {id} has a place and no record");
            page.tasks.extend(task.cloned());
            last = *place;
        }
        page.next = behind.next().map(|_| last);
        page
    }
}

/// Returns an upper bound of the bytes of a task's record in a frame.
pub(crate) fn record_bytes(task: &Task) -> u64 {
    // The numbers of a record at their longest: ten bytes and a tag for each.
    const FIXED: usize = 192;
    let extra = task.extra.as_ref().map_or(0, |extra| 160 + extra.text_bytes());
    let tags: usize = task.body.tags.iter().map(|tag| tag.as_str().len() + 10).sum();
    let names = task.queue.as_str().len() + task.key.as_str().len() + task.body.content_type.len();
    (FIXED + names + extra + tags + task.body.payload_bytes()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwheel_engine::{Backoff, Dead, Death, Failed, Failure, Key, Moment, Retry};

    fn task(id: u64, seq: u64, key: &str, due_ms: i64) -> Task {
        crate::conformance::sample_task(id, seq, "q", key, due_ms)
    }

    fn stored(task: Task) -> TaskEffect {
        TaskEffect::Stored { task: Arc::new(task), body_known: false }
    }

    fn ended(id: u64, seq: u64, key: &str) -> TaskEffect {
        TaskEffect::Ended(Ended {
            id,
            queue: QueueName::new("q").expect("a name"),
            key: Key::new(key).expect("a key"),
            seq: Seq(seq),
            at: Timestamp::EPOCH,
            outcome: Outcome::Done(tickwheel_engine::LeaseNo(9)),
        })
    }

    fn all(effects: &[TaskEffect]) -> Table {
        let mut table = Table::new([0; 16], 3);
        effects.iter().for_each(|effect| table.apply(effect));
        table
    }

    /// The story: tasks 1 and 2 have one key, one after the other. The log is replayed onto the state at its end.
    #[test]
    fn replaying_any_suffix_onto_the_end_state_gives_the_end_state() {
        let log = [
            stored(task(1, 1, "a", 10)),
            stored(task(1, 2, "a", 20)),
            ended(1, 3, "a"),
            stored(task(2, 4, "a", 5)),
            stored(task(3, 5, "b", 5)),
            ended(3, 6, "b"),
            stored(task(4, 7, "b", 6)),
            stored(task(2, 8, "a", 7)),
        ];
        let end = all(&log);
        assert_eq!(end.len(), 2);
        for cut in 0..log.len() {
            let mut again = end.clone();
            log[cut..].iter().for_each(|effect| again.apply(effect));
            assert_eq!(again, end, "replayed from {cut}");
            // A checkpoint may have the live tasks of the end of the log, and the ended tasks of an earlier time.
            let mut fuzzy = all(&log[..cut]);
            for task in end.tasks_from(0) {
                fuzzy.apply(&TaskEffect::Stored { task: Arc::clone(task), body_known: false });
            }
            log[cut..].iter().for_each(|effect| fuzzy.apply(effect));
            assert_eq!(fuzzy, end, "fuzzy from {cut}");
        }
    }

    #[test]
    fn an_end_whose_history_was_forgotten_is_forgotten_again() {
        let mut log = vec![stored(task(1, 1, "a", 1)), ended(1, 2, "a")];
        for n in 2..8 {
            log.push(stored(task(n, n * 2, &format!("k{n}"), 1)));
            log.push(ended(n, n * 2 + 1, &format!("k{n}")));
        }
        let end = all(&log);
        assert_eq!(end.ended_len(), 3);
        assert_eq!(end.find(&Wanted::Id(1)), Found::Absent);
        let mut again = end.clone();
        log.iter().for_each(|effect| again.apply(effect));
        assert_eq!(again, end);
        assert_eq!(again.live_bytes(), 0);
    }

    /// The story: more tasks were due at one instant than a part of a due histogram looks at. The next part looked at the same tasks again,
    /// counted none and made no progress, and so did all later parts.
    #[test]
    fn a_histogram_comes_further_though_many_tasks_are_due_at_one_instant() {
        let due = [10, 10, 10, 10, 11, 11, 12, 30];
        let tasks = (1..).zip(due).map(|(n, due_ms)| stored(task(n, n, &n.to_string(), due_ms)));
        let table = all(&tasks.collect::<Vec<_>>());
        for counted_max in 1..10 {
            let from = Timestamp::EPOCH;
            let mut histogram = DueHistogram {
                queue: None,
                after: from,
                from,
                grid: tickwheel_engine::Grid::Even { width_ms: 1, buckets: 20 },
            };
            let mut sums = [0; 20];
            for part in 0.. {
                assert!(part < 10, "{counted_max} at once, and no end");
                let (counts, counted) = table.count_part(&histogram, counted_max);
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                let Some(counted) = counted else { break };
                assert!(counted > histogram.after, "{counted_max} at once come no further than {counted}");
                histogram.after = counted;
            }
            assert_eq!(sums[10..14], [4, 2, 1, 0], "{counted_max} at once");
            assert_eq!(sums.iter().sum::<u64>(), 7, "{counted_max} at once");
        }
    }

    #[test]
    fn the_estimate_covers_the_record() {
        let mut big = task(u64::MAX, u64::MAX, &"k".repeat(256), i64::MAX);
        big.put_seq = Seq(u64::MAX);
        big.version = Seq(u64::MAX);
        big.put_at = Timestamp::MAX;
        big.priority = u32::MAX;
        big.attempts = u32::MAX;
        big.lease_fence = tickwheel_engine::LeaseNo(u64::MAX);
        big.revoked = Some(big.lease_fence);
        big.lease = Some(tickwheel_engine::StoredLease {
            no: big.lease_fence,
            until: Timestamp::MAX,
            left_ms: u64::MAX - 1,
            written_in: tickwheel_engine::Epoch(u32::MAX),
        });
        big.extra = Some(Box::new(tickwheel_engine::Extra {
            group: Some(tickwheel_engine::Group::new(&"g".repeat(256)).expect("a group")),
            ttr_ms: Some(u64::MAX),
            origin: 255,
            expire_at: Some(Timestamp::MAX),
            trace: Some("t".repeat(55).into()),
            step: u32::MAX,
            acked: Some(tickwheel_engine::LeaseNo(u64::MAX)),
            tally: tickwheel_engine::Tally {
                leases: u32::MAX,
                expiries: u32::MAX,
                nacks: u32::MAX,
                burials: u32::MAX,
                redrives: u32::MAX,
                delay_ms: Some(u64::MAX),
            },
            retry: Some(Retry {
                max_attempts: Some(u32::MAX),
                backoff: Some(Backoff {
                    doubles: true,
                    base_ms: u64::MAX,
                    max_ms: u64::MAX,
                    jitter_percent: 100,
                }),
            }),
            failures: vec![
                Failure {
                    at: Timestamp::MAX,
                    attempt: u32::MAX,
                    how: Failed::Nacked,
                    reason: Some("r".repeat(1_024).into())
                };
                Failure::KEPT
            ],
            dead: Some(Dead {
                at: Timestamp::MAX,
                due_at: Timestamp::MAX,
                why: Death::Expired,
                keyless: true,
            }),
        }));
        big.body = Arc::new(tickwheel_engine::Body {
            payload: vec![7; 1000],
            content_type: "application/json".into(),
            tags: vec![tickwheel_engine::Tag::new("x").expect("a tag"); 20],
            timeline: vec![
                Moment { at: Timestamp::MAX, payload: vec![7; 100], content_type: "a/b".into() };
                20
            ],
        });
        let mut bytes = Vec::new();
        crate::codec::put_stored(&mut bytes, &big, true);
        assert!(bytes.len() as u64 <= record_bytes(&big), "{} > {}", bytes.len(), record_bytes(&big));
    }
}
