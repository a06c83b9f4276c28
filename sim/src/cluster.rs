//! Several nodes above one simulated database: the store on PostgreSQL, its heartbeats, its commit workers and its readers, as they ship.
//!
//! From a seed follow the calls of clients, the rows that users write to the inbox, the faults of the database (see [`SimDatabase`]), and those of the nodes: a node is killed, stops
//! for up to three leases and goes on, leaves in order, loses its sessions, or is cut off. Clients send calls to any node that says it owns
//! the shard. A ledger judges all answers.

mod clocks;
mod ledger;
mod mishap;
mod node;
mod plan;
mod rows;
pub mod search;
#[cfg(test)]
mod set_back;
mod workload;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tickwheel_engine::{CallId as ProductCall, Input};

use self::clocks::Clocks;
use self::ledger::Ledger;
use self::node::{ACQUIRE_AGAIN_NS, Boot, SimNode};
use self::plan::Plan;
use self::rows::{INBOX, Rows};
use self::workload::Workload;
use crate::database::{Met, SimDatabase, Wrong};
use crate::fibers::words as words_of_panic;
use crate::oracle::{Answer, Call, CallId, Due, Verb, Violation};
use crate::rng::Rng;
use crate::run::PANIC;
use crate::trace::Trace;
use crate::words;

/// A run that takes more steps than this, or more time in its calm part (ns), is reported as a hang.
const STEPS_MAX: u64 = 300_000;
const CALM_NS: u64 = 240_000_000_000;
/// If not all tasks are due after this time, the clock of the database was set back (ms).
const JUMP_MS: u64 = 60_000;

type Step = Result<(), Violation>;

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The broken promise, if the run found one.
    pub violation: Option<Violation>,
    /// The hash of all events of the run.
    pub trace_hash: u64,
    /// The number of steps of the run.
    pub steps: u64,
    /// The situations that the database met.
    pub met: Met,
    /// The situations that the nodes met.
    pub seen: Situations,
}

/// The number of situations of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Situations {
    /// Calls that reached an engine, and those that were answered.
    pub calls: u64,
    /// Calls that were answered.
    pub answered: u64,
    /// Calls without an answer.
    pub lost: u64,
    /// Calls that no node took.
    pub refused: u64,
    /// Calls that named a delay, and were answered with a due time.
    pub delays: u64,
    /// Tasks that were delivered.
    pub delivered: u64,
    /// Ownerships.
    pub owners: u64,
    /// Processes that were killed, stopped by a signal, left in order, and were cut off.
    pub mishaps: [u64; 4],
    /// Rows of the inbox that users wrote.
    pub rows: u64,
    /// Rows of the inbox that were taken or refused.
    pub rows_ended: u64,
}

impl Outcome {
    /// How often the run met each situation. A search that passes proves nothing about a situation that it has not met.
    #[must_use]
    pub fn situations(&self) -> [(&'static str, u64); 28] {
        let (met, seen) = (&self.met, &self.seen);
        [
            ("steps", self.steps),
            ("calls", seen.calls),
            ("answered calls", seen.answered),
            ("calls without an answer", seen.lost),
            ("refused calls", seen.refused),
            ("answered delays", seen.delays),
            ("deliveries", seen.delivered),
            ("ownerships", seen.owners),
            ("processes that were killed", seen.mishaps[0]),
            ("processes that were stopped", seen.mishaps[1]),
            ("processes that left", seen.mishaps[2]),
            ("places that were cut off", seen.mishaps[3]),
            ("commits", met.commits),
            ("orphans", met.orphans),
            ("slow answers", met.slow),
            ("waits for a lock", met.waits),
            ("batches found done", met.resolved[0]),
            ("batches found absent", met.resolved[1]),
            ("batches of an owner before", met.resolved[2]),
            ("lost batches", met.resolved[3]),
            ("fail-overs", met.fail_overs),
            ("lost commits", met.lost_commits),
            ("lost commits that were visible", met.lost_unreplicated),
            ("rollups", met.rollups),
            ("ended incarnations", met.ended),
            ("rows of the inbox", seen.rows),
            ("rows that were taken or refused", seen.rows_ended),
            ("rows that were refused", met.rows_refused),
        ]
    }
}

/// Runs a seed. `wrong`: the statement that is wrong on purpose.
#[must_use]
pub fn run(seed: u64, wrong: Wrong, print: bool) -> Outcome {
    let mut world = World::new(seed, wrong, print);
    let violation = match catch_unwind(AssertUnwindSafe(|| world.live())) {
        Ok(lived) => lived.err(),
        Err(panic) => Some(Violation { promise: PANIC, what: words_of_panic(&*panic), story: Vec::new() }),
    };
    if let Some(violation) = &violation {
        world.trace.event(format_args!("violation of {}: {}", violation.promise, violation.what));
    }
    Outcome {
        violation,
        trace_hash: world.trace.hash(),
        steps: world.trace.steps(),
        met: world.database.met(),
        seen: world.seen,
    }
}

struct World {
    plan: Plan,
    rng: Rng,
    now_ns: u64,
    database: SimDatabase,
    clocks: Clocks,
    machines: Vec<Boot>,
    nodes: Vec<Option<SimNode>>,
    /// When a node that has ended starts again, and when a place is connected again (simulated, ns).
    starts_ns: Vec<u64>,
    connects_ns: Vec<u64>,
    runs: u64,
    next_mishap_ns: u64,
    mishaps: u64,
    workload: Workload,
    rows: Rows,
    ledger: Ledger,
    /// Calls under way: the node, the shard, the client and the call.
    open: BTreeMap<CallId, (usize, u32, Call)>,
    last_call: u64,
    trace: Trace,
    seen: Situations,
    is_hostile: bool,
}

impl World {
    fn new(seed: u64, wrong: Wrong, print: bool) -> Self {
        let mut rng = Rng::new(seed ^ 0x636c_7573_7465_7200);
        let plan = Plan::draw(&mut rng);
        Self::of(plan, rng, wrong, print)
    }

    fn of(plan: Plan, mut rng: Rng, wrong: Wrong, print: bool) -> Self {
        let database = SimDatabase::new(rng.next_u64(), plan.shards, *b"sixteen  secrets", plan.wall_ms);
        database.set_faults(plan.faults);
        database.set_wrong(wrong);
        let machine = |rng: &mut Rng| {
            let begin_ns = rng.below(1_000_000_000_000);
            Boot::new(begin_ns, i64::try_from(rng.below(200)).expect("small") - 100)
        };
        let machines: Vec<Boot> = (0..plan.nodes).map(|_| machine(&mut rng)).collect();
        Self {
            workload: Workload::new(&plan, rng.split()),
            rng,
            now_ns: 0,
            clocks: Clocks::new(plan.wall_ms, plan.nodes),
            database,
            nodes: machines.iter().map(|_| None).collect(),
            starts_ns: vec![0; machines.len()],
            connects_ns: vec![u64::MAX; machines.len()],
            machines,
            runs: 0,
            next_mishap_ns: 0,
            mishaps: 0,
            rows: Rows::default(),
            ledger: Ledger::default(),
            open: BTreeMap::new(),
            last_call: 0,
            trace: Trace::new(print),
            seen: Situations::default(),
            is_hostile: true,
            plan,
        }
    }

    fn live(&mut self) -> Step {
        self.trace.event(format_args!("{:?}", self.plan));
        self.plan_mishap();
        while self.seen.calls < self.plan.calls || self.mishaps < self.plan.mishaps {
            self.step()?;
        }
        self.calm()
    }

    /// Goes to the next instant at which something happens, and does it.
    fn step(&mut self) -> Step {
        if self.trace.step() > STEPS_MAX {
            return Err(violation("P3", "the run does not end".to_owned()));
        }
        let nodes = self.nodes.iter().flatten().map(SimNode::next_ns);
        let starts = self.nodes.iter().zip(&self.starts_ns).filter(|(node, _)| node.is_none());
        let others = [self.next_mishap_ns, self.workload.next_ns()];
        let next_ns = nodes
            .chain(starts.map(|(_, at_ns)| *at_ns))
            .chain(self.connects_ns.iter().copied())
            .chain(others)
            .min();
        self.advance(next_ns.unwrap_or(self.now_ns));
        self.look_at_rows()?;
        self.connect_and_start();
        if self.is_hostile && self.now_ns >= self.next_mishap_ns {
            self.mishap()?;
        }
        self.work()?;
        if let Some(what) = self.database.disorder() {
            return Err(violation("log", what));
        }
        self.look_at_rows()?;
        self.write_rows();
        self.send_calls();
        Ok(())
    }

    fn advance(&mut self, to_ns: u64) {
        self.now_ns = self.now_ns.max(to_ns);
        self.database.set_now(self.now_ns);
        self.machines.iter().for_each(|machine| machine.set(self.now_ns));
        self.note_clock();
    }

    fn note_clock(&mut self) {
        let is_valid = |place: usize| self.nodes[place].as_ref().is_some_and(SimNode::is_valid);
        self.clocks.note(self.now_ns, self.database.wall_ns(), is_valid);
    }

    /// Sets the clock of the database.
    fn step_clock(&mut self, by_ms: i64) {
        let lease_ns = u64::from(self.plan.lease_ms) * 1_000_000;
        let runs = |place: usize| self.nodes[place].is_some();
        self.clocks.step((self.now_ns, self.database.wall_ns()), by_ms, lease_ns, runs);
        self.database.step_clock(by_ms);
        self.note_clock();
        for (id, (place, ..)) in &self.open {
            self.ledger
                .counts_from(*id, self.clocks.earliest_ns(*place, self.now_ns, self.database.wall_ns()));
        }
    }

    fn connect_and_start(&mut self) {
        for place in 0..self.nodes.len() {
            if self.connects_ns[place] <= self.now_ns {
                self.connects_ns[place] = u64::MAX;
                self.database.cut(place, false);
                self.trace.event(format_args!("{} ns: n{place} is connected", self.now_ns));
            }
            if self.nodes[place].is_none() && self.starts_ns[place] <= self.now_ns {
                self.runs += 1;
                self.trace.event(format_args!("{} ns: n{place} starts", self.now_ns));
                let boot = self.machines[place].clone();
                self.nodes[place] = Some(SimNode::start(&self.database, place, boot, self.runs, &self.plan));
            }
            if let Some(node) = &mut self.nodes[place]
                && node.stopped_until_ns.is_some_and(|until_ns| until_ns <= self.now_ns)
            {
                node.stopped_until_ns = None;
                self.trace.event(format_args!("{} ns: n{place} goes on", self.now_ns));
            }
        }
    }

    /// Lets all nodes do what is due.
    fn work(&mut self) -> Step {
        for place in 0..self.nodes.len() {
            let Some(node) = self.nodes[place].as_mut().filter(|node| node.runs()) else { continue };
            node.run_tasks(self.now_ns).map_err(|what| violation(PANIC, what))?;
            node.take_seats(self.now_ns, &self.plan);
            for shard in 0..node.seats.len() {
                self.turn(place, shard)?;
            }
            let node = self.nodes[place].as_ref();
            if node.is_some_and(|node| node.is_leaving && node.seats.iter().all(has_left)) {
                self.trace.event(format_args!("{} ns: n{place} has left", self.now_ns));
                self.end_node(place);
            }
        }
        Ok(())
    }

    fn turn(&mut self, place: usize, shard: usize) -> Step {
        let now_ns = self.now_ns;
        let Some(node) = &mut self.nodes[place] else { return Ok(()) };
        if !node.seats[shard].is_due(now_ns) {
            return Ok(());
        }
        let Some(now) = node.now() else { return Ok(()) };
        let leaves = node.is_leaving;
        let seat = &mut node.seats[shard];
        if leaves && !seat.is_told && seat.shard.is_serving() {
            seat.is_told = true;
            seat.inputs.push(Input::Stop);
        }
        let before = seat.epoch;
        seat.turn(now);
        let epoch = seat.epoch;
        let answers = std::mem::take(&mut seat.answers);
        let failure = seat.shard.engine().and_then(|engine| engine.failure());
        let is_to_be_acquired = seat.shard.is_to_be_acquired();
        if is_to_be_acquired && !leaves && now_ns >= seat.asked_ns + ACQUIRE_AGAIN_NS {
            seat.asked_ns = now_ns;
            seat.inbox.forget();
            seat.shard.acquire(now);
            seat.turn_ns = now_ns;
        } else {
            seat.plan(now_ns, now);
        }
        node.wake_tasks(now_ns);
        let number = u32::try_from(shard).expect("few shards");
        if let Some(why) = failure {
            return Err(violation("P8", format!("the store of shard {number} failed: {why}")));
        }
        if epoch > before {
            self.seen.owners += 1;
            self.trace.event(format_args!("{now_ns} ns: n{place} owns shard {number}, epoch {epoch}"));
            self.ledger.acquired(&self.plan.queues(number), epoch);
        }
        for (ProductCall(id), answer) in answers {
            self.may_answer(place, number, epoch.max(before))?;
            self.take_answer(CallId(id), answer)?;
        }
        if is_to_be_acquired {
            self.lose_calls(|of, at| of == place && at == number);
        }
        Ok(())
    }

    /// No other node may own the shard when an answer leaves.
    fn may_answer(&self, place: usize, shard: u32, epoch: u32) -> Step {
        let (now, owner) = self.database.owner(shard);
        let is_other = owner.as_ref().is_some_and(|owner| !owner.starts_with(&format!("n{place}.")));
        let epoch = i64::from(epoch);
        if now > epoch || now == epoch && is_other {
            let what = format!(
                "{} ns: n{place} answers for shard {shard} under epoch {epoch}, and {owner:?} has epoch {now}",
                self.now_ns
            );
            return Err(violation("validity", what));
        }
        Ok(())
    }

    fn take_answer(&mut self, id: CallId, answer: tickwheel_queue::Answer) -> Step {
        let Some((place, _, call)) = self.open.remove(&id) else { return Ok(()) };
        let answer = words::answer(&call, answer);
        self.trace.event(format_args!("{} ns: {id:?} is answered {answer:?}", self.now_ns));
        self.seen.answered += 1;
        if let Answer::Delivered(found) = &answer {
            self.seen.delivered += found.len() as u64;
            found.iter().for_each(|one| self.workload.got(&call.queue, one));
        }
        self.seen.delays += u64::from(names_delay(&call.verb) && matches!(answer, Answer::Stored { .. }));
        self.workload.ended(id, self.now_ns);
        self.ledger.answered(id, answer, (self.now_ns, self.clocks.latest_ms(place)))
    }

    /// The calls of these nodes and shards get no answer any more.
    fn lose_calls(&mut self, are_lost: impl Fn(usize, u32) -> bool) {
        let calls = self.open.iter().filter(|(_, (place, shard, _))| are_lost(*place, *shard));
        for id in calls.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.open.remove(&id);
            self.trace.event(format_args!("{} ns: {id:?} is lost", self.now_ns));
            self.seen.lost += 1;
            self.workload.ended(id, self.now_ns);
            self.ledger.lost(id);
        }
    }

    /// The process ends. What it sent may still take effect.
    fn end_node(&mut self, place: usize) {
        self.nodes[place] = None;
        self.clocks.ended(place);
        self.database.end_sessions(place);
        self.lose_calls(|of, _| of == place);
        let lease_ns = u64::from(self.plan.lease_ms) * 1_000_000;
        self.starts_ns[place] = self.now_ns + if self.is_hostile { self.rng.below(3 * lease_ns) } else { 0 };
    }

    fn send_calls(&mut self) {
        while let Some(client) = self.workload.due(self.now_ns) {
            let wall_ms = i64::try_from(self.database.wall_ns() / 1_000_000).expect("runs are short");
            let (shard, call) = self.workload.call(client, wall_ms);
            self.send(client, shard, call);
        }
    }

    /// Sends a call to a node that says that it owns the shard. Returns whether one takes it.
    fn send(&mut self, client: usize, shard: u32, call: Call) -> bool {
        let takes = |node: &&mut SimNode| {
            node.runs() && node.seats.get(shard as usize).is_some_and(node::Seat::takes_calls)
        };
        let mut nodes: Vec<&mut SimNode> = self.nodes.iter_mut().flatten().filter(takes).collect();
        if nodes.is_empty() {
            self.seen.refused += 1;
            self.workload.refused(client, self.now_ns);
            return false;
        }
        let index = self.rng.index(nodes.len());
        let node = &mut nodes[index];
        let place = node.place;
        let seat = &mut node.seats[shard as usize];
        self.last_call += 1;
        self.seen.calls += 1;
        let id = CallId(self.last_call);
        let input = Input::Call { call: ProductCall(id.0), command: words::command(&call) };
        seat.inputs.push(input);
        let epoch = seat.epoch;
        self.trace.event(format_args!("{} ns: {id:?} to n{place}, epoch {epoch}: {call:?}", self.now_ns));
        self.ledger.called(id, call.clone(), epoch, self.now_ns);
        self.ledger.counts_from(id, self.clocks.earliest_ns(place, self.now_ns, self.database.wall_ns()));
        self.workload.began(client, id, &call);
        self.open.insert(id, (place, shard, call));
        true
    }

    /// No more faults: each shard gets an owner, each call an answer, and each task a worker.
    fn calm(&mut self) -> Step {
        self.trace.event(format_args!("{} ns: faults end", self.now_ns));
        self.is_hostile = false;
        self.next_mishap_ns = u64::MAX;
        self.database.set_faults(self.plan.faults.calm());
        for place in 0..self.nodes.len() {
            self.connects_ns[place] = self.connects_ns[place].min(self.now_ns);
            self.starts_ns[place] = self.starts_ns[place].min(self.now_ns);
        }
        self.workload.rest();
        self.until("a call is not answered", |world| world.open.is_empty())?;
        self.until_kept(INBOX, "a row of the inbox is not taken", |world| world.rows.are_over())?;
        for key in 0..self.plan.keys {
            self.ask_all(|_| Some(Verb::Get), Some(key))?;
        }
        let latest_ms = self.workload.latest_due_ms().max(self.database.latest_due_ms());
        let mut farthest_ms = u64::try_from(latest_ms - clocks::ms_of(self.database.wall_ns())).unwrap_or(0);
        if farthest_ms > JUMP_MS {
            // The clock was set back. It is set right, and a step forward is believed after a minute.
            self.step_clock(farthest_ms.cast_signed());
            farthest_ms = 65_000;
        }
        let end_ns = self.now_ns + (farthest_ms + 1_000) * 1_000_000;
        while self.now_ns < end_ns {
            self.step()?;
        }
        let end_ns = self.now_ns + CALM_NS;
        while self.tasks_left() > 0 {
            if self.now_ns > end_ns {
                let first = (0..self.plan.shards).find_map(|shard| self.database.first_task(shard));
                let first = first.unwrap_or_default();
                return Err(violation(
                    "P3",
                    format!("{} tasks are never delivered: {first}", self.tasks_left()),
                ));
            }
            self.ask_all(|_| Some(Verb::Lease { max: 100, lease_ms: 600_000 }), None)?;
            while let Some((shard, call)) = self.workload.ack_one() {
                self.until("a shard has no owner", |world| world.is_served(shard))?;
                self.send(0, shard, call);
                self.until("a call is not answered", |world| world.open.is_empty())?;
            }
            // Leases of before have to end.
            let later_ns = self.now_ns + 2_000_000_000;
            while self.now_ns < later_ns && self.tasks_left() > 0 {
                self.step()?;
            }
        }
        for key in 0..self.plan.keys {
            self.ask_all(|_| Some(Verb::Get), Some(key))?;
        }
        Ok(())
    }

    fn tasks_left(&self) -> usize {
        (0..self.plan.shards).map(|shard| self.database.tasks(shard).len()).sum()
    }

    /// Makes a call of each queue, and waits for the answers.
    fn ask_all(&mut self, verb: impl Fn(u32) -> Option<Verb>, key: Option<u64>) -> Step {
        for shard in 0..self.plan.shards {
            let Some(verb) = verb(shard) else { continue };
            self.until("a shard has no owner", |world| world.is_served(shard))?;
            let queue = self.plan.queues(shard).remove(0);
            let call = Call { queue, key: key.map(|key| format!("k{key}")), verb };
            self.send(0, shard, call);
            self.until("a call is not answered", |world| world.open.is_empty())?;
        }
        Ok(())
    }

    fn is_served(&self, shard: u32) -> bool {
        let seats = self.nodes.iter().flatten().filter_map(|node| node.seats.get(shard as usize));
        seats.filter(|seat| seat.takes_calls()).count() == 1
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) -> Step {
        self.until_kept("P3", what, is_so)
    }

    fn until_kept(&mut self, promise: &'static str, what: &str, is_so: impl Fn(&Self) -> bool) -> Step {
        let latest_ns = self.now_ns + CALM_NS;
        while !is_so(self) {
            if self.now_ns > latest_ns {
                return Err(violation(promise, what.to_owned()));
            }
            self.step()?;
        }
        Ok(())
    }
}

/// Whether a node that leaves has given this shard up, or does not own it.
fn has_left(seat: &node::Seat) -> bool {
    seat.shard.is_released() || seat.shard.is_to_be_acquired()
}

fn names_delay(verb: &Verb) -> bool {
    matches!(verb, Verb::Put { due: Some(Due::In(_)), .. } | Verb::Patch { due: Some(Due::In(_)), .. })
}

fn violation(promise: &'static str, what: String) -> Violation {
    Violation { promise, what, story: Vec::new() }
}
