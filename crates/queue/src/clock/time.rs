//! The source of the driver's time: the machine's clocks, or a clock that stands still until it is moved.

use std::time::{Duration, SystemTime};

use tickwheel::{Clock, SystemClock};
use tickwheel_engine::{NextWake, Now, Timestamp};
use tickwheel_store::{ClockNote, WallClock, WallSpan};

use super::wall::{Reading, WallGuard, Written, split};
use crate::notice::ClockChange;

/// The longest wait. After each wait both clocks are read again, so a step of the wall clock is noticed in time.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Returns the time of the system's wall clock, rounded down to the millisecond. Backups use this clock even if the queue has a virtual
/// clock.
#[must_use]
pub fn system_now() -> Timestamp {
    i64::try_from(since_1970().as_millis()).ok().and_then(Timestamp::from_ms).unwrap_or(Timestamp::EPOCH)
}

/// Returns the time since 1970, by the system's wall clock. If the clock shows a time before 1970, it was never set, and 0 is returned.
fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// The state of the wall clock, for the health of a shard.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct ClockStatus {
    /// The number of steps that were noticed.
    pub steps: u64,
    /// How far the wall clock is ahead of the time by which tasks fall due (ms).
    pub offset_ms: i64,
    /// By how much the wall clock may be ahead of the believed wall clock, if no step is doubted.
    pub width: Duration,
}

/// The clocks of one shard, real or virtual. The wall clock is that of the machine, or the one that all processes go by that share the data.
#[derive(Debug)]
pub(crate) enum Time {
    Real {
        clock: SystemClock,
        guard: Box<WallGuard>,
        source: Option<WallClock>,
        /// The boot of this machine; `None`: the system does not tell, or the wall clock is not that of this machine.
        boot: Option<u128>,
    },
    Virtual {
        mono_ns: u64,
        wall_ns: i128,
    },
}

impl Time {
    pub(crate) fn real() -> Self {
        Self::going_on(None, &[], Timestamp::EPOCH)
    }

    /// Returns real time. The wall clock is `source`, if there is one. `notes` are those of earlier processes, and `last` is the last wall time in
    /// the data; [`Timestamp::EPOCH`]: there is none.
    pub(crate) fn going_on(source: Option<WallClock>, notes: &[ClockNote], last: Timestamp) -> Self {
        let clock = SystemClock::new();
        let boot = if source.is_none() { boot_id() } else { None };
        let written = written(notes, boot, last);
        let guard = Box::new(WallGuard::going_on(read(&clock, source.as_ref()), written));
        Self::Real { clock, guard, source, boot }
    }

    /// Returns how far the wall clock was ahead of what earlier processes have written down when this time began.
    pub(crate) fn ahead_at_start(&self) -> Duration {
        let ahead_ns = match self {
            Self::Real { guard, .. } => guard.ahead_at_start_ns().max(0),
            Self::Virtual { .. } => 0,
        };
        Duration::from_nanos(u64::try_from(ahead_ns).unwrap_or(u64::MAX))
    }

    /// Returns the wall clock that is believed, to be written down for a later process.
    pub(crate) fn note(&self) -> Option<ClockNote> {
        let Self::Real { guard, boot: Some(boot), .. } = self else { return None };
        let (boot_ns, wall_ns, held_ns) = guard.to_write();
        Some(ClockNote { boot: *boot, boot_ns, wall_ns: u64::try_from(wall_ns).ok()?, held_ns })
    }

    pub(crate) fn virtual_at(start: Timestamp) -> Self {
        Self::Virtual { mono_ns: 0, wall_ns: i128::from(start.as_ms()) * 1_000_000 }
    }

    pub(crate) fn now(&mut self) -> Now {
        let (mono_ns, wall_ns, wall_width_ns, held_ms) = match self {
            Self::Real { clock, guard, source, .. } => {
                let reading = read(clock, source.as_ref());
                let believed_ns = guard.observe(reading);
                (reading.mono_ns, believed_ns, guard.width_ns(), guard.held_ms())
            }
            Self::Virtual { mono_ns, wall_ns } => (*mono_ns, *wall_ns, 0, 0),
        };
        let (wall, wall_sub_ns) = split(wall_ns);
        Now { mono_ns, wall, wall_sub_ns, wall_width_ns, held_ms }
    }

    /// Returns how long to wait for `wake`, at most [`WAIT_MAX`]. With a virtual clock this is always [`WAIT_MAX`], because only a call
    /// moves the clock.
    pub(crate) fn wait(&mut self, wake: NextWake) -> Duration {
        if self.is_virtual() {
            return WAIT_MAX;
        }
        let now = self.now();
        until(now, wake).map_or(WAIT_MAX, |wait| wait.min(WAIT_MAX))
    }

    /// Returns the date for a pin of a backup: the believed wall clock, or the system's wall clock if the queue has a virtual clock.
    pub(crate) fn stamp(&mut self) -> Timestamp {
        match self {
            Self::Real { .. } => self.now().wall,
            Self::Virtual { .. } => system_now(),
        }
    }

    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual { .. })
    }

    /// Moves a virtual clock by `by`: its wall time and its monotonic time.
    pub(crate) fn advance(&mut self, by: Duration) {
        match self {
            Self::Real { .. } => unreachable!("only a virtual clock is moved by hand"),
            Self::Virtual { mono_ns, wall_ns } => {
                *mono_ns = mono_ns.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX));
                *wall_ns += i128::try_from(by.as_nanos()).unwrap_or(0);
            }
        }
    }

    /// Returns the changes of the wall clock since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<ClockChange> {
        match self {
            Self::Real { guard, .. } => guard.take_changes().collect(),
            Self::Virtual { .. } => Vec::new(),
        }
    }

    /// Returns the state of the wall clock. A virtual clock has no steps and is known exactly.
    pub(crate) fn clock_status(&self) -> ClockStatus {
        match self {
            Self::Real { guard, .. } => ClockStatus {
                steps: guard.steps(),
                offset_ms: i64::try_from(guard.offset_ns() / 1_000_000).unwrap_or(i64::MAX),
                width: Duration::from_nanos(guard.width_ns()),
            },
            Self::Virtual { .. } => ClockStatus::default(),
        }
    }
}

/// Returns the time from `now` to the earlier of the two wakes, each on its own clock; `None` if there is no wake. The wake by the wall clock
/// is one of what falls due. While that is held back, the queue looks once in [`WAIT_MAX`] for what goes by the wall clock itself.
pub(crate) fn until(now: Now, wake: NextWake) -> Option<Duration> {
    let by_wall = wake.wall.map(|at| {
        Duration::from_millis(at.ms_since(now.falls_due()))
            .saturating_sub(Duration::from_nanos(now.wall_sub_ns.into()))
    });
    let by_mono =
        wake.mono_ms.map(|ms| Duration::from_millis(ms).saturating_sub(Duration::from_nanos(now.mono_ns)));
    [by_wall, by_mono].into_iter().flatten().min()
}

fn read(clock: &SystemClock, source: Option<&WallClock>) -> Reading {
    // The wall clock is read first. A worker is told the end of its lease on the wall clock, and the shard ends the lease by the monotonic
    // clock. So the time between the two readings makes the lease longer, never shorter.
    let of_source = source.and_then(WallClock::now);
    let wall = of_source.unwrap_or_else(|| WallSpan::exact(since_1970().as_nanos() as i128));
    let mono_ns = clock.now().as_nanos();
    Reading { mono_ns, boot_ns: boot_ns(mono_ns), wall_ns: wall.from_ns, width_ns: wall.width_ns() }
}

/// Returns what the notes and the last wall time in the data say.
fn written(notes: &[ClockNote], boot: Option<u128>, last: Timestamp) -> Written {
    let of_this_boot = notes.iter().filter(|note| Some(note.boot) == boot).max_by_key(|note| note.boot_ns);
    if let Some(ClockNote { boot: _, boot_ns, wall_ns, held_ns }) = of_this_boot.copied() {
        return Written::SameBoot { boot_ns, wall_ns: wall_ns.into(), held_ns };
    }
    // A stop wrote its note after the last commit.
    let noted_ns = notes.iter().map(|note| note.wall_ns.saturating_sub(note.held_ns).into());
    match noted_ns.fold(i128::from(last.as_ms()) * 1_000_000, i128::max) {
        0 => Written::Nothing,
        wall_ns => Written::OtherBoot { wall_ns },
    }
}

/// Returns the number that the kernel drew for this boot; `None`: the system does not tell.
fn boot_id() -> Option<u128> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
}

#[cfg(target_os = "linux")]
fn boot_ns(_mono_ns: u64) -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Without a boot-time clock, a suspend looks like a step of the wall clock. A long suspend is then doubted for one minute.
#[cfg(not(target_os = "linux"))]
fn boot_ns(mono_ns: u64) -> u64 {
    mono_ns
}
