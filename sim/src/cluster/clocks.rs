//! [`Clocks`]: the latest and the earliest instant that each process may take for the present.

use tickwheel_queue::wall::CLOCK_GUARD;

/// The clock of the database, and the clocks that processes still know after it was set.
///
/// # Processes in doubt
/// A process goes on by the clock of its last answered heartbeat. While the database does not answer, it cannot know that the clock was set back. A
/// task that becomes ready meanwhile is ready, and the process delivers it once it is valid again, although the database's clock has not
/// reached the due time. This is accepted, because no process could do better without a stop of all tasks at each lost beat.
///
/// Two things bound what is accepted. The clock that the process knows is ahead by as much as the clock was set back, and by no more. And only a
/// process that ran at the step is forgiven, until it is valid a lease or more after the step: others have seen the new clock.
///
/// # Delays
/// A delay counts from the clock that a process knows, and a process that has not seen a step forward knows a clock that is behind. It is forgiven
/// in the same way: until it is valid a lease or more after the step, and then for the part of the step that may stay unseen, a lease. A step beyond
/// the guard of the clock is doubted, so the process that ran at the step is forgiven until it ends.
#[derive(Debug)]
pub(super) struct Clocks {
    /// The latest instant that the clock of the database has shown (ms).
    shown_ms: i64,
    /// For each place, the clocks that its process may still know, and the latest instant that they have shown (ms).
    known: Vec<Known>,
}

#[derive(Clone, Debug)]
struct Known {
    /// The clock before a step, less the simulated time (ns), and until when a valid process may not know of the step (simulated, ns).
    before: Vec<(i128, u64)>,
    shown_ms: i64,
    /// Clocks before a step forward, which are behind, in the form of `before`.
    behind: Vec<(i128, u64)>,
}

const NONE: Known = Known { before: Vec::new(), shown_ms: i64::MIN, behind: Vec::new() };
/// Clocks of machines drift while a process doubts a step (ns).
const DRIFT_OF_DOUBT_NS: i128 = 1_000_000_000;

impl Clocks {
    /// Begins with a clock that shows `wall_ms`.
    pub(super) fn new(wall_ms: i64, places: usize) -> Self {
        Self { shown_ms: wall_ms, known: vec![NONE; places] }
    }

    /// The latest instant at which the process at this place may deliver what is due then (ms).
    pub(super) fn latest_ms(&self, place: usize) -> i64 {
        self.shown_ms.max(self.known[place].shown_ms)
    }

    /// The earliest instant from which the process at this place may count a delay now (ns). `wall_ns`: the clock of the database (ns).
    pub(super) fn earliest_ns(&self, place: usize, now_ns: u64, wall_ns: i128) -> i128 {
        let behind = self.known[place].behind.iter();
        behind.map(|(clock_ns, _)| clock_ns + i128::from(now_ns)).fold(wall_ns, i128::min)
    }

    /// Time has passed. `wall_ns`: the clock of the database (ns). `is_valid`: whether the process at a place is valid.
    pub(super) fn note(&mut self, now_ns: u64, wall_ns: i128, is_valid: impl Fn(usize) -> bool) {
        self.shown_ms = self.shown_ms.max(ms_of(wall_ns));
        for (place, known) in self.known.iter_mut().enumerate() {
            if !(known.before.is_empty() && known.behind.is_empty()) && is_valid(place) {
                known.before.retain(|(_, until_ns)| now_ns <= *until_ns);
                known.behind.retain(|(_, until_ns)| now_ns <= *until_ns);
            }
            for (clock_ns, _) in &known.before {
                known.shown_ms = known.shown_ms.max(ms_of(clock_ns + i128::from(now_ns)));
            }
        }
    }

    /// The clock of the database is about to step by `by_ms`; it shows `wall_ns` (ns). A process that is valid learns it by its next beat, within
    /// a lease, unless the step stays unseen.
    pub(super) fn step(
        &mut self,
        (now_ns, wall_ns): (u64, i128),
        by_ms: i64,
        lease_ns: u64,
        runs: impl Fn(usize) -> bool,
    ) {
        let before_ns = wall_ns - i128::from(now_ns);
        let by_ns = i128::from(by_ms) * 1_000_000;
        let unseen_ns = (-by_ns).clamp(0, lease_ns.into());
        let after_ns = before_ns + by_ns;
        let unseen_ahead_ns = by_ns.clamp(0, lease_ns.into());
        for (_, known) in self.known.iter_mut().enumerate().filter(|(place, _)| runs(*place)) {
            known.before.push((before_ns, now_ns + lease_ns));
            known.before.push((before_ns + by_ns.min(0) + unseen_ns, u64::MAX));
            if by_ns > 0 {
                known.behind.push((before_ns, now_ns + lease_ns));
                known.behind.push((after_ns - unseen_ahead_ns, u64::MAX));
            }
            let guard_ns = CLOCK_GUARD.as_nanos().cast_signed();
            let doubted = known.behind.iter_mut().filter(|(clock_ns, _)| after_ns - *clock_ns > guard_ns);
            doubted.for_each(|(clock_ns, until_ns)| {
                if *until_ns < u64::MAX {
                    (*clock_ns, *until_ns) = (*clock_ns - DRIFT_OF_DOUBT_NS, u64::MAX);
                }
            });
        }
    }

    /// The process at this place has ended. The next one asks for the clock.
    pub(super) fn ended(&mut self, place: usize) {
        self.known[place] = NONE;
    }
}

pub(super) fn ms_of(ns: i128) -> i64 {
    i64::try_from(ns / 1_000_000).expect("runs are short")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LEASE_NS: u64 = 1_000 * MS;

    /// A clock that shows 10 s at the start, and is set back by 2 s at 1 s, when processes 0 and 1 run and process 2 does not.
    fn set_back() -> Clocks {
        let mut clocks = Clocks::new(10_000, 3);
        clocks.note(1_000 * MS, wall_ns(11_000), |_| true);
        clocks.step((1_000 * MS, wall_ns(11_000)), -2_000, LEASE_NS, |place| place < 2);
        clocks
    }

    fn wall_ns(wall_ms: i64) -> i128 {
        i128::from(wall_ms) * i128::from(MS)
    }

    #[test]
    fn a_process_in_doubt_is_forgiven_as_much_as_the_clock_was_set_back() {
        let mut clocks = set_back();
        for now_ms in (1_000..9_000).step_by(100) {
            let wall_ms = 8_000 + i64::try_from(now_ms).expect("small");
            clocks.note(now_ms * MS, wall_ns(wall_ms), |place| place != 0);
            assert_eq!(clocks.latest_ms(0), wall_ms + 2_000);
            // Without a doubt, it is forgiven for a lease; and a clock that has once shown an instant may be taken for right. A lease of the
            // step may stay unseen.
            assert_eq!(clocks.latest_ms(1), (wall_ms + 2_000).min(12_000).max(wall_ms + 1_000));
            assert_eq!(clocks.latest_ms(2), wall_ms.max(11_000), "it begins with the new clock");
        }
        clocks.note(9_000 * MS, wall_ns(17_000), |_| true);
        clocks.note(10_000 * MS, wall_ns(18_000), |place| place != 0);
        assert_eq!(
            clocks.latest_ms(0),
            19_000,
            "it has seen most of the step, and an answer shows the rest only if it is quick"
        );
        clocks.ended(0);
        assert_eq!(clocks.latest_ms(0), 18_000);
    }

    #[test]
    fn a_process_that_has_not_seen_a_step_forward_counts_delays_from_the_clock_before() {
        for (by_ms, unseen_ms, later_ms) in [(300, 300, 300), (2_000, 2_000, 1_000), (-2_000, 0, 0)] {
            let mut clocks = Clocks::new(10_000, 2);
            clocks.step((0, wall_ns(10_000)), by_ms, LEASE_NS, |place| place == 0);
            let wall_ms = |now_ms: i64| 10_000 + by_ms + now_ms;
            let behind_ms = |clocks: &Clocks, place, now_ms: i64| {
                let wall_ns = wall_ns(wall_ms(now_ms));
                (wall_ns - clocks.earliest_ns(place, now_ms.unsigned_abs() * MS, wall_ns)) / i128::from(MS)
            };
            assert_eq!(behind_ms(&clocks, 0, 500), unseen_ms, "a step by {by_ms} ms");
            assert_eq!(behind_ms(&clocks, 1, 500), 0, "it begins with the new clock");
            clocks.note(1_001 * MS, wall_ns(wall_ms(1_001)), |_| false);
            assert_eq!(behind_ms(&clocks, 0, 1_001), unseen_ms, "it is in doubt");
            clocks.note(1_002 * MS, wall_ns(wall_ms(1_002)), |_| true);
            assert_eq!(behind_ms(&clocks, 0, 1_002), later_ms, "only a lease of the step may stay unseen");
            clocks.ended(0);
            assert_eq!(behind_ms(&clocks, 0, 1_002), 0);
        }
    }

    #[test]
    fn a_step_beyond_the_guard_is_doubted_until_the_process_ends() {
        let mut clocks = Clocks::new(10_000, 1);
        clocks.step((0, wall_ns(10_000)), 3_600_000, LEASE_NS, |_| true);
        clocks.note(70_000 * MS, wall_ns(3_680_000), |_| true);
        assert_eq!(clocks.earliest_ns(0, 70_000 * MS, wall_ns(3_680_000)), wall_ns(80_000 - 1_000));
    }

    #[test]
    fn a_step_that_may_stay_unseen_is_forgiven_until_the_process_ends() {
        for (by_ms, unseen_ms) in [(-300, 300), (-900, 900), (-1_000, 1_000), (-7_000, 1_000), (900, 0)] {
            let mut clocks = Clocks::new(10_000, 1);
            clocks.step((0, wall_ns(10_000)), by_ms, LEASE_NS, |_| true);
            let wall_ms = 70_000 + by_ms;
            clocks.note(60_000 * MS, wall_ns(wall_ms), |_| true);
            assert_eq!(clocks.latest_ms(0), wall_ms + unseen_ms, "a step by {by_ms} ms");
            clocks.ended(0);
            assert_eq!(clocks.latest_ms(0), wall_ms);
        }
    }
}
