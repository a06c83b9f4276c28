//! [`SimNode`]: one process that shares the database, on a machine with a clock of its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tickwheel_engine::{
    Answer as ProductAnswer, CallId as ProductCall, EngineConfig, Input, Now, ShardId, Timestamp, Validity,
};
use tickwheel_postgres::database::NodeEntry;
use tickwheel_postgres::{CommitWorker, Event, Heartbeats, Node, Polls, PostgresStore, Reader, Rest};
use tickwheel_queue::wall::{Reading, WallGuard};
use tickwheel_queue::{InboxCalls, Shard};

use super::plan::Plan;
use crate::database::SimDatabase;
use crate::fibers::{self, Fiber, Yielded};

/// The time between two requests for a shard that the node does not own (ns).
pub(super) const ACQUIRE_AGAIN_NS: u64 = 500_000_000;
/// The time between two turns of a shard that takes no inputs, and the longest time between two turns (ns).
const TURN_WITHOUT_INPUTS_NS: u64 = 100_000_000;
const TURN_LATEST_NS: u64 = 1_000_000_000;
/// The rows of the inbox are calls with numbers from here on.
const ROW_CALLS_FROM: u64 = 1 << 40;
/// The time before a thread looks again for an incarnation, or for a database that answers (ns).
const AGAIN_NS: u64 = 100_000_000;

/// The clock of a machine: it begins at another instant and has another pace than those of the others.
#[derive(Clone, Debug)]
pub(super) struct Boot {
    now_ns: Arc<AtomicU64>,
    begin_ns: u64,
    /// By how many parts in a million the clock is fast.
    fast_ppm: i64,
}

impl Boot {
    pub(super) fn new(begin_ns: u64, fast_ppm: i64) -> Self {
        Self { now_ns: Arc::new(AtomicU64::new(begin_ns)), begin_ns, fast_ppm }
    }

    pub(super) fn set(&self, now_ns: u64) {
        let fast_ns = i128::from(now_ns) * i128::from(self.fast_ppm) / 1_000_000;
        let fast_ns = i64::try_from(fast_ns).expect("runs are short");
        let now_ns = (self.begin_ns + now_ns).saturating_add_signed(fast_ns);
        self.now_ns.fetch_max(now_ns, Ordering::Relaxed);
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
}

/// A running process.
pub(super) struct SimNode {
    pub(super) place: usize,
    pub(super) boot: Boot,
    pub(super) node: Arc<Node>,
    tasks: Vec<Task>,
    guard: Option<WallGuard>,
    pub(super) seats: Vec<Seat>,
    /// Until when the process is stopped by a signal (simulated, ns).
    pub(super) stopped_until_ns: Option<u64>,
    /// Whether the process ends once its shards are released.
    pub(super) is_leaving: bool,
}

/// A thread of the process.
struct Task {
    fiber: Fiber,
    /// When the thread goes on; `None`: when there is work.
    wakes_ns: Option<u64>,
    waits: bool,
}

/// The shard of a node, whether the node owns it or not.
pub(super) struct Seat {
    pub(super) shard: Shard<PostgresStore>,
    woken: Arc<AtomicBool>,
    pub(super) turn_ns: u64,
    pub(super) asked_ns: u64,
    pub(super) inputs: Vec<Input>,
    pub(super) answers: Vec<(ProductCall, ProductAnswer)>,
    /// The epoch under which the engine runs; 0: none runs.
    pub(super) epoch: u32,
    pub(super) is_told: bool,
    pub(super) inbox: InboxCalls,
}

impl SimNode {
    /// Starts a process. `run`: the number of the process, so that its incarnations have names of their own.
    pub(super) fn start(database: &SimDatabase, place: usize, boot: Boot, run: u64, plan: &Plan) -> Self {
        let database = Arc::new(database.at(place));
        let clock = boot.clone();
        let node = Node::new(plan.lease_ms, plan.commit_workers, 1, Box::new(move || clock.now_ns()));
        let node = Arc::new(node.with_known_keys(plan.known_keys));
        let entry = NodeEntry {
            incarnation: String::new(),
            name: format!("n{place}"),
            address: format!("http://n{place}"),
            version: "1".to_owned(),
        };
        let beats = Heartbeats::new(Arc::clone(&database), Arc::clone(&node), entry);
        let mut tasks = vec![Fiber::new(move || run_beats(beats, place, run))];
        for index in 0..plan.commit_workers {
            let (database, node) = (Arc::clone(&database), Arc::clone(&node));
            tasks.push(Fiber::new(move || run_commit_worker(index, database, &node)));
        }
        let polls = Polls::new(Arc::clone(&database), Arc::clone(&node));
        let reader = Reader::new(database, Arc::clone(&node), 0);
        let of = Arc::clone(&node);
        tasks.push(Fiber::new(move || run_reader(reader, &of)));
        tasks.push(Fiber::new(move || run_polls(polls)));
        let tasks = tasks.into_iter().map(|fiber| Task { fiber, wakes_ns: Some(0), waits: false }).collect();
        Self {
            place,
            boot,
            node,
            tasks,
            guard: None,
            seats: Vec::new(),
            stopped_until_ns: None,
            is_leaving: false,
        }
    }

    pub(super) fn runs(&self) -> bool {
        self.stopped_until_ns.is_none()
    }

    /// Whether the process may answer for its shards.
    pub(super) fn is_valid(&self) -> bool {
        let incarnation = self.node.incarnation();
        incarnation.is_some_and(|incarnation| self.node.validity(&incarnation) == Validity::Valid)
    }

    /// Returns when the process next does something by itself (simulated, ns).
    pub(super) fn next_ns(&self) -> u64 {
        if let Some(until_ns) = self.stopped_until_ns {
            return until_ns;
        }
        let tasks = self.tasks.iter().filter_map(|task| task.wakes_ns);
        let seats = self.seats.iter().map(|seat| if seat.is_woken() { 0 } else { seat.turn_ns });
        tasks.chain(seats).min().unwrap_or(u64::MAX)
    }

    /// Lets the threads run that are due.
    ///
    /// # Errors
    /// The words of a panic.
    pub(super) fn run_tasks(&mut self, now_ns: u64) -> Result<(), String> {
        for task in &mut self.tasks {
            while task.wakes_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                (task.wakes_ns, task.waits) = match task.fiber.resume() {
                    Yielded::Sleeps(ns) => (Some(now_ns + ns), false),
                    Yielded::Waits(limit_ns) => (limit_ns.map(|ns| now_ns + ns), true),
                    Yielded::Ended(ended) => {
                        return Err(ended.err().unwrap_or("a thread has ended".to_owned()));
                    }
                };
            }
        }
        Ok(())
    }

    /// Wakes the threads that wait for work, and have some now.
    pub(super) fn wake_tasks(&mut self, now_ns: u64) {
        // The first thread beats, then come the commit workers and the reader. The last one never waits for work.
        let commit_workers = self.node.commit_workers();
        for (index, task) in self.tasks.iter_mut().enumerate().skip(1).filter(|(_, task)| task.waits) {
            let has_work = if index <= commit_workers {
                !self.node.commit_worker(index - 1).is_empty()
            } else {
                !self.node.reads(0).is_empty()
            };
            if has_work {
                task.wakes_ns = Some(now_ns);
            }
        }
    }

    /// Makes the stores once the clock of the database is known.
    pub(super) fn take_seats(&mut self, now_ns: u64, plan: &Plan) {
        if !self.seats.is_empty() {
            return;
        }
        let Some(now) = self.now() else { return };
        for number in 0..plan.shards {
            let id = ShardId::new(number, plan.shards).expect("few shards");
            let woken = Arc::new(AtomicBool::new(true));
            let wake = Arc::clone(&woken);
            let news = self.node.register(number, Box::new(move || wake.store(true, Ordering::Relaxed)));
            let store = PostgresStore::new(id, Arc::clone(&self.node), news)
                .with_acquired_page(plan.page)
                .with_rollup_batches(plan.rollup_batches);
            let config = EngineConfig {
                horizon_ms: plan.horizon_ms,
                near_bytes_max: plan.near_bytes,
                scan_max: plan.scan_max,
                ..EngineConfig::default()
            };
            self.seats.push(Seat {
                shard: Shard::new(id, store, config, now),
                woken,
                turn_ns: now_ns,
                asked_ns: now_ns,
                inputs: Vec::new(),
                answers: Vec::new(),
                epoch: 0,
                is_told: false,
                inbox: InboxCalls::unheard(Arc::new(AtomicU64::new(ROW_CALLS_FROM))),
            });
        }
    }

    /// Reads the clocks as a shard thread does; `None`: the clock of the database is not known yet.
    pub(super) fn now(&mut self) -> Option<Now> {
        let boot_ns = self.boot.now_ns();
        let wall = self.node.clock().span(boot_ns)?;
        let reading = Reading { mono_ns: boot_ns, boot_ns, wall_ns: wall.from_ns, width_ns: wall.width_ns() };
        let guard = self.guard.get_or_insert_with(|| WallGuard::new(reading));
        let believed_ns = guard.observe(reading);
        let wall_ms = i64::try_from(believed_ns.div_euclid(1_000_000)).expect("runs are short");
        Some(Now {
            mono_ns: boot_ns,
            wall: Timestamp::from_ms(wall_ms).expect("after 1970"),
            wall_sub_ns: u32::try_from(believed_ns.rem_euclid(1_000_000)).expect("less than a millisecond"),
            wall_width_ns: guard.width_ns(),
            held_ms: guard.held_ms(),
        })
    }
}

impl Seat {
    fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Relaxed) || !self.inputs.is_empty()
    }

    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.is_woken() || self.turn_ns <= now_ns
    }

    /// Whether the shard takes calls.
    pub(super) fn takes_calls(&self) -> bool {
        self.shard.is_serving() && !self.shard.is_in_doubt() && !self.is_told
    }

    /// Gives the shard a turn. Its answers wait in `answers`.
    pub(super) fn turn(&mut self, now: Now) {
        self.woken.store(false, Ordering::Relaxed);
        loop {
            self.shard.turn(now, &mut self.inputs);
            // The engine may have begun or ended in the turn.
            self.epoch = self.shard.engine().map_or(0, |engine| engine.ownership().epoch.0);
            let again = self.shard.take_answers(&mut self.answers);
            for (call, answer) in self.answers.extract_if(.., |(call, _)| call.0 >= ROW_CALLS_FROM) {
                self.inbox.answered(&mut self.shard, call, answer);
            }
            if !again && !self.take_rows() {
                return;
            }
        }
    }

    /// Makes calls of the rows in the inbox. Returns whether there are any.
    fn take_rows(&mut self) -> bool {
        self.shard.is_serving() && !self.is_told && self.inbox.begin(&mut self.shard, &mut self.inputs)
    }

    /// Plans the next turn.
    pub(super) fn plan(&mut self, now_ns: u64, now: Now) {
        if !self.shard.is_serving() {
            self.turn_ns = now_ns + TURN_WITHOUT_INPUTS_NS;
            return;
        }
        let wake = self.shard.next_wake();
        let by_wall =
            wake.wall.map(|at| (at.ms_since(now.wall) * 1_000_000).saturating_sub(now.wall_sub_ns.into()));
        let by_mono = wake.mono_ms.map(|at| (at * 1_000_000).saturating_sub(now.mono_ns));
        let wait_ns = [by_wall, by_mono].into_iter().flatten().min().unwrap_or(TURN_LATEST_NS);
        // A clock that is a little slow would else ask again and again.
        self.turn_ns = now_ns + wait_ns.clamp(100_000, TURN_LATEST_NS);
    }
}

fn run_beats(mut beats: Heartbeats<SimDatabase>, place: usize, run: u64) {
    let mut named = 0;
    loop {
        let wait = beats.turn(|| {
            named += 1;
            format!("n{place}.{run}.{named}")
        });
        fibers::sleep(ns_of(wait.unwrap_or(Duration::from_secs(1))));
    }
}

fn run_commit_worker(index: usize, database: Arc<SimDatabase>, node: &Node) {
    let mut commit_worker = CommitWorker::new(database);
    let mut outcomes = Vec::new();
    loop {
        node.commit_worker(index)
            .take_all()
            .into_iter()
            .for_each(|(shard, job)| commit_worker.push(shard, job));
        let Some(incarnation) = node.incarnation() else {
            fibers::wait(Some(AGAIN_NS));
            continue;
        };
        let rest = commit_worker.turn(&incarnation, &mut outcomes);
        for (shard, outcome) in outcomes.drain(..) {
            node.tell(shard, Event::Job(outcome));
        }
        match rest {
            Rest::Idle => fibers::wait(None),
            Rest::Work => continue,
            Rest::Again(after) => fibers::wait(Some(ns_of(after))),
        };
    }
}

fn run_polls(mut polls: Polls<SimDatabase>) {
    loop {
        fibers::sleep(ns_of(polls.turn()));
    }
}

fn run_reader(mut reader: Reader<SimDatabase>, node: &Node) {
    let mut jobs = VecDeque::new();
    loop {
        jobs.extend(node.reads(0).take_all());
        let Some(job) = jobs.pop_front() else {
            fibers::wait(None);
            continue;
        };
        let mut unanswered = reader.answer(job);
        while let Some((job, _)) = unanswered {
            fibers::sleep(AGAIN_NS);
            unanswered = reader.answer(job);
        }
    }
}

fn ns_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
