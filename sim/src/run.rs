//! One run of the simulator: everything that follows from one seed, from the first call to the last.

mod calm;
mod clients;
mod clock;
mod jobs;
mod life;
mod lists;
mod owners;
mod probe;
mod rota;
mod server;
mod targets;

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_engine::{Answer as ProductAnswer, CallId as ProductCall, Input};
use tickwheel_queue::Shard;

use self::clients::Client;
use self::clock::Clocks;
use self::jobs::Keeper;
use self::owners::Owners;
use self::rota::Planner;
use self::targets::Pusher;
use crate::bounds::Bounds;
use crate::coverage::Coverage;
use crate::disk::{Fault, SimDisk};
use crate::edges;
use crate::io::Switch;
use crate::options::Options;
use crate::oracle::{Call, CallId, Oracle, Violation};
use crate::rng::Rng;
use crate::seat::Seat;
use crate::trace::Trace;
use crate::workload::Workload;

/// A run that takes more steps than this is reported as a hang.
const STEPS_MAX: u64 = 200_000;

type Server = Shard<Seat>;
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
    /// The wall clock at the end of the run (simulated, ms).
    pub wall_ms: i64,
    /// The situations that the run met.
    pub coverage: Coverage,
    /// The files of the store at the end of the run, with their lengths (bytes).
    pub files: Vec<(String, usize)>,
}

/// Options of one run that do not change its choices.
#[derive(Copy, Clone, Debug, Default)]
pub struct Watch {
    /// Print every event.
    pub trace: bool,
    /// End the run after this step.
    pub until_step: Option<u64>,
}

/// The name that stands for the broken promise if the product panics.
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
    world.coverage.seeds = 1;
    world.coverage.steps = world.trace.steps();
    world.coverage.disk = world.disk.calls();
    world.coverage.given_up = world.oracle.given_up() as u64;
    Outcome {
        violation,
        trace_hash: world.trace.hash(),
        steps: world.trace.steps(),
        wall_ms: world.clocks.now().wall.as_ms(),
        coverage: world.coverage,
        files: world.disk.files(),
    }
}

struct World {
    rng: Rng,
    /// Draws for forecasts, so that the rest of a run is the same without them.
    forecasts: Rng,
    /// Draws for glitches of the wall clock, so that the rest of a run is the same without them.
    glitches: Rng,
    /// Draws for jumps of the wall clock while the server is stopped, so that the rest of a run is the same without them.
    stopped_jumps: Rng,
    /// Draws for the I/O of each server process, so that the rest of a run is the same with or without slips of its lanes.
    slips: Rng,
    bounds: Bounds,
    options: Options,
    watch: Watch,
    disk: SimDisk,
    switch: Switch,
    server: Option<Server>,
    owners: Owners,
    clocks: Clocks,
    oracle: Oracle,
    workload: Workload,
    planner: Planner,
    keeper: Keeper,
    pusher: Pusher,
    clients: Vec<Client>,
    open: BTreeMap<CallId, Call>,
    /// Lease calls that may wait in the server until a task is ready.
    waiting: BTreeSet<CallId>,
    /// Calls on their way to the server, and the step at which they arrive.
    wire: Vec<(u64, Input)>,
    /// Calls of the oracle that return deliveries which reached no worker; with each the number of its tokens.
    returning: Vec<(CallId, usize)>,
    next_call: u64,
    inputs: Vec<Input>,
    answers: Vec<(ProductCall, ProductAnswer)>,
    trace: Trace,
    coverage: Coverage,
    /// Whether faults happen. True in the safety phase, false in the liveness phase.
    hostile: bool,
    /// Whether the space of the disk is limited.
    starved: bool,
    /// Whether a graceful stop is under way.
    stopping: bool,
    /// Steps until the driver kills the server because its store has failed.
    doomed: Option<u64>,
}

impl World {
    fn new(seed: u64, options: Options, watch: Watch) -> Self {
        let mut rng = Rng::new(seed ^ 0x7469_636b_7768_6565);
        let clocks = Clocks::new(options.wall_start_ms, options.wall_sub_ns, options.guarded > 0);
        let wall_ms = clocks.now().wall.as_ms();
        Self {
            workload: Workload::new(&options, rng.split()),
            planner: Planner::new(&options, Rng::new(seed ^ 0x726f_7461), Rng::new(seed ^ 0x7a6f_6e65)),
            keeper: Keeper::new(&options, Rng::new(seed ^ 0x6a6f_6273)),
            pusher: Pusher::new(&options, Rng::new(seed ^ 0x7075_7368)),
            forecasts: Rng::new(seed ^ 0x666f_7265),
            glitches: Rng::new(seed ^ 0x676c_6974),
            stopped_jumps: Rng::new(seed ^ 0x7374_6f70),
            slips: Rng::new(seed ^ 0x736c_6970),
            bounds: Bounds::draw(options.tight_percent, &mut Rng::new(seed ^ 0x7469_6768)),
            rng,
            watch,
            disk: SimDisk::new(),
            switch: Switch::default(),
            server: None,
            owners: Owners::new(Rng::new(seed ^ 0x6f77_6e65)),
            clocks,
            oracle: Oracle::new(0, wall_ms),
            clients: vec![Client::default(); options.clients.max(1) as usize],
            open: BTreeMap::new(),
            waiting: BTreeSet::new(),
            wire: Vec::new(),
            returning: Vec::new(),
            next_call: 0,
            inputs: Vec::new(),
            answers: Vec::new(),
            trace: Trace::new(watch.trace),
            coverage: Coverage::default(),
            hostile: true,
            starved: false,
            stopping: false,
            doomed: None,
            options,
        }
    }

    fn live(&mut self) -> Step {
        self.trace.event(format_args!("{:?}", self.bounds));
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
        self.pass_time()?;
        if self.rng.below(self.options.crash_every.max(1)) == 0 {
            let nth = self.rng.between(1, 12);
            self.trace.event(format_args!("the machine dies at disk call {nth} from now"));
            self.disk.fail_at(nth, Fault::Crash);
        }
        if self.rng.below(1_000) < self.options.full_permille {
            self.fill_disk();
        }
        match self.rng.below(1_000) {
            0..4 => return self.crashed("killed"),
            4..7 => return self.stop_gracefully(),
            // A failed store is not listed: it shows its durable state only, and the oracle cannot see the difference.
            7..12 if self.nobody_waits() && self.doomed.is_none() => return self.list_one(),
            _ => {}
        }
        if self.forecasts.below(1_000) < self.options.forecast_permille
            && self.nobody_waits()
            && self.doomed.is_none()
        {
            self.forecast_one()?;
        }
        self.step_owners()?;
        self.end_waits(25);
        let client = self.rng.index(self.clients.len());
        self.send(client)?;
        self.change_zone();
        self.plan();
        self.keep_jobs();
        self.push();
        self.receive();
        self.switch.set(self.rng.chance(self.options.disk_percent));
        self.look_for_room();
        self.turn()?;
        if let Some(left) = self.doomed {
            if left == 0 {
                return self.crashed("killed, for its store has failed");
            }
            self.doomed = Some(left - 1);
        }
        Ok(())
    }

    /// Whether no call is open.
    fn nobody_waits(&self) -> bool {
        self.open.is_empty()
            && !self.planner.is_waiting()
            && !self.keeper.is_waiting()
            && !self.pusher.is_waiting()
    }

    fn pass_time(&mut self) -> Step {
        if self.rng.chance(self.options.time_percent) {
            let by_ns = match (self.rng.below(12), self.until_wake_ns()) {
                (0..3, Some(wake)) => wake,
                (3, Some(wake)) => wake.saturating_sub(self.rng.pick(&[1, 1_000_000])),
                (4, Some(wake)) => wake.saturating_add(self.rng.pick(&[1, 1_000_000])),
                (5, _) => self.rng.below(2_000) * 1_000_000,
                (6, _) => self.rng.below(10) * 20_000_000_000,
                (7, _) => self.rng.below(20_000_000),
                _ => self.rng.below(20) * 1_000_000,
            };
            self.advance(by_ns.min(1 << 60));
        }
        if self.rng.below(1_000) < self.options.stall_permille {
            let by_ms = edges::far(&mut self.rng).min(2_592_000_000);
            self.trace.event(format_args!("nothing runs for {by_ms} ms"));
            self.coverage.stalls += 1;
            if self.rng.chance(30) && self.clocks.may_pass(by_ms * 1_000_000) {
                self.clocks.suspend(by_ms * 1_000_000);
                self.tell_time();
            } else {
                self.advance(by_ms * 1_000_000);
            }
        }
        if self.rng.below(1_000) < self.options.freeze_permille {
            let readings = self.rng.between(1, 20);
            self.clocks.freeze(readings);
            self.coverage.freezes += 1;
        }
        if self.rng.below(1_000) < self.options.jump_permille {
            self.clocks.jump(&mut self.rng);
            self.coverage.jumps += 1;
            self.tell_time();
        }
        if self.glitches.below(1_000) < self.options.glitch_permille && self.clocks.glitch(&mut self.glitches)
        {
            self.coverage.glitches += 1;
            self.tell_time();
        }
        let judged = self.clocks.verdict();
        judged.map_err(|what| Violation { promise: "P7", what, story: Vec::new() })
    }

    fn advance(&mut self, by_ns: u64) {
        if !self.clocks.may_pass(by_ns) {
            return;
        }
        let slew = self.options.slew_permille.min(500);
        let slew = self.rng.between(0, 2 * slew) as i64 - slew as i64;
        self.clocks.pass(by_ns, if self.hostile { slew } else { 0 });
        self.tell_time();
    }

    fn tell_time(&mut self) {
        let now = self.clocks.now();
        let (mono_ms, wall_ms) = (now.mono_tick(), now.wall.as_ms());
        self.trace.event(format_args!("it is {mono_ms} ms, wall {wall_ms}"));
        match self.clocks.hold() {
            None => self.oracle.time_ns(now.mono_ns, self.clocks.believed_ns()),
            Some((falls_due_ns, begins)) => {
                self.coverage.holds += u64::from(begins);
                self.oracle.time_held_ns(now.mono_ns, self.clocks.believed_ns(), falls_due_ns, begins);
            }
        }
        self.planner.time(wall_ms);
    }

    /// The time until the next instant at which the server wants to be woken (ns).
    fn until_wake_ns(&self) -> Option<u64> {
        let wake = self.server.as_ref()?.next_wake();
        let by_wall = wake.wall.map(|at| self.clocks.until_wall(at));
        let by_mono = wake.mono_ms.map(|at| self.clocks.until_mono(at));
        // While a start holds something back, the server looks at its clock once a second.
        let look = (self.clocks.now().held_ms > 0).then_some(1_000_000_000);
        [by_wall, by_mono, look].into_iter().flatten().min()
    }

    /// Leaves the disk only the space in use and 0 to 60,000 bytes more; or, if the disk was full, takes the limit away.
    fn fill_disk(&mut self) {
        self.starved = !self.starved;
        let spare = self.rng.pick(&[0, 0, 4_096, 20_000, 60_000]);
        let space = self.starved.then(|| self.disk.used_bytes() + spare);
        self.trace.event(format_args!("the disk has room for {space:?} bytes"));
        self.coverage.full += u64::from(self.starved);
        self.disk.set_space(space);
        self.oracle.room_is_short();
    }

    fn hang(&self, what: &str) -> Violation {
        Violation { promise: "P3", what: what.to_owned(), story: Vec::new() }
    }
}
