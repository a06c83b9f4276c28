//! One run: a seed's world from its first call to its last.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_engine::{
    Answer as ProductAnswer, CallId as ProductCall, Command, EngineConfig, Input, Now, Timestamp,
};
use tickwheel_queue::{List, Shard};
use tickwheel_store::conformance::contents;
use tickwheel_store::{DiskStore, StoreOptions};

use crate::coverage::Coverage;
use crate::disk::{Fault, SimDisk};
use crate::io::{Gate, SimIo};
use crate::options::Options;
use crate::oracle::{Answer, Call, CallId, Oracle, Verb, Violation};
use crate::rng::Rng;
use crate::trace::Trace;
use crate::words;
use crate::workload::Workload;

/// Wall time at the start of every run: a Tuesday in 2017.
const WALL_START_MS: i64 = 1_500_000_000_000;
/// The wall clock never jumps below this.
const WALL_MIN_MS: i64 = 1_000_000_000;
/// A run that takes more steps than this hangs.
const STEPS_MAX: u64 = 200_000;

type Server = Shard<DiskStore<SimDisk, SimIo>>;
type Step = Result<(), Violation>;

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The broken promise, if one was.
    pub violation: Option<Violation>,
    /// The hash of all that happened.
    pub trace_hash: u64,
    /// Steps it took.
    pub steps: u64,
    /// Virtual wall time at its end, milliseconds.
    pub wall_ms: i64,
    /// What it met.
    pub coverage: Coverage,
    /// The files of the store at its end.
    pub files: Vec<(String, usize)>,
}

/// What to do besides running.
#[derive(Copy, Clone, Debug, Default)]
pub struct Watch {
    /// Print every event.
    pub trace: bool,
    /// End after this step.
    pub until_step: Option<u64>,
}

/// The "promise" that a panic of the product breaks.
pub const PANIC: &str = "panic";

/// Runs a seed.
#[must_use]
pub fn run(seed: u64, options: &Options, watch: Watch) -> Outcome {
    let mut world = World::new(seed, options.clone(), watch);
    let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.live()));
    let violation = match lived {
        Ok(lived) => lived.err(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let what = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            let what = what.unwrap_or_else(|| "without words".to_owned());
            Some(Violation { promise: PANIC, what, story: Vec::new() })
        }
    };
    if let Some(violation) = &violation {
        world.trace.event(format_args!("violation of {}: {}", violation.promise, violation.what));
    }
    world.coverage.disk = world.disk.calls();
    world.coverage.given_up = world.oracle.given_up() as u64;
    Outcome {
        violation,
        trace_hash: world.trace.hash(),
        steps: world.trace.steps(),
        wall_ms: world.now.wall.as_ms(),
        coverage: world.coverage,
        files: world.disk.files(),
    }
}

struct World {
    rng: Rng,
    options: Options,
    watch: Watch,
    disk: SimDisk,
    gate: Gate,
    server: Option<Server>,
    now: Now,
    oracle: Oracle,
    workload: Workload,
    /// What each client waits for.
    clients: Vec<Option<CallId>>,
    open: BTreeMap<CallId, Call>,
    /// Leases that may wait in the server until something is ready.
    waiting: BTreeSet<CallId>,
    next_call: u64,
    inputs: Vec<Input>,
    answers: Vec<(ProductCall, ProductAnswer)>,
    trace: Trace,
    coverage: Coverage,
    /// Faults are on: the safety phase.
    hostile: bool,
    /// Steps until the server is killed because its store has failed.
    doomed: Option<u64>,
}

impl World {
    fn new(seed: u64, options: Options, watch: Watch) -> Self {
        let mut rng = Rng::new(seed ^ 0x7469_636b_7768_6565);
        let wall = Timestamp::from_ms(WALL_START_MS).expect("after 1970");
        Self {
            workload: Workload::new(&options, rng.split()),
            rng,
            watch,
            disk: SimDisk::new(),
            gate: Gate::default(),
            server: None,
            now: Now { mono_ns: 0, wall, wall_sub_ns: 0 },
            oracle: Oracle::new(0, WALL_START_MS),
            clients: vec![None; options.clients.max(1) as usize],
            open: BTreeMap::new(),
            waiting: BTreeSet::new(),
            next_call: 0,
            inputs: Vec::new(),
            answers: Vec::new(),
            trace: Trace::new(watch.trace),
            coverage: Coverage::default(),
            hostile: true,
            doomed: None,
            options,
        }
    }

    fn live(&mut self) -> Step {
        self.start()?;
        while self.coverage.calls < self.options.calls
            || self.coverage.crashes < self.options.crashes
            || self.coverage.checkpoints == 0 && self.coverage.calls < 8 * self.options.calls
        {
            if self.watch.until_step.is_some_and(|last| self.trace.steps() >= last) {
                return Ok(());
            }
            self.step()?;
        }
        self.trace.event(format_args!("faults end"));
        self.end_faults()?;
        self.drain()
    }

    fn step(&mut self) -> Step {
        let step = self.trace.step();
        if step > STEPS_MAX {
            return Err(self.hang("the safety phase does not end"));
        }
        self.pass_time();
        if self.rng.below(self.options.crash_every) == 0 {
            let nth = self.rng.between(1, 12);
            self.trace.event(format_args!("the machine dies at disk call {nth} from now"));
            self.disk.fail_at(nth, Fault::Crash);
        }
        match self.rng.below(1_000) {
            0..4 => return self.kill("killed"),
            4..7 => return self.stop_gracefully(),
            // A failed store lists what it is sure of, which the oracle cannot tell from what there is.
            7..12 if self.open.is_empty() && self.doomed.is_none() => return self.list_one(),
            _ => {}
        }
        self.end_waits(25);
        let client = self.rng.index(self.clients.len());
        if self.clients[client].is_none() {
            self.send(client);
        }
        self.gate.set(self.rng.chance(self.options.disk_percent));
        self.turn()?;
        if let Some(left) = self.doomed {
            if left == 0 {
                return self.kill("killed, for its store has failed");
            }
            self.doomed = Some(left - 1);
        }
        Ok(())
    }

    fn pass_time(&mut self) {
        if self.rng.chance(self.options.time_percent) {
            let to_wake = self.until_wake_ms();
            let by_ms = match (self.rng.below(10), to_wake) {
                (0..3, Some(wake)) => wake,
                (3, Some(wake)) => wake.saturating_sub(1),
                (4, Some(wake)) => wake + 1,
                (5, _) => self.rng.below(2_000),
                (6, _) => self.rng.below(10) * 20_000,
                _ => self.rng.below(20),
            };
            self.advance(by_ms);
        }
        if self.rng.below(1_000) < self.options.jump_permille {
            let size = self.rng.pick(&[1, 1_000, 300_000, 3_600_000, 86_400_000, 315_360_000_000]);
            let size = self.rng.between(1, size) as i64;
            let to = if self.rng.chance(50) { size } else { -size };
            let wall_ms = (self.now.wall.as_ms() + to).max(WALL_MIN_MS);
            self.now.wall = Timestamp::from_ms(wall_ms).expect("after 1970");
            self.coverage.jumps += 1;
            self.tell_time();
        }
    }

    fn advance(&mut self, by_ms: u64) {
        self.now.mono_ns += by_ms * 1_000_000;
        self.now.wall = self.now.wall.plus_ms(by_ms).expect("runs end long before time does");
        self.tell_time();
    }

    fn tell_time(&mut self) {
        let (mono_ms, wall_ms) = (self.now.mono_tick(), self.now.wall.as_ms());
        self.trace.event(format_args!("it is {mono_ms} ms, wall {wall_ms}"));
        self.oracle.time(mono_ms, wall_ms);
    }

    /// How long until the server wants to be woken, at least 0.
    fn until_wake_ms(&self) -> Option<u64> {
        let wake = self.server.as_ref()?.next_wake();
        let by_wall = wake.wall.map(|at| at.ms_since(self.now.wall));
        let by_mono = wake.mono_ms.map(|at| at.saturating_sub(self.now.mono_tick()));
        [by_wall, by_mono].into_iter().flatten().min()
    }

    fn send(&mut self, client: usize) {
        let call = self.workload.call(self.now.wall.as_ms());
        let id = self.open_call(call);
        self.clients[client] = Some(id);
        let mut command = words::command(&self.open[&id]);
        if let Command::Lease(lease) = &mut command
            && self.rng.chance(30)
        {
            // To the oracle a lease that waits is one that takes its time.
            lease.wait = true;
            self.waiting.insert(id);
        }
        self.inputs.push(Input::Call { call: ProductCall(id.0), command });
    }

    /// Some waits have lasted long enough.
    fn end_waits(&mut self, percent: u64) {
        for id in std::mem::take(&mut self.waiting) {
            if self.rng.chance(percent) {
                self.trace.event(format_args!("the wait of {id:?} ends"));
                self.inputs.push(Input::EndWait { call: ProductCall(id.0) });
            } else {
                self.waiting.insert(id);
            }
        }
    }

    fn open_call(&mut self, call: Call) -> CallId {
        self.next_call += 1;
        self.coverage.calls += 1;
        let id = CallId(self.next_call);
        self.trace.event(format_args!("{id:?} {call:?}"));
        self.oracle.called(id, call.clone());
        self.open.insert(id, call);
        id
    }

    /// Lets the server do what it can, and looks at what it says.
    fn turn(&mut self) -> Step {
        let Some(server) = &mut self.server else { return Ok(()) };
        server.turn(self.now, &mut self.inputs, &mut self.answers);
        if self.disk.is_crashed() {
            // Whatever it said in this turn it may have said after it died.
            self.answers.clear();
            return self.crashed("died at a disk call");
        }
        let answers = std::mem::take(&mut self.answers);
        for (call, answer) in answers {
            self.take_answer(CallId(call.0), answer)?;
        }
        self.look_at_server();
        Ok(())
    }

    fn look_at_server(&mut self) {
        let Some(server) = &self.server else { return };
        self.coverage.checkpoints = self.coverage.checkpoints.max(server.store().checkpoints_begun());
        if self.doomed.is_none() && server.engine().is_some_and(|engine| engine.failure().is_some()) {
            self.coverage.poisoned += 1;
            self.doomed = Some(self.rng.below(30));
        }
    }

    fn take_answer(&mut self, id: CallId, answer: ProductAnswer) -> Step {
        let call = self.open.remove(&id).expect("answers come to open calls");
        self.waiting.remove(&id);
        if let Some(client) = self.clients.iter_mut().find(|client| **client == Some(id)) {
            *client = None;
        }
        if self.hostile && self.rng.chance(self.options.lost_percent) {
            return self.lose_answer(id, answer);
        }
        let answer = words::answer(&call, answer);
        self.trace.event(format_args!("{id:?} is answered {answer:?}"));
        match &answer {
            Answer::Stored { task, .. } | Answer::Task(task) => {
                self.workload.saw_version(&call.queue, &task.key, task.version);
            }
            Answer::Delivered(found) => {
                self.coverage.delivered += found.len() as u64;
                found.iter().for_each(|one| self.workload.saw_token(&call.queue, &one.token));
            }
            _ => {}
        }
        self.oracle.answered(id, answer)
    }

    /// The connection is cut behind the server's back: a lost delivery stays leased until its lease runs out.
    fn lose_answer(&mut self, id: CallId, answer: ProductAnswer) -> Step {
        self.trace.event(format_args!("the answer to {id:?} is lost: {answer:?}"));
        self.coverage.lost += 1;
        self.oracle.lost(id)?;
        let failed = self.server.as_ref().and_then(|s| s.engine()).is_some_and(|e| e.failure().is_some());
        // A failed store may hold it or not; the next life shows.
        if failed || self.server.is_none() { Ok(()) } else { self.oracle.settled(id) }
    }

    fn kill(&mut self, how: &str) -> Step {
        self.crashed(how)
    }

    fn crashed(&mut self, how: &str) -> Step {
        self.trace.event(format_args!("{how}, {} calls open", self.open.len()));
        self.coverage.crashes += 1;
        self.coverage.crashes_with_open_calls += u64::from(!self.open.is_empty());
        self.server = None;
        self.forget_clients();
        let mut rng = self.rng.split();
        self.disk.crash(&mut rng);
        self.oracle.crashed()?;
        self.start()
    }

    fn forget_clients(&mut self) {
        self.open.clear();
        self.waiting.clear();
        self.inputs.clear();
        self.answers.clear();
        self.clients.iter_mut().for_each(|client| *client = None);
        self.doomed = None;
    }

    fn stop_gracefully(&mut self) -> Step {
        self.trace.event(format_args!("stops gracefully"));
        self.coverage.stops += 1;
        self.oracle.stopping();
        self.inputs.push(Input::Stop);
        self.gate.set(true);
        for _ in 0..1_000 {
            let lives = self.coverage.crashes;
            self.turn()?;
            if self.coverage.crashes > lives {
                return Ok(());
            }
            let server = self.server.as_ref().expect("it did not crash");
            if server.engine().is_some_and(|engine| engine.failure().is_some()) {
                // A failed store writes no lease down: such a stop is as good as a crash.
                return self.kill("killed while it stopped with a failed store");
            }
            if server.is_released() {
                self.server = None;
                self.oracle.stopped()?;
                self.forget_clients();
                if self.rng.chance(50) {
                    // What a stop promised to have written down has to stand a power cut.
                    let mut rng = self.rng.split();
                    self.disk.crash(&mut rng);
                }
                return self.start();
            }
        }
        Err(self.hang("a graceful stop does not end"))
    }

    /// Starts the server, as often as it takes: it may die while it recovers.
    fn start(&mut self) -> Step {
        for depth in 0..20_u64 {
            self.disk.forget_faults();
            if depth > 0 {
                self.coverage.crashes_in_recovery += 1;
                let mut rng = self.rng.split();
                self.disk.crash(&mut rng);
            }
            if self.rng.chance(20) {
                let downtime_ms = self.rng.pick(&[1, 50, 5_000, 200_000]);
                self.advance(downtime_ms);
            }
            if self.hostile && depth < 3 && self.rng.chance(25) {
                let nth = self.rng.between(1, 25);
                self.disk.fail_at(nth, Fault::Crash);
            }
            self.trace.event(format_args!("starts"));
            self.check_twin()?;
            let options = self.store_options();
            let store = match DiskStore::open(self.disk.clone(), SimIo::new(self.gate.clone()), options) {
                Ok(store) => store,
                Err(_) if self.disk.is_crashed() => continue,
                Err(error) => return Err(self.refused(&error.to_string())),
            };
            self.coverage.torn += u64::from(store.recovery_report().torn.is_some());
            self.oracle.recovered();
            if self.load(store)? {
                self.disk.forget_faults();
                if self.hostile && self.rng.chance(self.options.error_percent) {
                    let nth = self.rng.between(1, 60);
                    let fault = self.rng_fault();
                    self.disk.fail_at(nth, fault);
                }
                return Ok(());
            }
            self.oracle.crashed()?;
        }
        Err(self.hang("the server does not come up"))
    }

    fn rng_fault(&mut self) -> Fault {
        self.rng.pick(&[Fault::Error, Fault::LosingSync])
    }

    /// Two recoveries of one copy give equal states.
    fn check_twin(&mut self) -> Step {
        if !self.rng.chance(10) {
            return Ok(());
        }
        let gate = Gate::default();
        gate.set(true);
        let mut states = Vec::new();
        let history = self.store_options().history_per_queue;
        for _ in 0..2 {
            let image = self.disk.image();
            let store = DiskStore::open(image, SimIo::new(gate.clone()), self.store_options());
            let state =
                store.map_err(|error| error.to_string()).and_then(|mut store| contents(&mut store, history));
            states.push(state.map(|table| format!("{table:?}")));
        }
        self.coverage.twins += 1;
        if states[0] == states[1] {
            return Ok(());
        }
        let what = format!("two recoveries differ: {:?} and {:?}", states[0], states[1]);
        Err(Violation { promise: "P10", what, story: Vec::new() })
    }

    /// Brings a store's server up. `false`: it died on the way.
    fn load(&mut self, store: DiskStore<SimDisk, SimIo>) -> Result<bool, Violation> {
        let config = EngineConfig {
            horizon_ms: self.options.horizon_ms.max(2),
            near_bytes_max: self.options.near_bytes.max(512),
            scan_max: self.rng.pick(&[1, 3, 1_024]),
            ..EngineConfig::default()
        };
        let mut server = Shard::new(store, config, self.now);
        self.gate.set(true);
        for _ in 0..10_000 {
            server.turn(self.now, &mut self.inputs, &mut self.answers);
            if self.disk.is_crashed() {
                return Ok(false);
            }
            if server.is_loaded() {
                self.server = Some(server);
                return Ok(true);
            }
            if let Some(why) = server.refusal() {
                return Err(self.refused(why));
            }
        }
        Err(self.hang("the server does not load"))
    }

    fn store_options(&self) -> StoreOptions {
        let mut options = StoreOptions::new(*b"a simulated one.");
        options.log_file_bytes = self.options.log_file_bytes;
        options.checkpoint_after_bytes = self.options.checkpoint_after_bytes;
        options.background_step_bytes = self.options.background_step_bytes as usize;
        options
    }

    fn list_one(&mut self) -> Step {
        let queue = self.workload.queues()[self.rng.index(self.options.queues.max(1) as usize)].clone();
        self.list(&queue)
    }

    /// Takes the whole list of a queue, page by page, while nothing else goes on.
    fn list(&mut self, queue: &str) -> Step {
        assert!(self.open.is_empty(), "a list is taken alone");
        let id = self.open_call(Call { queue: queue.to_owned(), key: None, verb: Verb::List });
        let lives = self.coverage.crashes;
        let mut rows = Vec::new();
        let mut after = None;
        loop {
            let max = self.rng.pick(&[1, 2, 100]);
            let list = List { max, after, ..List::new(&words::queue(queue)) };
            let Some(answer) = self.call_through(Command::List(list))? else {
                assert!(self.coverage.crashes > lives, "only a crash leaves a page unanswered");
                return Ok(());
            };
            let ProductAnswer::List(Ok(page)) = answer else {
                self.open.remove(&id);
                return self.oracle.lost(id);
            };
            rows.extend(words::rows(&page));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        self.coverage.lists += 1;
        self.open.remove(&id);
        self.trace.event(format_args!("{id:?} lists {rows:?}"));
        self.oracle.answered(id, Answer::Listed(rows))
    }

    /// Makes one call that the oracle does not see, and waits for its answer. `None`: the server died.
    fn call_through(&mut self, command: Command) -> Result<Option<ProductAnswer>, Violation> {
        self.next_call += 1;
        let call = ProductCall(self.next_call);
        self.inputs.push(Input::Call { call, command });
        self.gate.set(true);
        for _ in 0..1_000 {
            let Some(server) = &mut self.server else { return Ok(None) };
            server.turn(self.now, &mut self.inputs, &mut self.answers);
            if self.disk.is_crashed() {
                self.answers.clear();
                self.crashed("died during a list")?;
                return Ok(None);
            }
            if let Some((answered, answer)) = self.answers.pop() {
                assert_eq!(answered, call, "no other call is open");
                return Ok(Some(answer));
            }
        }
        Err(self.hang("a list is not answered"))
    }

    fn end_faults(&mut self) -> Step {
        self.hostile = false;
        self.disk.forget_faults();
        let failed = self.server.as_ref().and_then(|s| s.engine()).is_some_and(|e| e.failure().is_some());
        if failed {
            self.kill("killed, for its store has failed")?;
        }
        self.gate.set(true);
        self.end_waits(100);
        for _ in 0..1_000 {
            if self.open.is_empty() {
                return Ok(());
            }
            self.turn()?;
        }
        Err(self.hang("calls are not answered"))
    }

    /// The liveness phase: whatever is due comes out, until nothing is left.
    fn drain(&mut self) -> Step {
        let queues = self.workload.queues().to_vec();
        loop {
            let step = self.trace.step();
            if step > STEPS_MAX {
                return Err(self.hang("the liveness phase does not end"));
            }
            let mut busy = false;
            for queue in &queues {
                busy |= self.work_off(queue)?;
            }
            if busy {
                continue;
            }
            match self.until_wake_ms() {
                Some(by_ms) => self.advance(by_ms),
                None => break,
            }
            self.turn()?;
        }
        for queue in &queues {
            self.list(queue)?;
        }
        self.oracle.finish()
    }

    /// Leases what is ready in a queue and acks it. Whether there was something.
    fn work_off(&mut self, queue: &str) -> Result<bool, Violation> {
        let verb = Verb::Lease { max: 1_000, lease_ms: 1_000 };
        let Answer::Delivered(found) = self.finish_call(queue, verb)? else {
            return Err(self.hang("a lease was not answered with deliveries"));
        };
        if found.is_empty() {
            return Ok(false);
        }
        let tokens = found.into_iter().map(|one| one.token).collect();
        self.finish_call(queue, Verb::Ack { tokens })?;
        Ok(true)
    }

    fn finish_call(&mut self, queue: &str, verb: Verb) -> Result<Answer, Violation> {
        let call = Call { queue: queue.to_owned(), key: None, verb };
        let id = self.open_call(call.clone());
        let command = words::command(&call);
        self.inputs.push(Input::Call { call: ProductCall(id.0), command });
        for _ in 0..1_000 {
            self.server.as_mut().expect("no faults any more").turn(
                self.now,
                &mut self.inputs,
                &mut self.answers,
            );
            if let Some((answered, answer)) = self.answers.pop() {
                assert_eq!(answered.0, id.0, "no other call is open");
                self.open.remove(&id);
                let answer = words::answer(&call, answer);
                self.trace.event(format_args!("{id:?} is answered {answer:?}"));
                self.oracle.answered(id, answer.clone())?;
                return Ok(answer);
            }
        }
        Err(self.hang("a call is not answered"))
    }

    fn refused(&self, why: &str) -> Violation {
        let what = format!("the server refuses to start, though nothing that was synced is damaged: {why}");
        Violation { promise: "P8", what, story: Vec::new() }
    }

    fn hang(&self, what: &str) -> Violation {
        Violation { promise: "P3", what: what.to_owned(), story: Vec::new() }
    }
}
