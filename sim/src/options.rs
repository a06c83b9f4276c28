//! The options of one run. All are drawn from its seed and printed, and they can be set again to replay the run.

use std::fmt;

use crate::edges;
use crate::rng::Rng;

/// The options of one run. "Per mille of steps": the number of steps in a thousand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The number of clients. Each has one call at a time.
    pub clients: u64,
    /// The number of queues that the clients use.
    pub queues: u64,
    /// The number of keys in each queue.
    pub keys: u64,
    /// The number of calls before the liveness phase begins. If crashes or a checkpoint are missing by then, more calls
    /// are made.
    pub calls: u64,
    /// The least number of crashes before the liveness phase begins.
    pub crashes: u64,
    /// One step in this number, on average, plans a crash of the machine at one of the next 12 changing calls of the disk.
    pub crash_every: u64,
    /// The horizon: how far ahead the due instants of tasks in memory reach (ms).
    pub horizon_ms: u64,
    /// The size of a log file (bytes).
    pub log_file_bytes: u64,
    /// The size of the log after which a checkpoint begins (bytes).
    pub checkpoint_after_bytes: u64,
    /// The size of one step of background work (bytes).
    pub background_step_bytes: u64,
    /// The size of a segment of far tasks (bytes).
    pub segment_bytes: u64,
    /// The size of the block of records that a scan reads at once (bytes).
    pub block_bytes: u64,
    /// Percent of steps in which the disk may work.
    pub disk_percent: u64,
    /// Percent of steps at which time passes.
    pub time_percent: u64,
    /// The first reading of the wall clock (ms since the Unix epoch).
    pub wall_start_ms: u64,
    /// 1: the server believes the wall clock after a check of its steps. 0: it believes every step at once.
    pub guarded: u64,
    /// Per mille of steps at which the wall clock jumps.
    pub jump_permille: u64,
    /// Per mille of steps at which the wall clock stops for some passes of time.
    pub freeze_permille: u64,
    /// The largest difference in speed between the wall clock and the other clocks (per mille, at most 500).
    pub slew_permille: u64,
    /// Per mille of steps at which time passes, up to 30 days, without a turn of the server.
    pub stall_permille: u64,
    /// Percent of tasks that are due in hours, days or years.
    pub far_percent: u64,
    /// Percent of calls that put a task of the crowd: many keys whose tasks fall due close together.
    pub crowd_percent: u64,
    /// Percent of payloads that have more than 4 KiB.
    pub big_percent: u64,
    /// Percent of calls that are late, lost or sent twice.
    pub net_percent: u64,
    /// Percent of replies that get lost.
    pub lost_percent: u64,
    /// Percent of lease answers that reach no worker, of which the server is told at once.
    pub undelivered_percent: u64,
    /// Percent of calls without an answer that their client repeats.
    pub retry_percent: u64,
    /// Percent of starts of the server after which a write or a sync fails.
    pub error_percent: u64,
    /// The budget of near memory (bytes).
    pub near_bytes: u64,
    /// Percent of starts of the server during which a read fails, and of those after which one fails.
    pub read_error_percent: u64,
    /// Per mille of steps at which the disk becomes full, or has space again.
    pub full_permille: u64,
    /// Percent of power cuts after which damaged copies of the disk are opened, and of starts after which a sync lies.
    pub probe_percent: u64,
    /// Percent of polls of the disk in which its lanes slip: the calls of commits, reads and background work mix.
    pub slip_percent: u64,
    /// Percent of calls that set limits, pause, drain or delete a queue: the *holds*.
    pub holds_percent: u64,
    /// Percent of the holds that drain a queue or limit its backlog. Holds that delete a queue do not count.
    pub drain_percent: u64,
    /// Percent of steps at which the planner makes a call about its schedules.
    pub schedules_percent: u64,
    /// Percent of the holds that set a rate, or a pause that ends by itself. Holds that delete or drain a queue or
    /// limit its backlog do not count.
    pub rate_percent: u64,
    /// Percent of the schedules that have a start or an end.
    pub bounds_percent: u64,
    /// Per mille of steps at which a forecast is taken, if no call is open.
    pub forecast_permille: u64,
    /// Percent of the payloads that may bring an expiry, a back-off and a timeline, and percent of the upserts that are debounced.
    pub terms_percent: u64,
    /// Percent of the calls that name a task by its id, and of the nacks that bury it or come from a closed connection.
    pub by_id_percent: u64,
    /// How far the wall clock is inside a millisecond when the monotonic clock begins one (ns).
    pub wall_sub_ns: u64,
    /// Per mille of steps at which the wall clock goes back and returns later.
    pub glitch_permille: u64,
    /// Percent of the bounds that are small. Each bound limits one step of work of the store or the engine.
    pub tight_percent: u64,
    /// Percent of the holds that delete a queue.
    pub delete_percent: u64,
    /// Percent of steps at which the keeper makes a call about its jobs.
    pub jobs_percent: u64,
    /// Percent of the calls that import a task.
    pub import_percent: u64,
    /// Per mille of steps at which another node takes the shard, and of those at which the ownership is in doubt.
    pub owners_permille: u64,
    /// Percent of steps at which the pusher makes a call about its targets. 0: there are no targets, and no nack is undeliverable or has a
    /// floor.
    pub targets_percent: u64,
    /// Percent of the graceful stops after which the wall clock jumps before the start.
    pub stopped_jump_percent: u64,
    /// Per mille of steps at which the rules of a time zone change, which some schedules are in. 0: no schedule is in that zone.
    pub zones_permille: u64,
}

/// The name of an option, and its field.
type Field = (&'static str, fn(&mut Options) -> &mut u64);

const FIELDS: [Field; 51] = [
    ("clients", |o| &mut o.clients),
    ("queues", |o| &mut o.queues),
    ("keys", |o| &mut o.keys),
    ("calls", |o| &mut o.calls),
    ("crashes", |o| &mut o.crashes),
    ("crash-every", |o| &mut o.crash_every),
    ("horizon-ms", |o| &mut o.horizon_ms),
    ("log-file-bytes", |o| &mut o.log_file_bytes),
    ("checkpoint-after-bytes", |o| &mut o.checkpoint_after_bytes),
    ("background-step-bytes", |o| &mut o.background_step_bytes),
    ("segment-bytes", |o| &mut o.segment_bytes),
    ("block-bytes", |o| &mut o.block_bytes),
    ("disk-percent", |o| &mut o.disk_percent),
    ("time-percent", |o| &mut o.time_percent),
    ("wall-start-ms", |o| &mut o.wall_start_ms),
    ("guarded", |o| &mut o.guarded),
    ("jump-permille", |o| &mut o.jump_permille),
    ("freeze-permille", |o| &mut o.freeze_permille),
    ("slew-permille", |o| &mut o.slew_permille),
    ("stall-permille", |o| &mut o.stall_permille),
    ("far-percent", |o| &mut o.far_percent),
    ("crowd-percent", |o| &mut o.crowd_percent),
    ("big-percent", |o| &mut o.big_percent),
    ("net-percent", |o| &mut o.net_percent),
    ("lost-percent", |o| &mut o.lost_percent),
    ("undelivered-percent", |o| &mut o.undelivered_percent),
    ("retry-percent", |o| &mut o.retry_percent),
    ("error-percent", |o| &mut o.error_percent),
    ("near-bytes", |o| &mut o.near_bytes),
    ("read-error-percent", |o| &mut o.read_error_percent),
    ("full-permille", |o| &mut o.full_permille),
    ("probe-percent", |o| &mut o.probe_percent),
    ("slip-percent", |o| &mut o.slip_percent),
    ("holds-percent", |o| &mut o.holds_percent),
    ("drain-percent", |o| &mut o.drain_percent),
    ("schedules-percent", |o| &mut o.schedules_percent),
    ("rate-percent", |o| &mut o.rate_percent),
    ("bounds-percent", |o| &mut o.bounds_percent),
    ("forecast-permille", |o| &mut o.forecast_permille),
    ("terms-percent", |o| &mut o.terms_percent),
    ("by-id-percent", |o| &mut o.by_id_percent),
    ("wall-sub-ns", |o| &mut o.wall_sub_ns),
    ("glitch-permille", |o| &mut o.glitch_permille),
    ("tight-percent", |o| &mut o.tight_percent),
    ("delete-percent", |o| &mut o.delete_percent),
    ("import-percent", |o| &mut o.import_percent),
    ("jobs-percent", |o| &mut o.jobs_percent),
    ("owners-permille", |o| &mut o.owners_permille),
    ("targets-percent", |o| &mut o.targets_percent),
    ("stopped-jump-percent", |o| &mut o.stopped_jump_percent),
    ("zones-permille", |o| &mut o.zones_permille),
];

impl Options {
    /// Draws the options of a seed. They differ much from seed to seed.
    #[must_use]
    pub fn of_seed(rng: &mut Rng) -> Self {
        Self {
            clients: rng.between(3, 6),
            queues: rng.between(1, 4),
            keys: rng.pick(&[2, 3, 5, 8, 8, 40]),
            calls: rng.between(200, 320),
            crashes: rng.between(2, 5),
            crash_every: rng.pick(&[40, 80, 150]),
            horizon_ms: rng.pick(&[2, 50, 1_000, 3_600_000, 8_640_000_000]),
            log_file_bytes: rng.pick(&[8_192, 16_384, 65_536]),
            checkpoint_after_bytes: rng.pick(&[2_000, 8_000, 20_000]),
            background_step_bytes: rng.pick(&[4_096, 16_384]),
            segment_bytes: rng.pick(&[1_024, 4_096, 65_536]),
            block_bytes: rng.pick(&[256, 4_096]),
            disk_percent: rng.pick(&[30, 70, 100]),
            time_percent: rng.pick(&[10, 30]),
            wall_start_ms: rng.pick(&edges::STARTS_MS),
            guarded: rng.below(2),
            jump_permille: rng.pick(&[0, 0, 5, 30]),
            freeze_permille: rng.pick(&[0, 0, 5]),
            slew_permille: rng.pick(&[0, 0, 1, 20]),
            stall_permille: rng.pick(&[0, 0, 3]),
            far_percent: rng.pick(&[2, 10, 40]),
            crowd_percent: rng.pick(&[0, 0, 0, 60]),
            big_percent: rng.pick(&[0, 0, 2, 15]),
            net_percent: rng.pick(&[0, 0, 10]),
            lost_percent: rng.pick(&[0, 3, 10]),
            undelivered_percent: rng.pick(&[0, 5]),
            retry_percent: rng.pick(&[0, 50, 100]),
            error_percent: rng.pick(&[0, 0, 20]),
            near_bytes: rng.pick(&[2_000, 20_000, 256 << 20]),
            read_error_percent: rng.pick(&[0, 0, 20]),
            full_permille: rng.pick(&[0, 0, 10]),
            probe_percent: rng.pick(&[0, 3, 10]),
            slip_percent: rng.pick(&[0, 50, 95]),
            holds_percent: rng.pick(&[0, 2, 6]),
            schedules_percent: rng.pick(&[0, 0, 10, 40]),
            // Drawn last, so that the other choices of older seeds stay the same.
            drain_percent: rng.pick(&[0, 30]),
            rate_percent: rng.pick(&[0, 40]),
            bounds_percent: rng.pick(&[0, 40]),
            forecast_permille: rng.pick(&[0, 20]),
            terms_percent: rng.pick(&[0, 15, 50]),
            by_id_percent: rng.pick(&[0, 5, 20]),
            wall_sub_ns: edges::part_of_a_millisecond(rng),
            glitch_permille: rng.pick(&[0, 0, 10]),
            tight_percent: rng.pick(&[0, 50, 100]),
            delete_percent: rng.pick(&[0, 30]),
            import_percent: rng.pick(&[0, 5, 20]),
            jobs_percent: rng.pick(&[0, 0, 5, 20]),
            owners_permille: rng.pick(&[0, 0, 0, 10, 40]),
            targets_percent: rng.pick(&[0, 0, 5, 20]),
            stopped_jump_percent: rng.pick(&[0, 0, 50]),
            zones_permille: rng.pick(&[0, 0, 10, 50]),
        }
    }

    /// The names of all options.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FIELDS.iter().map(|(name, _)| *name)
    }

    /// The value of the option of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        let (_, field) = FIELDS.iter().find(|(known, _)| *known == name)?;
        Some(*field(&mut self.clone()))
    }

    /// Sets the options that `text` names, in the form in which a failure prints them: `keys=3,calls=40`.
    ///
    /// # Errors
    /// A sentence about the part of `text` that is not an option.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("`{part}` is not of the form name=number"))?;
            let known = FIELDS.iter().find(|(known, _)| *known == name);
            let names = || FIELDS.map(|(name, _)| name).join(", ");
            let (_, field) = known.ok_or_else(|| format!("`{name}` is no option; there are {}", names()))?;
            *field(self) = value.parse().map_err(|_| format!("`{value}` is no number, in `{part}`"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = self.clone();
        for (at, (name, field)) in FIELDS.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{name}={}", field(&mut copy))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_options_set_themselves_again() {
        for seed in 0..50 {
            let options = Options::of_seed(&mut Rng::new(seed));
            let mut other = Options::of_seed(&mut Rng::new(seed + 1));
            other.set(&options.to_string()).expect("they were printed");
            assert_eq!(other, options);
        }
    }

    #[test]
    fn what_is_no_option_is_named() {
        let mut options = Options::of_seed(&mut Rng::new(0));
        assert!(options.set("keys").expect_err("no number").contains("`keys`"));
        assert!(options.set("kees=3").expect_err("no option").contains("`kees`"));
        assert!(options.set("keys=x").expect_err("no number").contains("`x`"));
    }
}
