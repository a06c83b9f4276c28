//! Counts of the situations that runs have met. A run that passes proves nothing about a situation that it has not met.

use std::fmt;
use std::ops::AddAssign;

use crate::disk::Calls;

/// Counts over one run, or over many.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// The number of runs.
    pub seeds: u64,
    /// Steps of all runs.
    pub steps: u64,
    /// Calls of clients.
    pub calls: u64,
    /// Calls of the planner, about schedules and their tasks.
    pub planned: u64,
    /// Calls of the keeper, about jobs.
    pub kept: u64,
    /// Calls of the pusher, about targets.
    pub pushed: u64,
    /// Calls repeated because no answer came.
    pub retries: u64,
    /// Calls that the network delayed, repeated or lost.
    pub mishaps: u64,
    /// Lease answers that reached no worker, of which the server was told.
    pub undelivered: u64,
    /// Tasks delivered before the faults ended.
    pub delivered: u64,
    /// Calls that cancel a task by its key.
    pub cancels: u64,
    /// Cancels that were sent at most 5 ms before or after the due instant of the task.
    pub cancels_near_due: u64,
    /// Crashes of a running server.
    pub crashes: u64,
    /// Crashes that met open calls.
    pub crashes_with_open_calls: u64,
    /// Crashes while the server recovered.
    pub crashes_in_recovery: u64,
    /// Graceful stops.
    pub stops: u64,
    /// Times that another node took the shard.
    pub takeovers: u64,
    /// Times that the ownership of the shard was in doubt and then renewed.
    pub doubts: u64,
    /// Checkpoints begun.
    pub checkpoints: u64,
    /// Torn tails that recovery cut.
    pub torn: u64,
    /// Stores that failed, and were read-only until the server was killed.
    pub poisoned: u64,
    /// Starts refused because a read failed.
    pub refused_reads: u64,
    /// Times the disk became full.
    pub full: u64,
    /// Calls refused because there was no space.
    pub refused_full: u64,
    /// Answers lost on their way.
    pub lost: u64,
    /// Jumps of the wall clock.
    pub jumps: u64,
    /// Times that the wall clock went back and was to return later.
    pub glitches: u64,
    /// Times the wall clock stood still.
    pub freezes: u64,
    /// Times that the rules of a time zone changed, which a schedule is in.
    pub zones: u64,
    /// Starts that held back what fell due, because the wall clock was far ahead of what was written down.
    pub holds: u64,
    /// Times that a long time passed (up to 30 days) without a turn of the server.
    pub stalls: u64,
    /// Whole lists compared.
    pub lists: u64,
    /// Forecasts compared.
    pub forecasts: u64,
    /// Rates that were configured, and pauses that end by themselves.
    pub gates: u64,
    /// Queues that were deleted.
    pub forgotten: u64,
    /// Deletes that were refused because the queue had a task.
    pub not_empty: u64,
    /// Checks of a sleeping server while a lease call waited in it.
    pub waits: u64,
    /// Pairs of recoveries compared.
    pub twins: u64,
    /// Damaged copies opened.
    pub damages: u64,
    /// Copies opened in which a sync had lied.
    pub lies: u64,
    /// Damaged copies and copies with a lying sync that the store refused to open, naming the file.
    pub damages_refused: u64,
    /// Such copies that were opened with a report of what is missing.
    pub damages_reported: u64,
    /// Such copies of which nothing was missing.
    pub damages_harmless: u64,
    /// Damaged copies that were salvaged.
    pub salvages: u64,
    /// Salvages that lost nothing.
    pub salvages_whole: u64,
    /// Keys that the oracle gave up.
    pub given_up: u64,
    /// Calls of the disk, by kind.
    pub disk: Calls,
}

impl Coverage {
    /// Whether the run met what every run has to meet: 200 calls, 2 crashes, a checkpoint.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.calls >= 200 && self.crashes >= 2 && self.checkpoints >= 1
    }

    /// The number of faults of all kinds together.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.crashes
            + self.crashes_in_recovery
            + self.takeovers
            + self.doubts
            + self.disk.damaged
            + self.poisoned
            + self.refused_reads
            + self.full
            + self.lost
            + self.mishaps
            + self.undelivered
            + self.jumps
            + self.glitches
            + self.holds
            + self.freezes
            + self.stalls
            + self.damages
            + self.lies
    }
}

impl AddAssign for Coverage {
    fn add_assign(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.steps += other.steps;
        self.calls += other.calls;
        self.planned += other.planned;
        self.kept += other.kept;
        self.pushed += other.pushed;
        self.retries += other.retries;
        self.mishaps += other.mishaps;
        self.undelivered += other.undelivered;
        self.delivered += other.delivered;
        self.cancels += other.cancels;
        self.cancels_near_due += other.cancels_near_due;
        self.crashes += other.crashes;
        self.crashes_with_open_calls += other.crashes_with_open_calls;
        self.crashes_in_recovery += other.crashes_in_recovery;
        self.stops += other.stops;
        self.takeovers += other.takeovers;
        self.doubts += other.doubts;
        self.checkpoints += other.checkpoints;
        self.torn += other.torn;
        self.poisoned += other.poisoned;
        self.refused_reads += other.refused_reads;
        self.full += other.full;
        self.refused_full += other.refused_full;
        self.lost += other.lost;
        self.jumps += other.jumps;
        self.glitches += other.glitches;
        self.holds += other.holds;
        self.zones += other.zones;
        self.freezes += other.freezes;
        self.stalls += other.stalls;
        self.lists += other.lists;
        self.forecasts += other.forecasts;
        self.gates += other.gates;
        self.forgotten += other.forgotten;
        self.not_empty += other.not_empty;
        self.waits += other.waits;
        self.twins += other.twins;
        self.damages += other.damages;
        self.lies += other.lies;
        self.damages_refused += other.damages_refused;
        self.damages_reported += other.damages_reported;
        self.damages_harmless += other.damages_harmless;
        self.salvages += other.salvages;
        self.salvages_whole += other.salvages_whole;
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
        writeln!(
            f,
            "calls {} in {} steps, delivered {}, cancels {} ({} % within 5 ms of due)",
            self.calls,
            self.steps,
            self.delivered,
            self.cancels,
            percent(self.cancels_near_due, self.cancels)
        )?;
        writeln!(
            f,
            "rates and timed pauses {}, queues forgotten {} (not empty {}), sleeps with a lease waiting {}; schedules: calls {}; jobs: calls {}; targets: calls {}; network: late, lost or doubled {}, answers lost {}, undelivered {}, asked again {}",
            self.gates,
            self.forgotten,
            self.not_empty,
            self.waits,
            self.planned,
            self.kept,
            self.pushed,
            self.mishaps,
            self.lost,
            self.undelivered,
            self.retries
        )?;
        let all_crashes = self.crashes + self.crashes_in_recovery;
        writeln!(
            f,
            "crashes {} ({} % with calls open), {} more in recovery ({} % of all); graceful stops {}; failed stores {}; takeovers {}, ownerships in doubt {}",
            self.crashes,
            percent(self.crashes_with_open_calls, self.crashes),
            self.crashes_in_recovery,
            percent(self.crashes_in_recovery, all_crashes),
            self.stops,
            self.poisoned,
            self.takeovers,
            self.doubts
        )?;
        writeln!(
            f,
            "checkpoints {}, torn tails cut {}, recoveries compared {}, lists {}, forecasts {}",
            self.checkpoints, self.torn, self.twins, self.lists, self.forecasts
        )?;
        writeln!(
            f,
            "wall clock: jumps {}, glitches {}, freezes {}, far ahead at a start {}; stalls {}; rules of a zone changed {}; full disks {}, calls refused for space {}",
            self.jumps,
            self.glitches,
            self.freezes,
            self.holds,
            self.stalls,
            self.zones,
            self.full,
            self.refused_full
        )?;
        writeln!(
            f,
            "disk: writes {}, syncs {}, names changed {}, directory syncs {}; changes lost or torn {}",
            self.disk.writes, self.disk.syncs, self.disk.names, self.disk.dir_syncs, self.disk.damaged
        )?;
        writeln!(
            f,
            "damaged copies {} and lying syncs {}: {} refused, {} reported, {} harmless; salvaged {}, {} of them whole; starts refused for a failed read {}",
            self.damages,
            self.lies,
            self.damages_refused,
            self.damages_reported,
            self.damages_harmless,
            self.salvages,
            self.salvages_whole,
            self.refused_reads
        )?;
        write!(f, "keys the oracle gave up on: {}", self.given_up)
    }
}
