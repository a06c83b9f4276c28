//! Server processes: how each starts, and how it ends by a stop, a kill or a power cut.

use tickwheel_engine::{EngineConfig, Input};
use tickwheel_store::{DiskOp, DiskStore, HistoryLimits, StoreOptions};

use super::{Server, Step, World};
use crate::disk::{Fault, SimDisk};
use crate::io::{SimIo, Slips};
use crate::oracle::Violation;
use crate::seat::Seat;

/// How the start of a server went.
#[derive(Debug)]
pub(super) enum Loaded {
    Up,
    /// The machine died.
    Died,
    /// The store failed, and why.
    Refused(String),
}

impl World {
    pub(super) fn crashed(&mut self, how: &str) -> Step {
        self.trace.event(format_args!("{how}, {} calls open", self.open.len()));
        self.coverage.crashes += 1;
        self.coverage.crashes_with_open_calls += u64::from(!self.open.is_empty());
        self.server = None;
        self.owners.forget();
        self.forget_clients();
        self.power_off()?;
        self.oracle.crashed()?;
        self.start()
    }

    /// Cuts the power: each unsynced change may be lost or kept. Some power cuts also probe how a store handles damage.
    fn power_off(&mut self) -> Step {
        let probes = self.hostile && self.rng.chance(self.options.probe_percent);
        if probes {
            self.probe_lies()?;
        }
        let mut rng = self.rng.split();
        self.disk.crash(&mut rng);
        if probes { self.probe_damage() } else { Ok(()) }
    }

    pub(super) fn stop_gracefully(&mut self) -> Step {
        self.trace.event(format_args!("stops gracefully"));
        self.coverage.stops += 1;
        self.renew_ownership();
        self.owners.forget();
        self.oracle.stopping();
        self.stopping = true;
        self.inputs.push(Input::Stop);
        self.switch.set(true);
        for turn in 0..1_000 {
            if turn == 500 && self.starved {
                // The frame with the leases waits for space, because other writes have taken the space that was kept
                // for it.
                self.fill_disk();
            }
            let lives = self.coverage.crashes;
            self.turn()?;
            if self.coverage.crashes > lives {
                return Ok(());
            }
            if self.has_failed() {
                // A failed store writes no leases down, so to the oracle this stop is a crash.
                return self.crashed("killed while it stopped with a failed store");
            }
            if self.server.as_ref().is_some_and(|server| server.is_released()) {
                self.server = None;
                self.forget_clients();
                self.oracle.stopped()?;
                if self.rng.chance(50) {
                    // After a stop the leases are written down, so they have to survive a power cut.
                    self.power_off()?;
                }
                if self.stopped_jumps.chance(self.options.stopped_jump_percent) {
                    self.clocks.jump(&mut self.stopped_jumps);
                    self.coverage.jumps += 1;
                    self.tell_time();
                }
                return self.start();
            }
        }
        Err(self.hang("a graceful stop does not end"))
    }

    /// Starts the server, again and again until it is up, because it may die during its recovery.
    pub(super) fn start(&mut self) -> Step {
        for depth in 0..20_u64 {
            self.disk.forget_faults();
            if depth > 0 {
                self.coverage.crashes_in_recovery += 1;
                let mut rng = self.rng.split();
                self.disk.crash(&mut rng);
            }
            if self.rng.chance(20) {
                let downtime_ms = self.rng.pick(&[1, 50, 5_000, 200_000]);
                self.advance(downtime_ms * 1_000_000);
            }
            self.clocks.restart();
            self.tell_time();
            if self.hostile && depth < 3 && self.rng.chance(25) {
                let nth = self.rng.between(1, 25);
                self.disk.fail_at(nth, Fault::Crash);
            }
            let misreads = self.hostile && depth < 3 && self.rng.chance(self.options.read_error_percent);
            if misreads {
                let op = self.rng.pick(&[DiskOp::Read, DiskOp::Read, DiskOp::Open, DiskOp::Len]);
                let nth = self.rng.between(1, 20);
                self.disk.fail_nth(op, nth, Fault::Error);
            }
            self.trace.event(format_args!("starts"));
            self.check_twin()?;
            let slips = Slips { percent: self.options.slip_percent, rng: self.slips.split() };
            let io = SimIo::new(self.switch.clone(), slips);
            let store = match DiskStore::open(self.disk.clone(), io, self.store_options()) {
                Ok(store) => store,
                Err(_) if self.disk.is_crashed() => continue,
                Err(error) => {
                    self.excuse(&error.to_string(), misreads)?;
                    continue;
                }
            };
            self.coverage.torn += u64::from(store.recovery_report().torn.is_some());
            self.oracle.recovered();
            let server = self.node(Seat::first(store));
            match self.load(server)? {
                Loaded::Up => {
                    self.disk.forget_faults();
                    self.plan_fault();
                    return Ok(());
                }
                Loaded::Died => {}
                Loaded::Refused(why) => self.excuse(&why, misreads)?,
            }
            self.oracle.crashed()?;
        }
        Err(self.hang("the server does not come up"))
    }

    /// Checks a refusal to start. It is allowed if the disk is full, or if a read failed and the text names the file.
    fn excuse(&mut self, why: &str, misreads: bool) -> Step {
        self.trace.event(format_args!("refuses to start: {why}"));
        if self.starved && why.contains("no storage space") {
            self.fill_disk();
            return Ok(());
        }
        if !misreads || self.disk.awaits_nth() {
            return Err(refused(why));
        }
        self.coverage.refused_reads += 1;
        if names_a_file(&self.disk, why) {
            return Ok(());
        }
        let what = format!("a read failed, and the refusal to start names no file: {why}");
        Err(Violation { promise: "P8", what, story: Vec::new() })
    }

    /// Chooses the faults of the disk until the next start.
    fn plan_fault(&mut self) {
        if self.hostile && self.rng.chance(self.options.error_percent) {
            let nth = self.rng.between(1, 60);
            let fault = self.rng.pick(&[Fault::Error, Fault::LosingSync]);
            self.disk.fail_at(nth, fault);
        }
        if self.hostile && self.rng.chance(self.options.read_error_percent) {
            let nth = self.rng.between(1, 40);
            self.disk.fail_nth(DiskOp::Read, nth, Fault::Error);
        }
        if self.hostile && self.rng.chance(self.options.probe_percent) {
            let nth = self.rng.between(1, 30);
            self.disk.fail_nth(DiskOp::Sync, nth, Fault::LyingSync);
        }
    }

    pub(super) fn engine_config(&mut self) -> EngineConfig {
        EngineConfig {
            horizon_ms: self.options.horizon_ms.max(2),
            near_bytes_max: self.options.near_bytes.max(512),
            scan_max: self.rng.pick(&[1, 3, 1_024]),
            // The clock jumps by years in a run, so the retention of dead tasks must have no end.
            dead_ms: u64::MAX,
            history_ms: u64::MAX,
            bounds: self.bounds.engine.clone(),
            ..EngineConfig::default()
        }
    }

    /// Runs a server until it has loaded.
    pub(super) fn load(&mut self, mut server: Server) -> Result<Loaded, Violation> {
        self.switch.set(true);
        for turn in 0..10_000 {
            if turn == 500 && self.starved {
                // The frame of a new owner waits for space. At a start the space was made before.
                self.fill_disk();
            }
            self.turn_of(&mut server, &mut Vec::new(), &mut Vec::new())?;
            if self.disk.is_crashed() {
                return Ok(Loaded::Died);
            }
            if server.is_serving() {
                self.server = Some(server);
                return Ok(Loaded::Up);
            }
            let failed = server.engine().and_then(|engine| engine.failure());
            if let Some(why) = server.refusal().map(str::to_owned).or(failed.map(|why| why.to_string())) {
                return Ok(Loaded::Refused(why));
            }
        }
        Err(self.hang("the server does not load"))
    }

    pub(super) fn store_options(&self) -> StoreOptions {
        let mut options = StoreOptions::new(*b"a simulated one.");
        options.history = HistoryLimits::last(10_000);
        options.log_file_bytes = self.options.log_file_bytes;
        options.checkpoint_after_bytes = self.options.checkpoint_after_bytes;
        options.segment_bytes = self.options.segment_bytes;
        options.block_bytes = self.options.block_bytes;
        options.background_step_bytes = self.options.background_step_bytes as usize;
        options.bounds = self.bounds.store.clone();
        options
    }
}

/// Whether the text contains the name of a file or of a directory of the disk, or of the file whose look failed. An opening also looks
/// whether a file is there, so that file may be absent.
pub(super) fn names_a_file(disk: &SimDisk, text: &str) -> bool {
    if disk.failed_look().is_some_and(|file| text.contains(&file)) {
        return true;
    }
    let files = disk.files();
    let dirs = files.iter().filter_map(|(name, _)| name.split_once('/')).map(|(dir, _)| dir);
    files.iter().map(|(name, _)| name.as_str()).chain(dirs).any(|name| text.contains(name))
}

pub(super) fn refused(why: &str) -> Violation {
    let what = format!("refuses to start, though nothing that was synced is damaged: {why}");
    // `P1`, because a task that the server acknowledged is neither delivered nor listed any more.
    Violation { promise: "P1", what, story: Vec::new() }
}
