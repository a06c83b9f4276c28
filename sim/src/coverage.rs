//! What runs have met: a pass is worth as much as this says.

use std::fmt;
use std::ops::AddAssign;

use crate::disk::Calls;

/// Counts over one run, or over many.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Calls of clients.
    pub calls: u64,
    /// Tasks delivered before the faults ended.
    pub delivered: u64,
    /// Crashes of a running server.
    pub crashes: u64,
    /// Those that met open calls.
    pub crashes_with_open_calls: u64,
    /// Crashes while the server recovered.
    pub crashes_in_recovery: u64,
    /// Graceful stops.
    pub stops: u64,
    /// Checkpoints begun.
    pub checkpoints: u64,
    /// Torn tails that recovery cut.
    pub torn: u64,
    /// Stores that failed and were read-only until killed.
    pub poisoned: u64,
    /// Answers lost on their way.
    pub lost: u64,
    /// Jumps of the wall clock.
    pub jumps: u64,
    /// Whole lists compared.
    pub lists: u64,
    /// Pairs of recoveries compared.
    pub twins: u64,
    /// Keys that the oracle could not follow to the end.
    pub given_up: u64,
    /// Calls of the disk.
    pub disk: Calls,
}

impl AddAssign for Coverage {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.delivered += other.delivered;
        self.crashes += other.crashes;
        self.crashes_with_open_calls += other.crashes_with_open_calls;
        self.crashes_in_recovery += other.crashes_in_recovery;
        self.stops += other.stops;
        self.checkpoints += other.checkpoints;
        self.torn += other.torn;
        self.poisoned += other.poisoned;
        self.lost += other.lost;
        self.jumps += other.jumps;
        self.lists += other.lists;
        self.twins += other.twins;
        self.given_up += other.given_up;
        self.disk.writes += other.disk.writes;
        self.disk.syncs += other.disk.syncs;
        self.disk.names += other.disk.names;
        self.disk.dir_syncs += other.disk.dir_syncs;
        self.disk.damaged += other.disk.damaged;
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: u64, all: u64| (part * 100).checked_div(all).unwrap_or(0);
        writeln!(f, "calls {}, delivered {}, answers lost {}", self.calls, self.delivered, self.lost)?;
        writeln!(
            f,
            "crashes {} ({} % with calls open), {} more in recovery; graceful stops {}; failed stores {}",
            self.crashes,
            percent(self.crashes_with_open_calls, self.crashes),
            self.crashes_in_recovery,
            self.stops,
            self.poisoned
        )?;
        writeln!(
            f,
            "checkpoints {}, torn tails cut {}, recoveries compared {}, lists compared {}, wall jumps {}",
            self.checkpoints, self.torn, self.twins, self.lists, self.jumps
        )?;
        writeln!(
            f,
            "disk: writes {}, syncs {}, names changed {}, directory syncs {}; changes lost or torn {}",
            self.disk.writes, self.disk.syncs, self.disk.names, self.disk.dir_syncs, self.disk.damaged
        )?;
        write!(f, "keys the oracle gave up on: {}", self.given_up)
    }
}
