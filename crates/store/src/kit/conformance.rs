//! The checks that every store has to pass. The tests of a store call [`volatile`] or [`durable`]. A failed check panics with the reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disk::Disk;
use crate::disk_store::DiskStore;
use crate::io::Io;
use crate::table::Table;
use tickwheel_engine::{
    Acquired, Batch, Before, Body, Dead, Death, DueHistogram, DueKey, Ended, EngineState, Epoch, Filter,
    Found, Grid, Key, LeaseNo, Outcome, Ownership, PRIORITY_DEFAULT, Page, Population, QueueName, Reply,
    Request, RequestId, Rule, RuleEffect, RuleName, Seq, ShardId, ShardStore, StoredLease, Task, TaskEffect,
    Timestamp, Wanted,
};

use super::samples::queue_name;
pub use super::samples::{sample_job, sample_rule, sample_target};

/// The settings of a store under test.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The secret that the `Acquired` reply must have.
    pub secret: [u8; 16],
    /// The number of ended tasks that are remembered for each queue.
    pub history_per_queue: usize,
    /// Entries in one page of the `Acquired` reply to a new owner.
    pub acquired_page: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self { secret: *b"sixteen  secrets", history_per_queue: 5, acquired_page: 2 }
    }
}

/// Makes durable stores.
pub trait Maker {
    /// The type of the stores.
    type Store: ShardStore;
    /// Makes an empty store in a new place.
    fn create(&mut self, setup: &Setup) -> Self::Store;
    /// Drops the store, and opens a store in the same place again.
    fn reopen(&mut self, setup: &Setup, store: Self::Store) -> Self::Store;
}

/// Runs the checks that hold for every store. `make` returns a new, empty store for each check.
///
/// # Panics
/// If a check fails.
pub fn volatile<S: ShardStore>(make: impl Fn(&Setup) -> S) {
    let checks: [fn(Owner<S>); 17] = [
        a_new_shard_is_empty,
        what_was_put_is_found_by_key_and_id,
        a_key_is_found_after_it_was_missing,
        a_newer_record_replaces_and_an_older_one_does_not,
        an_ended_task_is_remembered_and_its_key_is_free,
        the_history_is_bounded,
        scans_go_by_place_in_pages,
        a_filter_sees_one_queue_between_two_instants,
        a_histogram_counts_what_is_due_in_each_bucket,
        the_dead_stand_apart_and_give_their_key_away,
        a_commit_applied_twice_changes_nothing,
        an_older_epoch_is_fenced,
        the_state_of_the_engine_only_grows,
        the_last_rule_of_a_name_stands,
        written_leases_are_handed_on,
        a_released_shard_takes_no_commit,
        a_commit_without_effects_notes_the_time,
    ];
    for check in checks {
        check(Owner::acquire(make(&Setup::default())));
    }
}

/// Runs the checks of [`volatile`], and checks that a store has the same content after it was opened again.
///
/// # Panics
/// If a check fails.
pub fn durable<M: Maker>(maker: &mut M) {
    {
        let maker = std::cell::RefCell::new(&mut *maker);
        volatile(|setup| maker.borrow_mut().create(setup));
    }
    for release in [false, true] {
        survives(maker, release);
    }
}

/// Returns a task with simple values, for tests.
///
/// # Panics
/// If `queue` or `key` is not valid, or if `due_ms` is negative.
#[must_use]
pub fn sample_task(id: u64, seq: u64, queue: &str, key: &str, due_ms: i64) -> Task {
    Task {
        id,
        queue: queue_name(queue),
        key: Key::new(key).expect("a key"),
        seq: Seq(seq),
        put_seq: Seq(seq),
        version: Seq(seq),
        due_at: at(due_ms),
        put_at: at(1),
        priority: PRIORITY_DEFAULT,
        attempts: 0,
        lease_fence: LeaseNo(0),
        revoked: None,
        lease: None,
        body: Arc::new(Body {
            payload: format!("{{\"seq\":{seq}}}").into_bytes(),
            content_type: "application/json".into(),
            ..Body::default()
        }),
        extra: None,
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms).expect("not negative")
}

fn by_key(queue: &str, key: &str) -> Wanted {
    Wanted::Key(queue_name(queue), Key::new(key).expect("a key"))
}

/// Returns the whole content of a store on a disk, as a table that can be compared. Checks the due histograms of the store too.
/// `history_per_queue` is the number with which the store was opened.
///
/// # Errors
/// The store's reason, if the store cannot read its tasks.
///
/// # Panics
/// If the store gives another kind of answer, or none, or if its number of tasks or a due histogram is wrong.
pub fn contents<D: Disk, I: Io<D>>(
    store: &mut DiskStore<D, I>,
    history_per_queue: usize,
) -> Result<Table, String> {
    let mut table = Table::new([0; 16], history_per_queue);
    let mut after = DueKey::START;
    loop {
        // The size of a page is an unusual number, so that pages end at many different tasks.
        match ask(store, u64::MAX, Request::ScanDue { after, until: Timestamp::MAX, max: 37 }) {
            Reply::Page(page) => {
                for task in page.tasks {
                    table.apply(&TaskEffect::Stored { task, body_known: false });
                }
                match page.next {
                    Some(next) => after = next,
                    None => break,
                }
            }
            Reply::Failed { why } => return Err(why),
            other => panic!("ScanDue was answered {other:?}"),
        }
    }
    assert_eq!(table.len(), store.len(), "tasks in pages, and tasks in all");
    for histogram in histograms(&table) {
        let expected = by_hand(&table, &histogram);
        assert_eq!(counted(store, histogram.clone())?, expected, "{histogram:?}");
    }
    store.ended().for_each(|ended| table.apply(&TaskEffect::Ended(ended.clone())));
    table.join_state(store.state());
    store.rules().for_each(|(name, rule)| table.apply_rule((name.clone(), Some(Arc::clone(rule)))));
    Ok(table)
}

/// Counts the tasks of the table as a due histogram should count them.
fn by_hand(table: &Table, histogram: &DueHistogram) -> Vec<u64> {
    let mut counts = vec![0; histogram.grid.buckets()];
    for task in table.tasks_from(0).filter(|task| task.dead().is_none()) {
        let meant = histogram.queue.as_ref().is_none_or(|queue| task.queue == *queue);
        if let Some(bucket) = histogram.bucket(task.due_at).filter(|_| meant) {
            counts[bucket] += 1;
        }
    }
    counts
}

/// Asks for all parts of a due histogram. Returns the sums of the counts.
///
/// # Errors
/// The store's reason, if the store cannot read its tasks.
///
/// # Panics
/// If the store gives another kind of answer, or none, or if a part does not end later than the part before.
pub fn counted<S: ShardStore>(store: &mut S, mut histogram: DueHistogram) -> Result<Vec<u64>, String> {
    let mut all = vec![0; histogram.grid.buckets()];
    loop {
        match ask(store, u64::MAX, Request::Count(histogram.clone())) {
            Reply::Counts { counts, counted } => {
                all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                let Some(counted) = counted else { return Ok(all) };
                assert!(counted > histogram.after, "{counted:?} is no further than {:?}", histogram.after);
                histogram.after = counted;
            }
            Reply::Failed { why } => return Err(why),
            other => panic!("Count was answered {other:?}"),
        }
    }
}

/// Returns some due histograms for a store with the tasks of `table`: of all queues and of one, in few buckets and in many.
fn histograms(table: &Table) -> Vec<DueHistogram> {
    let dues = || table.tasks_from(0).map(|task| task.due_at);
    let (Some(first), Some(last)) = (dues().min(), dues().max()) else { return Vec::new() };
    let span_ms = last.ms_since(first) + 1;
    let queue = table.tasks_from(0).next().map(|task| task.queue.clone());
    let half = first.saturating_plus_ms(span_ms / 2);
    let histogram = |queue: &Option<QueueName>, after, buckets: u64| DueHistogram {
        queue: queue.clone(),
        after,
        from: first,
        grid: Grid::Even {
            width_ms: span_ms.div_ceil(buckets),
            buckets: usize::try_from(buckets).expect("few"),
        },
    };
    let before = at(first.as_ms().saturating_sub(1).max(0));
    let uneven = |queue: &Option<QueueName>| {
        let ends =
            (0..50).map_while(|power| Some(1_u64 << power).filter(|end| *end < span_ms)).chain([span_ms]);
        DueHistogram { grid: Grid::Ends(ends.collect()), ..histogram(queue, before, 1) }
    };
    let of = |queue| [histogram(queue, before, 7), histogram(queue, half, 200), uneven(queue)];
    [None, queue].iter().flat_map(of).collect()
}

/// The owner of a store in a test. The owner sends a request and waits for the answer.
#[derive(Debug)]
pub struct Owner<S> {
    store: S,
    /// The answer to `Acquire`, with all pages in one.
    pub acquired: Acquired,
    seq: Seq,
    asked: u64,
    /// The state of each task that this owner committed.
    known: BTreeMap<u64, Before>,
}

impl<S: ShardStore> Owner<S> {
    /// Acquires shard 0 of a store, and reads all pages of the answer.
    ///
    /// # Panics
    /// If the store refuses, or gives another kind of answer.
    #[must_use]
    pub fn acquire(mut store: S) -> Self {
        let reply = ask(&mut store, 0, Request::Acquire { shard: ShardId::ONLY, wall: at(1_000) });
        let Reply::Acquired(acquired) = reply else { panic!("Acquire was answered {reply:?}") };
        let seq = acquired.ownership.last_seq;
        let mut owner = Self { store, acquired, seq, asked: 0, known: BTreeMap::new() };
        while let Some(after) = owner.acquired.page.next.take() {
            let behind = after.clone();
            let reply = owner.ask(Request::AcquiredPage { after });
            let Reply::AcquiredPage(page) = reply else { panic!("a page was answered {reply:?}") };
            assert!(page.next.as_ref().is_none_or(|next| *next > behind), "a page ends where it began");
            owner.acquired.page.queues.extend(page.queues);
            owner.acquired.page.rules.extend(page.rules);
            owner.acquired.page.leased.extend(page.leased);
            owner.acquired.page.next = page.next;
        }
        owner
    }

    /// Returns the store.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Returns the number of the next change.
    pub fn next_seq(&self) -> u64 {
        self.seq.0 + 1
    }

    /// Sends a request, and waits for the answer.
    pub fn ask(&mut self, request: Request) -> Reply {
        self.asked += 1;
        ask(&mut self.store, self.asked, request)
    }

    /// Asks for all parts of a due histogram. Returns the sums of the counts.
    ///
    /// # Errors
    /// The store's reason, if the store cannot read its tasks.
    pub fn histogram(&mut self, histogram: DueHistogram) -> Result<Vec<u64>, String> {
        counted(&mut self.store, histogram)
    }

    /// Commits effects under the ownership in [`acquired`](Self::acquired). Returns the answer. A task that another owner committed counts
    /// as new.
    pub fn commit(&mut self, effects: Vec<TaskEffect>) -> Reply {
        self.commit_batch(self.acquired.ownership, Batch { effects, ..Batch::default() })
    }

    fn commit_batch(&mut self, ownership: Ownership, mut batch: Batch) -> Reply {
        let before = |effect: &TaskEffect| self.known.get(&effect.id()).copied().unwrap_or(Before::Absent);
        batch.before = batch.effects.iter().map(before).collect();
        let seq = batch.effects.iter().map(TaskEffect::seq).max().unwrap_or(self.seq).max(self.seq);
        self.seq = seq;
        let after: Vec<(u64, Before)> = batch.effects.iter().map(after).collect();
        let reply = self.ask(Request::Commit { ownership, seq, wall: at(2_000), batch });
        if matches!(reply, Reply::Done { .. }) {
            self.known.extend(after);
        }
        reply
    }

    fn done(&mut self, effects: Vec<TaskEffect>) {
        let reply = self.commit(effects);
        assert!(matches!(reply, Reply::Done { .. }), "a commit was answered {reply:?}");
    }

    fn put(&mut self, id: u64, queue: &str, key: &str, due_ms: i64) -> Arc<Task> {
        let task = Arc::new(sample_task(id, self.next_seq(), queue, key, due_ms));
        self.done(vec![TaskEffect::Stored { task: Arc::clone(&task), body_known: false }]);
        task
    }

    fn change(&mut self, task: &Task, change: impl FnOnce(&mut Task)) -> Arc<Task> {
        let mut task = task.clone();
        task.seq = Seq(self.next_seq());
        change(&mut task);
        let task = Arc::new(task);
        self.done(vec![TaskEffect::Stored { task: Arc::clone(&task), body_known: true }]);
        task
    }

    fn end(&mut self, task: &Task, outcome: Outcome) -> Ended {
        let ended = Ended {
            id: task.id,
            queue: task.queue.clone(),
            key: task.key.clone(),
            seq: Seq(self.next_seq()),
            at: at(3_000),
            outcome,
        };
        self.done(vec![TaskEffect::Ended(ended.clone())]);
        ended
    }

    fn find(&mut self, wanted: Vec<Wanted>) -> Vec<Found> {
        match self.ask(Request::GetMany(wanted)) {
            Reply::Found(found) => found,
            other => panic!("GetMany was answered {other:?}"),
        }
    }

    fn page(&mut self, request: Request) -> Page {
        match self.ask(request) {
            Reply::Page(page) => page,
            other => panic!("a scan was answered {other:?}"),
        }
    }
}

/// Returns the id of the task of an effect, and the state of the task behind the effect.
fn after(effect: &TaskEffect) -> (u64, Before) {
    let state = match effect {
        TaskEffect::Stored { task, .. } if task.dead().is_some() => Before::Dead,
        TaskEffect::Stored { .. } => Before::Live,
        TaskEffect::Ended(_) => Before::Absent,
    };
    (effect.id(), state)
}

/// Sends a request to a store, and polls the store until the store has answered.
///
/// # Panics
/// If the store answers another request, answers more than once, or never answers.
pub fn ask<S: ShardStore>(store: &mut S, id: u64, request: Request) -> Reply {
    let id = RequestId(id);
    store.submit(id, request);
    let mut replies = Vec::new();
    // A store with threads answers when the disk is done. A store that has not answered after a hundred million polls never will.
    for _ in 0..100_000_000_u64 {
        store.poll(&mut replies);
        match replies.pop() {
            None => std::thread::yield_now(),
            Some((answered, reply)) => {
                assert_eq!(answered, id, "another request was answered: {reply:?}");
                assert!(replies.is_empty(), "more than one answer: {replies:?}");
                return reply;
            }
        }
    }
    panic!("request {id:?} was never answered");
}

fn a_new_shard_is_empty<S: ShardStore>(mut owner: Owner<S>) {
    let acquired = &owner.acquired;
    assert_eq!(acquired.secret, Setup::default().secret);
    assert_eq!(acquired.ownership.last_seq, Seq::ZERO);
    assert_eq!(acquired.last_wall, Timestamp::EPOCH);
    assert_eq!(acquired.state, EngineState::default());
    assert_eq!(acquired.page.queues, Vec::new());
    assert!(acquired.room > 0, "a new shard has no room");
    assert_eq!(owner.find(vec![by_key("q", "a"), Wanted::Id(1)]), [Found::Absent, Found::Absent]);
    let page = owner.page(Request::ScanDue { after: DueKey::START, until: Timestamp::MAX, max: 10 });
    assert_eq!(page, Page::default());
    for (number, count) in [(1, 2), (0, 2)] {
        let shard = ShardId::new(number, count).expect("it is one");
        let reply = owner.ask(Request::Acquire { shard, wall: at(1) });
        assert!(matches!(reply, Reply::Failed { .. }), "{shard} was answered {reply:?}");
    }
}

fn what_was_put_is_found_by_key_and_id<S: ShardStore>(mut owner: Owner<S>) {
    let a = owner.put(1, "q", "a", 50);
    let b = owner.put(2, "p", "a", 10);
    let found =
        owner.find(vec![by_key("p", "a"), Wanted::Id(1), by_key("q", "b"), by_key("q", "a"), Wanted::Id(3)]);
    let live = |task: &Arc<Task>| Found::Live(Arc::clone(task));
    assert_eq!(found, [live(&b), live(&a), Found::Absent, live(&a), Found::Absent]);
}

fn a_key_is_found_after_it_was_missing<S: ShardStore>(mut owner: Owner<S>) {
    let wanted = || ["a", "b", "c"].map(|key| by_key("q", key)).to_vec();
    let first = Found::Live(owner.put(1, "q", "a", 10));
    // A store may learn from a look-up which keys there are.
    (0..3).for_each(|_| assert_eq!(owner.find(wanted()), [first.clone(), Found::Absent, Found::Absent]));
    let second = Found::Live(owner.put(2, "q", "b", 20));
    assert_eq!(owner.find(wanted()), [first, second, Found::Absent]);
}

fn a_newer_record_replaces_and_an_older_one_does_not<S: ShardStore>(mut owner: Owner<S>) {
    let first = owner.put(1, "q", "a", 50);
    let mut moved = (*first).clone();
    moved.seq = Seq(owner.next_seq());
    moved.due_at = at(20);
    let moved = Arc::new(moved);
    owner.done(vec![TaskEffect::Stored { task: Arc::clone(&moved), body_known: true }]);
    // A batch may have an older record of one task beside a new record of another task.
    let other = Arc::new(sample_task(2, owner.next_seq(), "q", "b", 30));
    owner.done(vec![
        TaskEffect::Stored { task: first, body_known: false },
        TaskEffect::Stored { task: Arc::clone(&other), body_known: false },
    ]);
    let page = owner.page(Request::ScanDue { after: DueKey::START, until: Timestamp::MAX, max: 10 });
    assert_eq!(page, Page { tasks: vec![moved, other], next: None });
}

fn an_ended_task_is_remembered_and_its_key_is_free<S: ShardStore>(mut owner: Owner<S>) {
    let first = owner.put(1, "q", "a", 50);
    let ended = owner.end(&first, Outcome::Done(LeaseNo(9)));
    let found = owner.find(vec![by_key("q", "a"), Wanted::Id(1)]);
    assert_eq!(found, [Found::Ended(ended.clone()), Found::Ended(ended.clone())]);

    let second = owner.put(2, "q", "a", 60);
    let live = Found::Live(Arc::clone(&second));
    let found = owner.find(vec![by_key("q", "a"), Wanted::Id(1), Wanted::Id(2)]);
    assert_eq!(found, [live.clone(), Found::Ended(ended.clone()), live]);

    // One commit ends a task and puts a task with the same key. The order of the effects in the batch makes no difference.
    let seq = owner.next_seq();
    let third = Arc::new(sample_task(3, seq + 1, "q", "a", 70));
    let cancelled = Ended { id: 2, seq: Seq(seq), outcome: Outcome::Revoked(LeaseNo(9)), ..ended };
    owner.done(vec![
        TaskEffect::Stored { task: Arc::clone(&third), body_known: false },
        TaskEffect::Ended(cancelled.clone()),
    ]);
    let found = owner.find(vec![by_key("q", "a"), Wanted::Id(2)]);
    assert_eq!(found, [Found::Live(Arc::clone(&third)), Found::Ended(cancelled)]);
    let last = owner.end(&third, Outcome::Cancelled);
    assert_eq!(owner.find(vec![by_key("q", "a")]), [Found::Ended(last)]);
}

fn the_history_is_bounded<S: ShardStore>(mut owner: Owner<S>) {
    let kept = Setup::default().history_per_queue as u64;
    let ends: Vec<Ended> = (0..=kept)
        .map(|n| {
            let task = owner.put(n + 1, "q", &format!("k{n}"), 5);
            owner.end(&task, Outcome::Done(LeaseNo(9)))
        })
        .collect();
    let wanted = |ended: &Ended| [Wanted::Key(ended.queue.clone(), ended.key.clone()), Wanted::Id(ended.id)];
    assert_eq!(
        owner.find(wanted(&ends[0]).to_vec()),
        [Found::Absent, Found::Absent],
        "the oldest is remembered"
    );
    for ended in &ends[1..] {
        assert_eq!(
            owner.find(wanted(ended).to_vec()),
            [Found::Ended(ended.clone()), Found::Ended(ended.clone())]
        );
    }
    let other = owner.put(100, "other", "x", 5);
    owner.end(&other, Outcome::Done(LeaseNo(9)));
    assert_ne!(owner.find(vec![Wanted::Id(ends[1].id)]), [Found::Absent], "another queue pushed it out");
}

fn scans_go_by_place_in_pages<S: ShardStore>(mut owner: Owner<S>) {
    let due = [30, 10, 20, 10, i64::MAX - 1, 0, 10];
    let mut tasks: Vec<Arc<Task>> = (1..)
        .zip(due)
        .map(|(id, due)| owner.put(id, if id % 2 == 0 { "even" } else { "odd" }, &id.to_string(), due))
        .collect();
    tasks.sort_by_key(|task| DueKey::of(task));
    for max in [1, 2, 3, 7, 8] {
        for until in [0, 9, 10, 29, i64::MAX] {
            let expected: Vec<_> = tasks.iter().filter(|task| task.due_at <= at(until)).cloned().collect();
            let mut seen = Vec::new();
            let mut after = DueKey::START;
            loop {
                let page = owner.page(Request::ScanDue { after, until: at(until), max });
                assert!(page.tasks.len() <= max, "{} tasks on a page of {max}", page.tasks.len());
                seen.extend(page.tasks);
                match page.next {
                    Some(next) => {
                        assert!(next > after, "a scan stands still at {next:?}");
                        after = next;
                    }
                    None => break,
                }
            }
            assert_eq!(seen, expected, "until {until} in pages of {max}");
        }
    }
    assert_eq!(
        owner.page(Request::ScanDue { after: DueKey::of(&tasks[6]), until: at(5), max: 1 }),
        Page::default()
    );
}

fn a_histogram_counts_what_is_due_in_each_bucket<S: ShardStore>(mut owner: Owner<S>) {
    let mut tasks = Vec::new();
    for (id, (queue, due)) in
        (1..).zip([("q", 10), ("p", 19), ("q", 20), ("q", 39), ("q", 40), ("q", 9), ("q", 25)])
    {
        tasks.push(owner.put(id, queue, &id.to_string(), due));
    }
    let mut counts = |queue: Option<&str>, after: i64, buckets: usize| {
        let histogram = DueHistogram {
            queue: queue.map(queue_name),
            after: at(after),
            from: at(10),
            grid: Grid::Even { width_ms: 10, buckets },
        };
        counted(&mut owner.store, histogram).expect("it can be read")
    };
    assert_eq!(counts(None, 0, 3), [2, 2, 1], "an edge belongs to the bucket that begins there");
    assert_eq!(counts(Some("q"), 0, 3), [1, 2, 1]);
    assert_eq!(counts(None, 10, 3), [1, 2, 1], "what is due by now does not count");
    assert_eq!(counts(Some("none"), 0, 2), [0, 0]);
    assert_eq!(counts(None, 0, 0), []);
    let ends = |after: i64, ends: &[u64]| DueHistogram {
        queue: None,
        after: at(after),
        from: at(10),
        grid: Grid::Ends(ends.into()),
    };
    for (histogram, expected) in [
        (ends(0, &[1, 10, 31]), &[1, 1, 4][..]),
        (ends(10, &[1, 10, 11, 30]), &[0, 1, 1, 2]),
        (ends(0, &[]), &[]),
    ] {
        assert_eq!(
            counted(&mut owner.store, histogram.clone()).expect("it can be read"),
            expected,
            "{histogram:?}"
        );
    }
    owner.change(&tasks[2], |task| bury(task, 35, false));
    owner.end(&tasks[3], Outcome::Done(LeaseNo(9)));
    let histogram = DueHistogram {
        queue: None,
        after: at(0),
        from: at(10),
        grid: Grid::Even { width_ms: 10, buckets: 3 },
    };
    let counts = counted(&mut owner.store, histogram).expect("it can be read");
    assert_eq!(counts, [2, 1, 0], "neither the dead nor the done");
}

fn a_filter_sees_one_queue_between_two_instants<S: ShardStore>(mut owner: Owner<S>) {
    for (id, (queue, due)) in (1..).zip([("q", 10), ("p", 11), ("q", 12), ("q", 20), ("p", 12), ("q", 21)]) {
        owner.put(id, queue, &id.to_string(), due);
    }
    let mut ids = |queue: &str, from: i64, to: i64, after: DueKey, max: usize| {
        let filter = Filter { queue: queue_name(queue), due_from: at(from), due_to: at(to), dead: false };
        let page = owner.page(Request::ScanFilter { filter, after, max });
        (page.tasks.iter().map(|task| task.id).collect::<Vec<_>>(), page.next)
    };
    assert_eq!(ids("q", 0, i64::MAX, DueKey::START, 9), (vec![1, 3, 4, 6], None));
    assert_eq!(ids("q", 12, 20, DueKey::START, 9), (vec![3, 4], None));
    assert_eq!(ids("q", 13, 12, DueKey::START, 9), (vec![], None));
    assert_eq!(ids("none", 0, 99, DueKey::START, 9), (vec![], None));
    let (first, next) = ids("q", 10, 20, DueKey::START, 2);
    assert_eq!(first, [1, 3]);
    assert_eq!(ids("q", 10, 20, next.expect("there is more"), 2), (vec![4], None));
}

/// Makes a task dead, to be forgotten at `until` (ms). `keyless`: the key of the task does not find the task any more.
fn bury(task: &mut Task, until: i64, keyless: bool) {
    let dead = Dead { at: at(100), due_at: task.due_at, why: Death::MaxAttempts, keyless };
    task.extra_mut().dead = Some(dead);
    task.due_at = at(until);
}

fn the_dead_stand_apart_and_give_their_key_away<S: ShardStore>(mut owner: Owner<S>) {
    let first = owner.put(1, "q", "a", 10);
    let other = owner.put(2, "q", "b", 500);
    let first = owner.change(&first, |task| bury(task, 900, false));
    let page = |owner: &mut Owner<S>, dead| {
        let filter = Filter { queue: queue_name("q"), due_from: at(0), due_to: Timestamp::MAX, dead };
        owner.page(Request::ScanFilter { filter, after: DueKey::START, max: 9 }).tasks
    };
    assert_eq!(page(&mut owner, true), [Arc::clone(&first)]);
    assert_eq!(page(&mut owner, false), [Arc::clone(&other)]);
    assert_eq!(owner.find(vec![by_key("q", "a")]), [Found::Live(Arc::clone(&first))], "its key leads to it");
    // Another task gets the key, and becomes dead too. The first task is found by its id alone.
    let first = owner.change(&first, |task| bury(task, 900, true));
    let second = owner.put(3, "q", "a", 20);
    let found = vec![by_key("q", "a"), Wanted::Id(1)];
    let [live, dead] = [&second, &first].map(|task| Found::Live(Arc::clone(task)));
    assert_eq!(owner.find(found), [live, dead]);
    let second = owner.change(&second, |task| bury(task, 800, false));
    assert_eq!(owner.find(vec![by_key("q", "a")]), [Found::Live(Arc::clone(&second))]);
    assert_eq!(page(&mut owner, true), [Arc::clone(&second), Arc::clone(&first)]);
    // The first task lives again and has its key back, in the commit in which the second task is forgotten.
    let seq = owner.next_seq();
    let mut again = Task::clone(&first);
    (again.extra_mut().dead, again.due_at, again.seq) = (None, at(30), Seq(seq));
    let again = Arc::new(again);
    let (queue, key) = (second.queue.clone(), second.key.clone());
    let outcome = Outcome::Forgotten;
    let ended = Ended { id: 3, queue, key, seq: Seq(seq + 1), at: at(100), outcome };
    let stored = TaskEffect::Stored { task: Arc::clone(&again), body_known: true };
    owner.done(vec![stored, TaskEffect::Ended(ended)]);
    assert_eq!(owner.find(vec![by_key("q", "a")]), [Found::Live(Arc::clone(&again))]);
    assert_eq!(page(&mut owner, true), []);
    assert_eq!(page(&mut owner, false), [again, other]);
}

fn a_commit_applied_twice_changes_nothing<S: ShardStore>(mut owner: Owner<S>) {
    let first = owner.put(1, "q", "a", 50);
    let seq = owner.next_seq();
    let second = Arc::new(sample_task(2, seq + 1, "q", "a", 40));
    let ended = Ended {
        id: 1,
        queue: first.queue.clone(),
        key: first.key.clone(),
        seq: Seq(seq),
        at: at(9),
        outcome: Outcome::Done(LeaseNo(9)),
    };
    let batch = vec![
        TaskEffect::Ended(ended.clone()),
        TaskEffect::Stored { task: Arc::clone(&second), body_known: false },
    ];
    for _ in 0..2 {
        owner.done(batch.clone());
        let found = owner.find(vec![by_key("q", "a"), Wanted::Id(1)]);
        assert_eq!(found, [Found::Live(Arc::clone(&second)), Found::Ended(ended.clone())]);
        let page = owner.page(Request::ScanDue { after: DueKey::START, until: Timestamp::MAX, max: 10 });
        assert_eq!(page, Page { tasks: vec![Arc::clone(&second)], next: None });
    }
}

fn an_older_epoch_is_fenced<S: ShardStore>(mut owner: Owner<S>) {
    owner.put(1, "q", "a", 50);
    let old = owner.acquired.ownership;
    let reply = owner.ask(Request::Acquire { shard: ShardId::ONLY, wall: at(5_000) });
    let Reply::Acquired(acquired) = reply else { panic!("a second Acquire was answered {reply:?}") };
    assert!(acquired.ownership.epoch > old.epoch, "{} is not after {}", acquired.ownership.epoch, old.epoch);
    assert_eq!(acquired.ownership.last_seq, Seq(1));
    assert_eq!(acquired.page.queues, [(queue_name("q"), Population { live: 1, dead: 0 })]);
    let task = Arc::new(sample_task(2, 2, "q", "b", 1));
    let effects = vec![TaskEffect::Stored { task, body_known: false }];
    let batch = Batch { effects, ..Batch::default() };
    let reply = owner.commit_batch(old, batch.clone());
    assert!(matches!(reply, Reply::Fenced), "an old epoch was answered {reply:?}");
    assert_eq!(owner.find(vec![Wanted::Id(2)]), [Found::Absent]);
    let reply = owner.ask(Request::Release { ownership: old });
    assert!(matches!(reply, Reply::Fenced), "an old epoch was answered {reply:?}");
    let reply = owner.commit_batch(acquired.ownership, batch);
    assert!(matches!(reply, Reply::Done { .. }), "the new epoch was answered {reply:?}");
}

fn the_state_of_the_engine_only_grows<S: ShardStore>(mut owner: Owner<S>) {
    let ownership = owner.acquired.ownership;
    for (ids_reserved, numbers) in [(100, 0b001), (50, 0b100), (60, 0b001)] {
        let batch = Batch { state: Some(EngineState::from_parts(ids_reserved, numbers)), ..Batch::default() };
        let reply = owner.commit_batch(ownership, batch);
        assert!(matches!(reply, Reply::Done { .. }), "a state alone was answered {reply:?}");
    }
    let again = Owner::acquire(owner.into_store());
    assert_eq!(again.acquired.state.parts(), (100, 0b101));
    assert_eq!(again.acquired.last_wall, at(2_000));
}

/// Returns the rules in these effects, without the effects that remove a rule.
fn standing(effects: &[RuleEffect]) -> Vec<(RuleName, Arc<Rule>)> {
    let stand = |(name, rule): &RuleEffect| Some((name.clone(), Arc::clone(rule.as_ref()?)));
    effects.iter().filter_map(stand).collect()
}

fn the_last_rule_of_a_name_stands<S: ShardStore>(mut owner: Owner<S>) {
    let ownership = owner.acquired.ownership;
    assert_eq!(owner.acquired.page.rules, []);
    let gone = (RuleName::Queue(queue_name("b")), None);
    let (a, b, c) = (sample_rule("a", 1), sample_rule("b", 2), sample_target("c/d", 60_000));
    let job = sample_job(u64::MAX, b"page 2");
    let first = vec![c.clone(), b, sample_job(u64::MAX, b"page 1"), sample_job(7, b"")];
    for rules in
        [first, vec![sample_rule("a", 9), gone, job.clone()], vec![a.clone(), (RuleName::Job(7), None)]]
    {
        let reply = owner.commit_batch(ownership, Batch { rules, ..Batch::default() });
        assert!(matches!(reply, Reply::Done { .. }), "rules alone were answered {reply:?}");
    }
    let again = Owner::acquire(owner.into_store());
    assert_eq!(again.acquired.page.rules, standing(&[a, c, job]));
    assert_eq!(again.acquired.page.queues, [], "a rule is no task");
}

fn written_leases_are_handed_on<S: ShardStore>(mut owner: Owner<S>) {
    let tasks: Vec<Arc<Task>> = (1..=4).map(|id| owner.put(id, "q", &id.to_string(), 5)).collect();
    let mut restore = |task: &Task, lease: Option<StoredLease>| {
        let mut task = task.clone();
        task.seq = Seq(owner.next_seq());
        task.lease = lease;
        let task = Arc::new(task);
        owner.done(vec![TaskEffect::Stored { task: Arc::clone(&task), body_known: true }]);
        task
    };
    let lease = StoredLease { no: LeaseNo(9), until: at(77), left_ms: 70, written_in: Epoch(1) };
    let held: Vec<Arc<Task>> = tasks[..3].iter().map(|task| restore(task, Some(lease))).collect();
    restore(&held[0], None);
    owner.end(&held[1], Outcome::Done(LeaseNo(9)));
    let owner = Owner::acquire(owner.into_store());
    assert_eq!(owner.acquired.page.leased, [Arc::clone(&held[2])]);
}

fn a_released_shard_takes_no_commit<S: ShardStore>(mut owner: Owner<S>) {
    let task = owner.put(1, "q", "a", 50);
    let reply = owner.ask(Request::Release { ownership: owner.acquired.ownership });
    assert!(matches!(reply, Reply::Released), "Release was answered {reply:?}");
    let task = TaskEffect::Stored { task, body_known: false };
    let reply = owner.commit(vec![task]);
    assert!(matches!(reply, Reply::Fenced), "a commit after the release was answered {reply:?}");
}

/// A move of a virtual clock changes no task, and is durable all the same.
fn a_commit_without_effects_notes_the_time<S: ShardStore>(mut owner: Owner<S>) {
    owner.put(1, "q", "a", 50);
    let (ownership, seq) = (owner.acquired.ownership, Seq(owner.next_seq()));
    let reply = owner.ask(Request::Commit { ownership, seq, wall: at(9_000), batch: Batch::default() });
    assert!(matches!(reply, Reply::Done { .. }), "a commit without effects was answered {reply:?}");
    let again = Owner::acquire(owner.into_store());
    assert_eq!(again.acquired.last_wall, at(9_000));
    assert_eq!(again.acquired.ownership.last_seq, seq);
}

fn survives<M: Maker>(maker: &mut M, release: bool) {
    let setup = Setup::default();
    let mut owner = Owner::acquire(maker.create(&setup));
    let epoch = owner.acquired.ownership.epoch;
    let kept = owner.put(1, "q", "kept", 50);
    let gone = owner.put(2, "q", "gone", 60);
    let gone = owner.end(&gone, Outcome::Done(LeaseNo(9)));
    let dead = owner.put(4, "q", "dead", 60);
    let dead = owner.change(&dead, |task| bury(task, 900, false));
    let mut patched = (*kept).clone();
    patched.seq = Seq(owner.next_seq());
    patched.version = patched.seq;
    patched.due_at = at(70);
    let patched = Arc::new(patched);
    owner.done(vec![TaskEffect::Stored { task: Arc::clone(&patched), body_known: true }]);
    let ownership = owner.acquired.ownership;
    let state = EngineState::from_parts(77, u64::MAX);
    let rules = [sample_rule("held", 3), sample_job(5, &[0, 255, 10])];
    let batch = Batch { state: Some(state), rules: rules.to_vec(), ..Batch::default() };
    owner.commit_batch(ownership, batch);
    if release {
        let reply = owner.ask(Request::Release { ownership });
        assert!(matches!(reply, Reply::Released), "Release was answered {reply:?}");
    }

    for times in 1..4 {
        owner = Owner::acquire(maker.reopen(&setup, owner.into_store()));
        assert!(owner.acquired.ownership.epoch.0 >= epoch.0 + times, "the epoch does not rise");
        assert_eq!(owner.acquired.ownership.last_seq, patched.seq);
        assert_eq!(owner.acquired.state, state);
        assert_eq!(owner.acquired.page.rules, standing(&rules));
        assert_eq!(owner.acquired.secret, setup.secret);
        assert_eq!(owner.acquired.last_wall, at(2_000));
        assert_eq!(owner.acquired.page.queues, [(queue_name("q"), Population { live: 1, dead: 1 })]);
        let found = owner.find(vec![by_key("q", "kept"), by_key("q", "gone"), by_key("q", "dead")]);
        let [live, dead] = [&patched, &dead].map(|task| Found::Live(Arc::clone(task)));
        assert_eq!(found, [live, Found::Ended(gone.clone()), dead]);
    }
    let another = owner.put(3, "q", "gone", 1);
    let mut owner = Owner::acquire(maker.reopen(&setup, owner.into_store()));
    let page = owner.page(Request::ScanDue { after: DueKey::START, until: Timestamp::MAX, max: 10 });
    assert_eq!(page, Page { tasks: vec![another, patched, dead], next: None });
}
