//! [`Engine`]: the task machine of one shard.

mod bucket;
mod by_id;
mod by_key;
mod commit;
mod dead;
mod entries;
mod filling;
mod flow;
mod forecast;
mod gate;
mod heads;
mod import;
mod jobs;
mod leases;
mod line;
mod list;
mod lookup;
mod near;
mod occurrence;
mod owner;
mod queue;
mod queues;
mod room;
mod runs;
mod schedules;
mod stop;
mod stub;
mod time;
mod window;
mod worker;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tickwheel_core::{TimerQueue, Wheel};

use self::commit::InFlight;
use self::dead::Expiry;
use self::entries::{At, Entries, Slot};
use self::filling::Filling;
use self::flow::{Opening, Pauses};
use self::forecast::Forecasts;
use self::gate::Gate;
use self::import::{IDS_ASIDE, Importing};
use self::jobs::Jobs;
use self::leases::Running;
use self::list::Lists;
use self::lookup::Lookups;
use self::near::Near;
use self::queues::Queues;
pub use self::room::RoomPace;
use self::room::Shortage;
use self::schedules::Schedules;
use self::window::Window;
use crate::acquired::{Acquired, AcquiredPage, Population};
use crate::bounds::Bounds;
use crate::calls::{Answer, Command, GetQueue, GetStats, ListQueues, Stats, Unavailable};
use crate::figures::Event;
use crate::input::{CallId, Effect, Input, NextWake};
use crate::name::{Key, QueueName};
use crate::seam::{Ownership, Request, RequestId, TaskEffect};
use crate::settings::{Rule, RuleEffect, RuleName};
use crate::state::EngineState;
use crate::task::{Ended, LeaseNo, Outcome, Task};
use crate::time::{Now, Seq, Timestamp};

/// What may be chosen about a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineConfig {
    /// Tasks due so far ahead are kept in memory, milliseconds; later ones are loaded in time. At least 2.
    pub horizon_ms: u64,
    /// Tasks loaded with one scan.
    pub scan_max: usize,
    /// A task may be due so far ahead, milliseconds.
    pub farthest_ms: u64,
    /// Dead tasks are kept for so long, milliseconds.
    pub dead_ms: u64,
    /// So long it is remembered that a task is done, milliseconds, unless its queue's settings say otherwise.
    pub history_ms: u64,
    /// Near memory may take about so many bytes, at least 512. Beyond them the horizon shrinks, and of ready tasks behind the
    /// head of their line only a stub of 64 bytes stays. Nothing is late or refused for that. Beside it there may be a stub for
    /// each task that is ready or due within the next two seconds, what waits for its commit, and what workers have.
    pub near_bytes_max: u64,
    /// How much is done at once. Only the simulator and tests change it.
    #[doc(hidden)]
    pub bounds: Bounds,
}

impl Default for EngineConfig {
    /// An hour in memory, 1,024 tasks a scan, 100 years ahead, 30 days for the dead, 24 hours for the done, 256 MiB.
    fn default() -> Self {
        Self {
            horizon_ms: 3_600_000,
            scan_max: 1_024,
            farthest_ms: 100 * 365 * 86_400_000 + 25 * 86_400_000,
            dead_ms: 30 * 86_400_000,
            history_ms: 86_400_000,
            near_bytes_max: 256 << 20,
            bounds: Bounds::default(),
        }
    }
}

/// The task machine of one shard: single-threaded, without clock, I/O or randomness, so that the same inputs always give
/// the same effects.
///
/// # Families
/// - *Tell*: [`step`](Self::step) takes one [`Input`] and appends [`Effect`]s.
/// - *End of a turn*: [`flush`](Self::flush), after all inputs that are there: what they need of the store goes out, as
///   one look-up and one commit for all. That is what makes group commit.
/// - *Ask*: [`next_wake`](Self::next_wake), [`is_loaded`](Self::is_loaded), [`is_idle`](Self::is_idle).
///
/// # Invariants
/// - An answer leaves only when all that had been applied when it was made is durable.
/// - At most one commit is in flight; effects apply in memory at once and are durable in the order of their seq.
/// - A key has at most one live task: a command on a key that is not in memory waits for a look-up, and later commands on
///   that key wait behind it.
/// - A task is ready only if the believed wall clock has reached its `due_at`, and stays ready until a lease, its owner or
///   a restart moves it.
/// - An entry is in exactly the index that its `At` names: the wheel, the rewound set, its queue's ready index, the lease
///   wheel, or none. A task in memory is an entry or a stub, never both.
/// - A stub says what the store's record says: a change takes the task whole, and a durable entry becomes a stub only when
///   no read under way can contradict it.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    ownership: Ownership,
    secret: [u8; 16],
    entries: Entries,
    queues: Queues,
    /// Queues where something became ready while a call waited.
    to_serve: BTreeSet<QueueName>,
    /// Queues where calls wait that a pause or a rate holds up, and when it does so no longer.
    opening: Opening,
    pauses: Pauses,
    /// Queues where the head of the line has to be fetched.
    hungry: BTreeSet<QueueName>,
    near: Near,
    /// Near tasks by `due_at`, milliseconds.
    wheel: Wheel<Slot>,
    /// Tasks due after now that the wheel has passed, by `due_at`.
    rewound: BTreeSet<(Timestamp, Slot)>,
    /// Leases by their end, monotonic milliseconds.
    lease_wheel: Wheel<Slot>,
    /// Tasks in memory that expire, whole or as stubs, and when each is due; some may have left memory. The due time is exact for a
    /// stub only: a task that is held whole may have been moved.
    expiries: BTreeMap<Expiry, Timestamp>,
    /// The place in the order of burials that was given last.
    last_burial: Timestamp,
    /// Stubs whose records are to be fetched: expired, in this queue, or to be forgotten.
    overdue: VecDeque<(u64, Option<QueueName>)>,
    /// What is noted belongs into one batch.
    together: bool,
    /// Running leases, by number.
    leases: BTreeMap<LeaseNo, Running>,
    next_lease: LeaseNo,
    next_id: u64,
    /// Ids below this one are those of another store, and none of them is given out; 0: all are this shard's own.
    ids_aside: u64,
    /// Imports that wait for look-ups.
    importing: BTreeMap<CallId, Importing>,
    state: EngineState,
    /// The last change applied in memory.
    applied: Seq,
    /// The latest instant that was written down before this life began, with its last commit. What was due by then was ready then.
    ready_before: Timestamp,
    /// The last change known to be durable.
    durable: Seq,
    filling: Filling,
    in_flight: Option<InFlight>,
    room: u64,
    /// A put was refused for want of room: the next turn asks how much there is now.
    ask_room: bool,
    shortage: Shortage,
    gate: Gate,
    schedules: Schedules,
    lookups: Lookups,
    lists: Lists,
    forecasts: Forecasts,
    window: Window,
    /// Durable entries that nothing needs but a read under way, with the last request made before.
    lingering: VecDeque<(RequestId, Slot)>,
    next_request: u64,
    /// Calls for counts that wait until it is known what is due.
    counting: Vec<(CallId, Command)>,
    /// Why nothing is changed any more.
    failed: Option<Arc<str>>,
    /// The same, while a commit is still in flight: its reply comes first.
    failing: Option<Arc<str>>,
    stopping: bool,
    stopped: bool,
    stats: Stats,
    /// Queues that have a record of their own.
    records: usize,
    /// The last change of a queue's record.
    ruled: Seq,
    /// The last change of a schedule.
    scheduled: Seq,
    jobs: Jobs,
}

impl Engine {
    /// A machine over a shard that has just been acquired. It starts to load the near tasks at its first
    /// [`flush`](Self::flush).
    #[must_use]
    pub fn new(config: EngineConfig, acquired: Acquired, now: Now) -> Self {
        assert!(config.horizon_ms >= 2, "a horizon of {} ms leaves no time to load", config.horizon_ms);
        assert!(config.near_bytes_max >= 512, "{} bytes have no room for tasks", config.near_bytes_max);
        let ownership = acquired.ownership;
        let mut engine = Self {
            config,
            ownership,
            secret: acquired.secret,
            entries: Entries::new(acquired.secret),
            queues: Queues::default(),
            to_serve: BTreeSet::new(),
            opening: Opening::default(),
            pauses: Pauses::default(),
            hungry: BTreeSet::new(),
            near: Near::default(),
            wheel: Wheel::new(now.wall.as_tick()),
            rewound: BTreeSet::new(),
            lease_wheel: Wheel::new(now.mono_tick()),
            expiries: BTreeMap::new(),
            last_burial: Timestamp::EPOCH,
            overdue: VecDeque::new(),
            together: false,
            leases: BTreeMap::new(),
            next_lease: LeaseNo::first_of(ownership.epoch).next(),
            next_id: ownership.shard.first_id(acquired.state.ids_reserved.max(1)),
            ids_aside: Some(acquired.state.ids_reserved).filter(|ids| ids % IDS_ASIDE == 0).unwrap_or(0),
            importing: BTreeMap::new(),
            state: acquired.state,
            applied: ownership.last_seq,
            ready_before: acquired.last_wall,
            durable: ownership.last_seq,
            filling: Filling::default(),
            in_flight: None,
            room: acquired.room,
            ask_room: false,
            shortage: Shortage::default(),
            gate: Gate::default(),
            schedules: Schedules::default(),
            lookups: Lookups::default(),
            lists: Lists::default(),
            forecasts: Forecasts::default(),
            window: Window::default(),
            lingering: VecDeque::new(),
            next_request: 0,
            counting: Vec::new(),
            failed: None,
            failing: None,
            stopping: false,
            stopped: false,
            stats: Stats::default(),
            records: 0,
            ruled: Seq::ZERO,
            scheduled: Seq::ZERO,
            jobs: Jobs::default(),
        };
        engine.restore(now, acquired.page);
        engine
    }

    /// Takes in a page of what the shard was left with. The first one comes with [`new`](Self::new). The engine can work once it has them
    /// all.
    pub fn restore(&mut self, now: Now, page: AcquiredPage) {
        for (name, Population { live, dead }) in page.queues {
            let queue = self.queues.open(&name);
            (queue.live, queue.dead) = (live, dead);
            queue.begin_listing();
        }
        for (name, rule) in page.rules {
            match (name, &*rule) {
                (RuleName::Queue(name), Rule::Queue(record)) => {
                    self.records += 1;
                    self.queues.open(&name).restore(record, now);
                    self.pauses.change(&name, None, record.paused_until);
                }
                (RuleName::Schedule(queue, name), Rule::Schedule(record)) => {
                    self.schedules.restore((queue, name), record);
                }
                (RuleName::Job(id), Rule::Job(value)) => self.jobs.restore(id, value),
                (name, rule) => unreachable!("{name:?} is the name of another rule than {rule:?}"),
            }
        }
        // A lease goes on wherever its task stands: the wall clock may show a time at which the task is not even due.
        for task in page.leased {
            if self.goes_on(&task) {
                self.load(now, task);
            }
        }
    }

    /// Takes one input at one moment. What fell due by then fires first.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        self.pass_time(now);
        match input {
            Input::Call { call, command } => self.call(now, call, command),
            Input::EndWait { call } => self.end_wait(now, call),
            Input::Undelivered { tokens } => self.take_back(now, &tokens),
            Input::Use { queue } => self.queues.begin_use(&queue),
            Input::Leave { queue } => self.queues.end_use(&queue),
            Input::Store { request, reply } => self.store_replied(now, request, reply, out),
            Input::Instant { ask, found } => self.instant_found(now, ask, found),
            Input::StoreFailed { why } => {
                if self.in_flight.is_none() {
                    self.fail(&why);
                }
            }
            Input::Wake => {}
            Input::LookForRoom => self.ask_room |= self.room_pace().is_some(),
            Input::NoteTime => self.filling.note_time(),
            Input::Stop => self.stop(now),
        }
        self.schedules_go_on(now);
        self.ask_instants(out);
        self.serve_waiters(now);
        self.count(now);
        self.gate.release(self.durable, out);
    }

    /// Ends a turn: asks the store for what the inputs since the last turn need, and for their commit unless one is in
    /// flight.
    pub fn flush(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.shed(now);
        self.load_ahead(now, out);
        self.look_up(out);
        self.scan_lists(now, out);
        self.ask_forecasts(now, out);
        self.commit(now, out);
        self.gate.release(self.durable, out);
        if self.stopping && !self.stopped && self.is_idle() {
            self.stopped = true;
            out.push(Effect::Stopped);
        }
    }

    /// When time alone will next change something.
    #[must_use]
    pub fn next_wake(&self) -> NextWake {
        let due = self.wheel.next_wake().map(|tick| {
            i64::try_from(tick).ok().and_then(Timestamp::from_ms).expect("the wheel holds timestamps only")
        });
        let rewound = self.rewound.first().map(|&(due_at, _)| due_at);
        // Nobody is given up any more once that cannot be written down.
        let writes = self.refuses_changes().is_none();
        let expiry = self.expiries.first_key_value().map(|(&(at, ..), _)| at).filter(|_| writes);
        let resumed = self.pauses.next().filter(|_| writes);
        let wall =
            [due, rewound, expiry, resumed, self.next_occurrence(), self.near.next_due(), self.load_at()];
        NextWake {
            wall: wall.into_iter().flatten().min(),
            mono_ms: [self.lease_wheel.next_wake(), self.opening.next_ms()].into_iter().flatten().min(),
        }
    }

    /// Whether all tasks inside the horizon, as far as the budget reaches, are in memory. Until then, after a start, not all
    /// that is due is ready.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.window.is_loaded()
    }

    /// Whether nothing is under way: every call is answered but the waiting ones, everything applied is durable.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let settled = self.in_flight.is_none() && !self.filling.has_work();
        let asked = self.lookups.is_empty() && self.lists.is_empty() && !self.window.is_scanning();
        (settled || self.failed.is_some())
            && asked
            && self.forecasts.is_empty()
            && self.counting.is_empty()
            && self.gate.is_empty()
            && self.schedules.is_quiet()
            && !self.has_overdue()
    }

    /// The right to commit that this machine holds.
    #[must_use]
    pub fn ownership(&self) -> Ownership {
        self.ownership
    }

    /// Tasks that have become ready because their instant came, since the start.
    #[must_use]
    pub fn fired_total(&self) -> u64 {
        self.stats.fired_total
    }

    /// Why nothing is changed any more; `None` while all is well.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<str>> {
        self.failed.clone()
    }

    /// How many tasks are in memory, whole, for tests and figures. Those that have ended and are not durable yet count, too.
    #[must_use]
    pub fn tasks_in_memory(&self) -> usize {
        self.entries.len()
    }

    /// Of how many tasks more there is a stub in memory.
    #[must_use]
    pub fn stubs_in_memory(&self) -> u64 {
        self.near.stubs()
    }

    fn call(&mut self, now: Now, call: CallId, command: Command) {
        let refusal = match self.refuses_changes() {
            _ if self.stopping => Some(Unavailable::Closed),
            Some(why) if command.needs_store() => Some(Unavailable::ReadOnly { why }),
            _ => None,
        };
        if let Some(why) = refusal {
            return self.answer(call, command.unavailable(why));
        }
        match command {
            Command::Put(put) => self.put_called(now, call, put),
            Command::Get(get) => self.keyed(now, call, lookup::Keyed::Get(get)),
            Command::Patch(patch) => self.keyed(now, call, lookup::Keyed::Patch(patch)),
            Command::Cancel(cancel) => self.keyed(now, call, lookup::Keyed::Cancel(cancel)),
            Command::Redrive(redrive) => self.redrive(now, call, redrive),
            Command::ById(by_id) => self.by_id(now, call, by_id),
            Command::ByKey(by_key) => self.keyed(now, call, lookup::Keyed::ByKey(by_key)),
            Command::Lease(lease) => self.lease(now, call, lease),
            Command::Ack(ack) => self.tokens(now, call, &ack.queue, &ack.tokens, &worker::Verb::Ack),
            Command::Nack(nack) => self.nack(now, call, nack),
            Command::Extend(extend) => {
                let verb = worker::Verb::Extend { lease_ms: extend.lease_ms };
                self.tokens(now, call, &extend.queue, &extend.tokens, &verb);
            }
            Command::List(list) => self.lists.ask(self.applied, call, list.into()),
            Command::AllTasks(list) => self.lists.ask(self.applied, call, list.into()),
            Command::Leases(list) => self.list_leases(call, &list),
            Command::Import(import) => self.import(call, import),
            Command::ImportSchedule(import) => self.import_schedule(now, call, import),
            Command::Forecast(forecast) => self.forecasts.ask(self.applied, call, forecast),
            Command::ChangeQueue(change) => self.change_queue(now, call, change),
            Command::PutSchedule(put) => self.put_schedule(now, call, put),
            Command::DeleteSchedule(delete) => self.delete_schedule(call, delete),
            Command::GetSchedule(get) => self.get_schedule(call, get),
            Command::Schedules(list) => self.list_schedules(call, &list),
            Command::AllSchedules(list) => self.list_all_schedules(call, &list),
            Command::ChangeJob(change) => self.change_job(now, call, change),
            Command::Jobs(_) => self.list_jobs(call),
            Command::Wheel(_) => {
                let view = self.view_of_wheel(now);
                self.answer(call, Answer::Wheel(Ok(Box::new(view))));
            }
            Command::Queues(_) | Command::Queue(_) | Command::Stats(_) => self.counting.push((call, command)),
        }
    }

    /// Answers a call once all that has been applied so far is durable.
    fn answer(&mut self, call: CallId, answer: Answer) {
        // Once the store has failed, no commit comes any more: what is made now rests on durable state alone, see
        // `Engine::fail`.
        let seen = if self.failed.is_some() { self.durable } else { self.applied };
        self.gate.hold(seen, call, answer);
    }

    /// The next change's number.
    fn next_seq(&mut self) -> Seq {
        self.applied = self.applied.next();
        self.applied
    }

    fn request(&mut self, request: Request, out: &mut Vec<Effect>) -> RequestId {
        self.next_request += 1;
        let id = RequestId(self.next_request);
        out.push(Effect::Request { id, request });
        id
    }

    /// Gives a live task a new record, which `change` makes from the old one, and leaves it where it stands.
    fn record(&mut self, slot: Slot, change: impl FnOnce(&mut Task)) {
        let seq = self.next_seq();
        let entry = self.entries.get(slot);
        let mut task = Task::clone(&entry.task);
        change(&mut task);
        task.seq = seq;
        let body_known = entry.body_sealed && Arc::ptr_eq(&entry.task.body, &task.body);
        let task = Arc::new(task);
        self.note(slot, seq, TaskEffect::Stored { task: Arc::clone(&task), body_known });
        self.entries.set_task(slot, task);
        self.entries.get_mut(slot).body_sealed = body_known;
    }

    /// Ends a task, live or dead.
    fn end(&mut self, now: Now, slot: Slot, outcome: Outcome) {
        self.unplace(slot);
        let seq = self.next_seq();
        let task = Arc::clone(&self.entries.get(slot).task);
        // The key of a keyless task is another's: that it ended says nothing of it.
        let key = if task.is_keyed() { task.key.clone() } else { Key::from_id(task.id) };
        let queue = task.queue.clone();
        self.unwatch_expiry(&task);
        let of = self.queues.open(&queue);
        *(if task.dead().is_some() { &mut of.dead } else { &mut of.live }) -= 1;
        of.totals.ended += u64::from(outcome != Outcome::Forgotten);
        match outcome {
            Outcome::Done(_) => self.stats.count(&mut of.figures, Event::Acked),
            Outcome::Cancelled | Outcome::Revoked(_) => self.stats.count(&mut of.figures, Event::Cancelled),
            Outcome::Forgotten => {}
        }
        self.queues.tidy(&queue);
        let ended = TaskEffect::Ended(Ended { id: task.id, queue, key, seq, at: now.wall, outcome });
        self.together(|engine| {
            engine.note(slot, seq, ended);
            engine.occurrence_ended(now, task.id);
        });
        self.entries.get_mut(slot).at = At::Ended(outcome);
    }

    /// Puts an effect into the batch and remembers that the entry is not durable yet.
    fn note(&mut self, slot: Slot, seq: Seq, effect: TaskEffect) {
        let filled = self.entries.get(slot).filled;
        let filled = self.filling.push(slot, filled, effect);
        let entry = self.entries.get_mut(slot);
        entry.filled = Some(filled);
        entry.dirty = Some(seq);
        self.seal_if_full();
    }

    /// Puts an effect on a rule into the batch.
    fn note_rule(&mut self, effect: RuleEffect) {
        self.filling.push_rule(effect);
        self.seal_if_full();
    }

    fn seal_if_full(&mut self) {
        if self.filling.is_full(&self.config.bounds) && !self.together {
            self.seal();
        }
    }

    /// Does what has to be durable as a whole or not at all.
    fn together<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let outer = core::mem::replace(&mut self.together, true);
        let done = act(self);
        self.together = outer;
        self.seal_if_full();
        done
    }

    /// Answers those who want counts, unless it is still to be learned what is due.
    fn count(&mut self, now: Now) {
        if self.counting.is_empty() || !self.knows_what_is_due(now) {
            return;
        }
        for (call, command) in core::mem::take(&mut self.counting) {
            let answer = match command {
                // Somebody looks at these because something is wrong: they say that it is, and are as right as may be.
                Command::Stats(GetStats(list)) => Answer::Stats(Ok(Box::new(self.stats(now, &list)))),
                command => match (self.refusal_of_counts(now), &command) {
                    (Some(why), _) => command.unavailable(why),
                    (None, Command::Queue(GetQueue(name))) => {
                        Answer::Queue(Ok(Box::new(self.queue_view(now, name))))
                    }
                    (None, Command::Queues(list)) => Answer::Queues(Ok(self.queues.page(now, list))),
                    (None, other) => unreachable!("{other:?} does not ask for counts"),
                },
            };
            self.answer(call, answer);
        }
    }

    fn refusal_of_counts(&self, now: Now) -> Option<Unavailable> {
        let unseen = || self.refuses_changes().filter(|_| !self.has_what_is_due(now));
        self.doubt_since(self.ruled).or_else(|| unseen().map(|why| Unavailable::ReadOnly { why }))
    }

    fn stats(&self, now: Now, list: &ListQueues) -> Stats {
        let page = self.queues.page(now, list);
        // There may be as many namespaces as queues, so they come once and not with each page.
        let gone = if page.next.is_none() { self.queues.gone().clone() } else { BTreeMap::new() };
        Stats {
            page,
            gone,
            forgotten: *self.queues.forgotten(),
            queues_appeared: self.queues.appeared(),
            room: self.room_left(),
            waiting: self.queues.waiting(),
            read_only: self.failed.is_some(),
            schedules: self.schedules.len(),
            instants_waiting: self.schedules.waiting(),
            near_bytes: self.near_bytes(),
            near_bytes_max: self.config.near_bytes_max,
            ids_below: self.next_id,
            ..self.stats.clone()
        }
    }

    /// Something happened to a task of this queue: it is counted once in all, and once there.
    fn count_event(&mut self, queue: &QueueName, event: Event) {
        self.stats.count(&mut self.queues.open(queue).figures, event);
    }
}
