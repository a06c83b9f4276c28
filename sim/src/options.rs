//! The options of one run, all drawn from its seed, printed, and set again to replay it.

use std::fmt;

use crate::edges;
use crate::rng::Rng;

/// The choices of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Clients with one call each at a time.
    pub clients: u64,
    /// Queues they use.
    pub queues: u64,
    /// Keys in each queue.
    pub keys: u64,
    /// Calls before the liveness phase begins; more if crashes or a checkpoint are still missing.
    pub calls: u64,
    /// The least number of crashes.
    pub crashes: u64,
    /// One step in this number crashes the server at a disk call.
    pub crash_every: u64,
    /// How far ahead tasks are kept in memory (ms).
    pub horizon_ms: u64,
    /// Bytes of a log file.
    pub log_file_bytes: u64,
    /// Bytes of log before a checkpoint.
    pub checkpoint_after_bytes: u64,
    /// Bytes of one step of background work.
    pub background_step_bytes: u64,
    /// Bytes of a segment of far tasks.
    pub segment_bytes: u64,
    /// Bytes of records that a scan reads at once.
    pub block_bytes: u64,
    /// Percent of turns in which the disk may work.
    pub disk_percent: u64,
    /// Percent of steps at which time passes.
    pub time_percent: u64,
    /// The first reading of the wall clock.
    pub wall_start_ms: u64,
    /// 1: the wall clock is believed as its guard says; 0: at once.
    pub guarded: u64,
    /// Steps in a thousand at which the wall clock jumps.
    pub jump_permille: u64,
    /// Steps in a thousand at which the wall clock stops for a while.
    pub freeze_permille: u64,
    /// How much faster or slower than the other clocks the wall clock may run.
    pub slew_permille: u64,
    /// Steps in a thousand at which the server gets no time for minutes, hours or days.
    pub stall_permille: u64,
    /// Percent of tasks that are due in hours, days or years.
    pub far_percent: u64,
    /// Percent of calls that put a task of one of many keys, to be due with the others of them.
    pub crowd_percent: u64,
    /// Percent of payloads of more than 4 KiB.
    pub big_percent: u64,
    /// Percent of calls that are late, lost or sent twice.
    pub net_percent: u64,
    /// Percent of replies that get lost.
    pub lost_percent: u64,
    /// Percent of deliveries that reach no worker, as the server learns at once.
    pub undelivered_percent: u64,
    /// Percent of calls without an answer that are made again.
    pub retry_percent: u64,
    /// Percent of lives in which a write or a sync fails.
    pub error_percent: u64,
    /// The budget of near memory (bytes).
    pub near_bytes: u64,
    /// Percent of lives in which a read fails.
    pub read_error_percent: u64,
    /// Steps in a thousand at which the disk becomes full, or has space again.
    pub full_permille: u64,
    /// Percent of crashes after which damaged copies of the disk are opened, too.
    pub probe_percent: u64,
    /// Percent of polls in which the lanes of the disk slip against each other.
    pub slip_percent: u64,
    /// Percent of calls that set limits or hold a queue.
    pub holds_percent: u64,
    /// Percent of the holds that drain a queue or bound its backlog. Holds that forget a queue do not count.
    pub drain_percent: u64,
    /// Percent of steps at which the planner does something with its schedules.
    pub schedules_percent: u64,
    /// Percent of the holds that set a rate, or a pause that ends by itself. Holds that forget or drain a queue or bound its backlog do not
    /// count.
    pub rate_percent: u64,
    /// Percent of the schedules that have a start or an end.
    pub bounds_percent: u64,
    /// Steps in a thousand at which a forecast is taken, if no call waits.
    pub forecast_permille: u64,
    /// Percent of the puts that expire, have a back-off or a timeline, or are debounced.
    pub terms_percent: u64,
    /// Percent of the calls that name a task by its id, and of the nacks that bury it or come from a closed
    /// connection.
    pub by_id_percent: u64,
    /// The part of a millisecond that the wall clock shows when the monotonic clock begins one (nanoseconds).
    pub wall_sub_ns: u64,
    /// Steps in a thousand at which the wall clock goes back for a while.
    pub glitch_permille: u64,
    /// Percent of the bounds of one step that are small: the sizes of the store's and the engine's work.
    pub tight_percent: u64,
    /// Percent of the holds that forget a queue.
    pub delete_percent: u64,
    /// Percent of steps at which the keeper does something with its jobs.
    pub jobs_percent: u64,
    /// Percent of the calls that import a task.
    pub import_percent: u64,
}

/// The name of an option, and its field.
type Field = (&'static str, fn(&mut Options) -> &mut u64);

const FIELDS: [Field; 47] = [
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
];

impl Options {
    /// The options of a seed: each run has another character.
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
        }
    }

    /// The names of all options.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FIELDS.iter().map(|(name, _)| *name)
    }

    /// The option of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        let (_, field) = FIELDS.iter().find(|(known, _)| *known == name)?;
        Some(*field(&mut self.clone()))
    }

    /// Sets what `text` names, as it was printed: `keys=3,calls=40`.
    ///
    /// # Errors
    /// A sentence about the part that is no option.
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
