//! A timer on a clock that stands still. Its bodies run on the thread that moves the clock, and record
//! when they ran.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tickwheel::{Clock, Job, ManualClock, Monotonic, Timeout, Timer, TimerBuilder};

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn at_ms(ms: u64) -> Monotonic {
    Monotonic::from_nanos(ms * 1_000_000)
}

/// Numbers that look random and are the same in each run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }
}

#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) clock: ManualClock,
    pub(crate) timer: Timer,
    log: Log,
}

/// When which body ran, in ms.
#[derive(Clone)]
pub(crate) struct Log {
    clock: ManualClock,
    lines: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Log {
    pub(crate) fn write(&self, name: u64) {
        let now = self.clock.now().as_nanos() / 1_000_000;
        self.lines.lock().unwrap().push((now, name));
    }
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(set: impl FnOnce(TimerBuilder) -> TimerBuilder) -> Self {
        Self::starting_at(0, set)
    }

    pub(crate) fn starting_at(start: u64, set: impl FnOnce(TimerBuilder) -> TimerBuilder) -> Self {
        let clock = ManualClock::starting_at(at_ms(start));
        let builder = Timer::builder().clock(clock.clone()).executor(Job::run);
        let timer = set(builder).build().unwrap();
        let log = Log { clock: clock.clone(), lines: Arc::default() };
        Self { clock, timer, log }
    }

    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    /// Schedules a body that records its name.
    pub(crate) fn schedule(&self, delay: Duration, name: u64) -> Timeout {
        let log = self.log();
        self.timer.schedule(delay, move || log.write(name)).unwrap()
    }

    pub(crate) fn advance(&self, by: u64) {
        self.clock.advance(ms(by));
    }

    /// The runs since the last call: tick and number of the task.
    pub(crate) fn ran(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut *self.log.lines.lock().unwrap())
    }
}
