//! The far tasks' life on disk: written once or twice, found in order, gone with their files.

use std::path::Path;
use std::sync::Arc;

use tickwheel_engine::{
    Batch, Body, DueKey, Ended, Filter, Found, LeaseNo, Outcome, QueueName, Reply, Request, Seq, Task,
    TaskEffect, Timestamp, Wanted,
};
use tickwheel_store::conformance::{self, Owner, sample_task};
use tickwheel_store::{AckLevel, DiskStore, FsDisk, HistoryLimits, InlineIo, StoreOptions};

type Store = DiskStore<FsDisk, InlineIo<FsDisk>>;

const DAY_MS: i64 = 86_400_000;
const START_MS: i64 = 1_700_000_000_000;

fn open(dir: &Path) -> Store {
    let options = options();
    DiskStore::open(FsDisk::new(dir).expect("a directory"), InlineIo::new(), options).expect("it opens")
}

/// Small files, so that a few tasks meet everything there is.
fn options() -> StoreOptions {
    let mut options = StoreOptions::new([7; 16]);
    options.log_file_bytes = 16 << 10;
    options.checkpoint_after_bytes = 24 << 10;
    options.background_step_bytes = 4 << 10;
    options.segment_bytes = 32 << 10;
    options.block_bytes = 512;
    options.history = HistoryLimits::last(10);
    options
}

/// A store with an owner, and a clock that is moved by hand.
struct Life {
    owner: Owner<Store>,
    wall_ms: i64,
    seq: u64,
}

impl Life {
    fn begin(dir: &Path, wall_ms: i64) -> Self {
        Self::of(open(dir), wall_ms)
    }

    fn of(store: Store, wall_ms: i64) -> Self {
        let owner = Owner::acquire(store);
        let seq = owner.acquired.ownership.last_seq.0;
        Self { owner, wall_ms, seq }
    }

    fn end(self) -> (i64, Store) {
        (self.wall_ms, self.owner.into_store())
    }

    fn commit(&mut self, effects: Vec<TaskEffect>) {
        let ownership = self.owner.acquired.ownership;
        let wall = Timestamp::from_ms(self.wall_ms).expect("after 1970");
        let batch = Batch { effects, ..Batch::default() };
        let reply = self.owner.ask(Request::Commit { ownership, seq: Seq(self.seq), wall, batch });
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    }

    /// Commits of nothing, so that the background gets somewhere.
    fn rest(&mut self, commits: usize) {
        for _ in 0..commits {
            self.commit(Vec::new());
        }
    }

    fn put(&mut self, id: u64, key: &str, due_ms: i64) -> Arc<Task> {
        self.put_bytes(id, key, due_ms, 150)
    }

    fn put_bytes(&mut self, id: u64, key: &str, due_ms: i64, bytes: usize) -> Arc<Task> {
        self.seq += 1;
        let mut task = sample_task(id, self.seq, "q", key, due_ms);
        task.body = Arc::new(Body::bytes(vec![id as u8; bytes]));
        let task = Arc::new(task);
        self.commit(vec![TaskEffect::Stored { task: Arc::clone(&task), body_known: false }]);
        task
    }

    fn finish(&mut self, tasks: &[Arc<Task>]) {
        let effects = tasks.iter().map(|task| {
            self.seq += 1;
            let (queue, key) = (task.queue.clone(), task.key.clone());
            let at = Timestamp::EPOCH;
            TaskEffect::Ended(Ended {
                id: task.id,
                queue,
                key,
                seq: Seq(self.seq),
                at,
                outcome: Outcome::Done(LeaseNo(9)),
            })
        });
        let effects = effects.collect();
        self.commit(effects);
    }

    fn due(&mut self, after: DueKey, max: usize) -> tickwheel_engine::Page {
        let until = Timestamp::from_ms(self.wall_ms).expect("after 1970");
        match self.owner.ask(Request::ScanDue { after, until, max }) {
            Reply::Page(page) => page,
            other => panic!("ScanDue was answered {other:?}"),
        }
    }
}

fn segments(dir: &Path) -> (usize, u64) {
    let names =
        std::fs::read_dir(dir.join("shard-0000")).expect("the folder").map(|entry| entry.expect("an entry"));
    let sizes: Vec<u64> = names
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("segment-"))
        .map(|entry| entry.metadata().expect("its length").len())
        .collect();
    (sizes.len(), sizes.iter().sum())
}

/// The story: tasks up to 400 days ahead. Time goes on, what falls due is delivered in order and once, some of it only after a
/// restart, and in the end no segment is left.
#[test]
fn a_year_of_tasks_comes_out_in_order_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut life = Life::begin(dir.path(), START_MS);
    let mut expected = Vec::new();
    let mut state = 1_u64;
    for id in 1..=2_000_u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // As many within two days as in all the rest of the year.
        let span = if id % 2 == 0 { 2 * DAY_MS } else { 400 * DAY_MS };
        let task = life.put(id, &format!("k{id}"), START_MS + 1 + (state >> 20) as i64 % span);
        expected.push((DueKey::of(&task), id));
    }
    expected.sort_unstable();
    let (most, _) = segments(dir.path());
    assert!(most > 20, "{most} segments");

    let mut delivered = Vec::new();
    let mut restarts = 0;
    while delivered.len() < expected.len() {
        life.wall_ms += if life.wall_ms < START_MS + 3 * DAY_MS { 3_600_000 } else { 5 * DAY_MS };
        assert!(life.wall_ms < START_MS + 500 * DAY_MS, "{} of {} came", delivered.len(), expected.len());
        let mut after = DueKey::START;
        loop {
            let page = life.due(after, 7);
            delivered.extend(page.tasks.iter().map(|task| (DueKey::of(task), task.id)));
            let next = page.next;
            life.finish(&page.tasks);
            match next {
                Some(next) => after = next,
                None => break,
            }
        }
        if delivered.len() > expected.len() * (restarts + 1) / 6 {
            restarts += 1;
            let (wall_ms, store) = life.end();
            drop(store);
            life = Life::begin(dir.path(), wall_ms);
        }
    }
    assert_eq!(delivered, expected);
    // A little more of everything, for the last checkpoints.
    for id in 10_000..10_300 {
        let task = life.put(id, &format!("k{id}"), life.wall_ms);
        life.finish(&[task]);
    }
    life.rest(200);
    assert_eq!(segments(dir.path()), (0, 0));
}

/// The story: most of what is far ahead is cancelled. Its space comes back long before its time would.
#[test]
fn what_is_cancelled_far_ahead_gives_its_space_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut life = Life::begin(dir.path(), START_MS);
    let tasks: Vec<Arc<Task>> =
        (1..=1_500).map(|id| life.put(id, &format!("k{id}"), START_MS + 100 * DAY_MS + id as i64)).collect();
    let (_, before) = segments(dir.path());
    let (gone, stay): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|task| task.id % 10 != 0);
    for tasks in gone.chunks(5) {
        life.finish(tasks);
    }
    for id in 10_000..10_400 {
        let task = life.put(id, &format!("k{id}"), life.wall_ms);
        life.finish(&[task]);
    }
    life.rest(200);
    let (_, after) = segments(dir.path());
    assert!(after * 4 < before, "{before} bytes of segments became {after}");
    let (wall_ms, store) = life.end();
    drop(store);
    let mut life = Life::begin(dir.path(), wall_ms);
    let wanted: Vec<Wanted> =
        stay.iter().map(|task| Wanted::Key(task.queue.clone(), task.key.clone())).collect();
    let Reply::Found(found) = life.owner.ask(Request::GetMany(wanted)) else { panic!("a look-up finds") };
    assert_eq!(found, stay.into_iter().map(Found::Live).collect::<Vec<_>>());
}

/// The story: month after month comes near and is split into days; nothing is written more often than that.
#[test]
fn a_month_is_split_when_it_comes_near() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut life = Life::begin(dir.path(), START_MS);
    for id in 1..=400 {
        life.put(id, &format!("k{id}"), START_MS + 70 * DAY_MS + id as i64 * DAY_MS / 10);
    }
    life.rest(100);
    let (months, _) = segments(dir.path());
    assert!(months <= 4, "{months} segments for forty days far ahead");
    life.wall_ms += 69 * DAY_MS;
    for id in 10_000..10_300 {
        let task = life.put(id, &format!("k{id}"), life.wall_ms);
        life.finish(&[task]);
    }
    life.rest(200);
    let (days, _) = segments(dir.path());
    assert!(days > 20, "{days} segments for forty days that have come near");
}

/// Keys that look like ids, of others and of their own.
#[test]
fn a_key_that_is_a_number_finds_the_task_that_has_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut life = Life::begin(dir.path(), START_MS);
    let far = START_MS + 100 * DAY_MS;
    // Task 1 has the number of task 2 for a key; task 2 has a name; task 3 has its own number.
    let tasks = [life.put(1, "2", far), life.put(2, "two", far), life.put(3, "3", far)];
    for id in 10_000..10_300 {
        let task = life.put(id, &format!("k{id}"), life.wall_ms);
        life.finish(&[task]);
    }
    life.rest(100);
    for round in 0..2 {
        let wanted = tasks.iter().map(|task| Wanted::Key(task.queue.clone(), task.key.clone())).collect();
        let Reply::Found(found) = life.owner.ask(Request::GetMany(wanted)) else { panic!("a look-up finds") };
        assert_eq!(found, tasks.iter().cloned().map(Found::Live).collect::<Vec<_>>(), "round {round}");
        let absent = tickwheel_engine::Key::new("1").expect("a key");
        let wanted = vec![Wanted::Key(tasks[0].queue.clone(), absent)];
        let Reply::Found(found) = life.owner.ask(Request::GetMany(wanted)) else { panic!("a look-up finds") };
        assert_eq!(found, [Found::Absent], "nobody has the key 1");
        let (wall_ms, store) = life.end();
        drop(store);
        life = Life::begin(dir.path(), wall_ms);
    }
}

/// The story: a copy is taken while commits and checkpoints go on. It opens with all that was there when it began, and nothing else.
#[test]
fn what_is_held_opens_as_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut life = Life::begin(dir.path(), START_MS);
    for id in 1..=700 {
        let task = life.put(id, &format!("k{id}"), START_MS + id as i64 * DAY_MS / 50);
        if id % 3 == 0 {
            life.finish(&[task]);
        }
    }
    let (wall_ms, mut store) = life.end();
    let expected = conformance::contents(&mut store, 10).expect("it reads");
    let pinned = store.pin();
    let mut life = Life::of(store, wall_ms);
    for id in 1_000..1_700 {
        let task = life.put(id, &format!("k{id}"), START_MS);
        life.finish(&[task]);
    }
    life.rest(50);
    let copy = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(copy.path().join("shard-0000")).expect("made");
    for file in &pinned.files {
        let mut bytes = std::fs::read(dir.path().join(&*file.name)).expect("a pinned file is there");
        bytes.truncate(file.bytes.map_or(usize::MAX, |bytes| bytes as usize));
        bytes.resize(bytes.len().max(file.len as usize), 0);
        let bytes = file.content.clone().unwrap_or(bytes);
        std::fs::write(copy.path().join(&*file.name), bytes).expect("written");
    }
    let mut store = open(copy.path());
    assert_eq!(conformance::contents(&mut store, 10), Ok(expected));
    let files = || std::fs::read_dir(dir.path().join("shard-0000")).expect("the folder").count();
    let (wall_ms, mut store) = life.end();
    let while_pinned = files();
    store.unpin();
    let mut life = Life::of(store, wall_ms);
    life.rest(100);
    assert!(files() < while_pinned, "{} files, and {while_pinned} while they were pinned", files());
}

/// The story: a few hundred tasks of a megabyte fall due together. A page of them is not a gigabyte.
#[test]
fn a_page_ends_where_its_payloads_get_many() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = options();
    options.log_file_bytes = 16 << 20;
    options.background_step_bytes = 1 << 20;
    let disk = FsDisk::new(dir.path()).expect("a directory");
    let mut life = Life::of(DiskStore::open(disk, InlineIo::new(), options).expect("it opens"), START_MS);
    for id in 1..=12 {
        life.put_bytes(id, &format!("k{id}"), START_MS, 1 << 20);
    }
    let mut after = DueKey::START;
    let mut found = Vec::new();
    loop {
        let page = life.due(after, 1_000);
        assert!(page.tasks.len() <= 4, "{} megabytes in a page", page.tasks.len());
        found.extend(page.tasks.iter().map(|task| task.id));
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(found, (1..=12).collect::<Vec<_>>());
}

/// The story: hundreds of checkpoints, each of which leaves a run over the same days, and what was due first has been cancelled. A
/// list of another queue, which has little, gets there in pages of bounded work, each of which comes further.
#[test]
fn a_list_comes_further_with_each_page_however_many_runs_there_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = options();
    options.checkpoint_after_bytes = 2_000;
    options.block_bytes = 4_096;
    options.ack_level = AckLevel::Memory;
    let disk = FsDisk::new(dir.path()).expect("a directory");
    let mut life = Life::of(DiskStore::open(disk, InlineIo::new(), options).expect("it opens"), START_MS);
    let month = START_MS + 100 * DAY_MS;
    let (mut cancelled, mut expected) = (Vec::new(), Vec::new());
    for id in 1..=6_000_u64 {
        life.seq += 1;
        let day = (id * 7_919 % 10) as i64;
        let queue = if id % 1_009 == 0 { "other" } else { "q" };
        let due_ms = month + day * DAY_MS + (id * 71_993 % 86_400_000) as i64;
        let task = Arc::new(sample_task(id, life.seq, queue, &format!("k{id}"), due_ms));
        match queue {
            "other" => expected.push((DueKey::of(&task), id)),
            _ if day < 4 => cancelled.push(Arc::clone(&task)),
            _ => {}
        }
        life.commit(vec![TaskEffect::Stored { task, body_known: false }]);
        life.rest(8);
    }
    expected.sort_unstable();
    life.finish(&cancelled);

    let queue = QueueName::new("other").expect("a good name");
    let filter = Filter { queue, due_from: Timestamp::EPOCH, due_to: Timestamp::MAX, dead: false };
    let (mut after, mut pages, mut found) = (DueKey::START, 0, Vec::new());
    loop {
        let Reply::Page(page) =
            life.owner.ask(Request::ScanFilter { filter: filter.clone(), after, max: 10 })
        else {
            panic!("no page")
        };
        pages += 1;
        found.extend(page.tasks.iter().map(|task| (DueKey::of(task), task.id)));
        let Some(next) = page.next else { break };
        assert!(next > after, "page {pages} came no further than {after:?}");
        after = next;
    }
    assert_eq!(found, expected);
    assert!(pages > 1, "all in {pages} pages");
}

/// The story: a forecast came while memory was taking a checkpoint of a hundred thousand tasks over, eight thousand at a time. Those that it had not
/// come to stood in memory and in the new run, and were counted twice.
#[test]
fn a_histogram_counts_each_task_once_also_while_a_checkpoint_is_taken_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = StoreOptions::new([7; 16]);
    options.log_file_bytes = 1 << 20;
    options.checkpoint_after_bytes = 4 << 20;
    options.ack_level = AckLevel::Memory;
    let disk = FsDisk::new(dir.path()).expect("a directory");
    let mut life = Life::of(DiskStore::open(disk, InlineIo::new(), options).expect("it opens"), START_MS);
    let (first, hour) = (START_MS + 10 * DAY_MS, 3_600_000_i64);
    let histogram = |queue: Option<&str>| tickwheel_engine::DueHistogram {
        queue: queue.map(|name| QueueName::new(name).expect("a good name")),
        after: Timestamp::from_ms(START_MS).expect("after 1970"),
        from: Timestamp::from_ms(first).expect("after 1970"),
        grid: tickwheel_engine::Grid::Even { width_ms: hour as u64, buckets: 24 },
    };
    let (mut all, mut of_p) = (vec![0; 24], vec![0; 24]);
    for round in 0..100_u64 {
        let effects = (0..1_000).map(|n| {
            let id = round * 1_000 + n + 1;
            life.seq += 1;
            let at = (id * 7_919 % 24) as usize;
            let queue = if id % 10 == 0 { "p" } else { "q" };
            all[at] += 1;
            of_p[at] += u64::from(id % 10 == 0);
            let due_ms = first + at as i64 * hour + (id * 31 % 3_600_000) as i64;
            let task = sample_task(id, life.seq, queue, &id.to_string(), due_ms);
            TaskEffect::Stored { task: Arc::new(task), body_known: false }
        });
        let effects = effects.collect();
        life.commit(effects);
        // Each call is a step of the background, too.
        for _ in 0..3 {
            assert_eq!(life.owner.histogram(histogram(None)), Ok(all.clone()), "round {round}");
        }
        if round % 10 == 9 {
            assert_eq!(life.owner.histogram(histogram(Some("p"))), Ok(of_p.clone()), "round {round}");
        }
    }
    assert!(segments(dir.path()).0 > 0, "there were checkpoints");
}
