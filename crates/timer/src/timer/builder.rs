//! [`TimerBuilder`]: the settings of a timer.

use std::error::Error;
use std::fmt;
use std::io;
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use super::common::{Common, Source};
use super::core::Core;
use super::lateness::Recorder;
use super::limit::Limit;
use super::nap::{Nap, Sleeper};
use super::owner::Timer;
use crate::sync::atomic::AtomicU64;
use crate::sync::thread;
use crate::{Clock, Executor, Motion, Pool, SystemClock};

/// The shortest tick. With a shorter one the driver would use all its time for waking up.
const SHORTEST: Duration = Duration::from_micros(1);

/// The longest tick. A deadline is rounded up to a tick, so a longer tick would make tasks too late.
const LONGEST: Duration = Duration::from_secs(3_600);

/// The number of shards per core, so that two threads rarely use the same shard.
const SHARDS_PER_CORE: usize = 4;
const SHARDS_AT_MOST: usize = 64;

/// The settings of a [`Timer`]. Each setting has a default that is right for a server.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::Timer;
///
/// let timer = Timer::builder().tick(Duration::from_millis(10)).max_pending(1_000_000).build()?;
/// # Ok::<(), tickwheel::BuildError>(())
/// ```
#[must_use = "a timer is made by `build`"]
pub struct TimerBuilder {
    tick: Duration,
    max_pending: Option<usize>,
    executor: Option<Box<dyn Executor>>,
    clock: Source,
    lateness: bool,
}

/// The reason why a timer could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The tick is zero, or out of range.
    Tick {
        /// The requested tick.
        tick: Duration,
    },
    /// The limit of pending tasks is zero.
    NoRoom,
    /// The system could not start a thread for the driver.
    Thread(io::Error),
}

impl TimerBuilder {
    pub(super) fn new() -> Self {
        Self {
            tick: Duration::from_millis(1),
            max_pending: None,
            executor: None,
            clock: Source::System(SystemClock::new()),
            lateness: false,
        }
    }

    /// Sets the tick: a deadline is rounded up to the next tick, so a task is up to one tick late, and never early. The default is 1 ms;
    /// the range is 1 us to 1 h.
    ///
    /// A shorter tick makes the driver wake up more often while tasks come due; while none does, the driver sleeps.
    pub fn tick(self, tick: Duration) -> Self {
        Self { tick, ..self }
    }

    /// Allows at most `most` pending tasks and sleeps; further ones are [refused](crate::Refused). By default there is no limit except the
    /// memory.
    ///
    /// The alarm of a waiter of a [`DelayQueue`](crate::DelayQueue) counts, but is never refused. Apart from these alarms the limit is
    /// exact. Its cost is one counter that all threads share.
    pub fn max_pending(self, most: usize) -> Self {
        Self { max_pending: Some(most), ..self }
    }

    /// Sets the executor that runs bodies. The default is a separate [`Pool`] for this timer, with as many threads as the machine has
    /// cores, and at least two.
    pub fn executor(self, executor: impl Executor + 'static) -> Self {
        Self { executor: Some(Box::new(executor)), ..self }
    }

    /// The clock; the default is a [`SystemClock`] that starts with this builder. With a clock that is moved by hand,
    /// such as [`ManualClock`](crate::ManualClock), the timer has no thread.
    pub fn clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Source::Other(Arc::new(clock)), ..self }
    }

    /// Records how late each body begins, for [`Metrics::lateness`](crate::Metrics::lateness). The cost is one reading of the clock for
    /// each body.
    pub fn measure_lateness(self) -> Self {
        Self { lateness: true, ..self }
    }

    /// Makes the timer, and starts its driver.
    ///
    /// # Errors
    /// [`BuildError`]: a tick out of range, a limit of zero, or no thread for the driver.
    pub fn build(self) -> Result<Timer, BuildError> {
        if !(SHORTEST..=LONGEST).contains(&self.tick) {
            return Err(BuildError::Tick { tick: self.tick });
        }
        let tick_nanos = u64::try_from(self.tick.as_nanos()).ok().and_then(NonZeroU64::new);
        let tick_nanos = tick_nanos.ok_or(BuildError::Tick { tick: self.tick })?;
        let most = match self.max_pending {
            Some(most) => Some(NonZeroUsize::new(most).ok_or(BuildError::NoRoom)?),
            None => None,
        };
        let common = Common {
            clock: self.clock,
            tick_nanos,
            nap: Nap::new(),
            limit: Limit::new(most),
            refused: AtomicU64::new(0),
            lateness: self.lateness.then(Recorder::new),
        };
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let shards = (cores * SHARDS_PER_CORE).next_power_of_two().min(SHARDS_AT_MOST);
        let executor = self.executor.unwrap_or_else(|| Box::new(Pool::default()));
        let core = Arc::new(Core::new(Arc::new(common), shards, executor));
        let motion = core.follow();
        if motion == Motion::Real {
            let driven = Arc::clone(&core);
            let driver = thread::Builder::new()
                .name("tickwheel-timer".into())
                .spawn(move || driven.drive())
                .map_err(BuildError::Thread)?;
            core.common.nap.belongs_to(Sleeper::Thread(driver.thread().clone()));
        }
        Ok(Timer::of(core, motion))
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tick { tick } => {
                write!(f, "a tick of {tick:?} is outside {SHORTEST:?} to {LONGEST:?}; 1 ms suits most")
            }
            Self::NoRoom => {
                f.write_str("`max_pending` of 0 would refuse every task; leave it out for no limit")
            }
            Self::Thread(_) => f.write_str("the system gave no thread for the timer's driver"),
        }
    }
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Thread(error) => Some(error),
            Self::Tick { .. } | Self::NoRoom => None,
        }
    }
}

impl fmt::Debug for TimerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerBuilder")
            .field("tick", &self.tick)
            .field("max_pending", &self.max_pending)
            .field("lateness", &self.lateness)
            .finish_non_exhaustive()
    }
}
