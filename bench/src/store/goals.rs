//! The goals, and whether a run met them.

use crate::figures::Figures;
use crate::goal::{self, Goal, Wanted, goal};

const GOALS: [Goal; 13] = [
    goal(
        "queue",
        ("s1", "ops_s/64-raw"),
        Wanted::AtLeast(0.25),
        "durable puts by 64 clients / 64 x raw 16 KiB syncs",
    ),
    goal(
        "queue",
        ("s1", "ops_s/fjall-alone"),
        Wanted::AtLeast(5.0),
        "durable puts by 64 clients / the peer's, each a batch",
    ),
    goal(
        "queue",
        ("s1", "ops_s/fjall"),
        Wanted::AtLeast(5.0),
        "durable puts by 64 clients / the peer's, gathered by us",
    ),
    goal(
        "store",
        ("s2", "tasks_s/1000-raw"),
        Wanted::AtLeast(0.10),
        "batches of 1000 / 1000 x raw 256 KiB syncs",
    ),
    goal("store", ("s4", "tasks_s/fjall"), Wanted::AtLeast(5.0), "drained / the peer's"),
    goal(
        "store",
        ("s6", "after_ms/before"),
        Wanted::AtMost(1.2),
        "a scan behind 500,000 deletes / before them",
    ),
    goal(
        "store",
        ("s7", "ms_beyond/raw"),
        Wanted::AtMost(100.0),
        "ms of the slowest commit beyond the slowest raw sync",
    ),
    goal("store", ("s8", "slope_bytes"), Wanted::AtMost(48.0), "resident bytes a task, keys of the server"),
    goal("store", ("s8-own", "slope_bytes"), Wanted::AtMost(72.0), "resident bytes a task, own keys"),
    goal(
        "store",
        ("s9", "handed_bytes/record"),
        Wanted::AtMost(3.0),
        "bytes handed to write calls in a life / record",
    ),
    goal(
        "store",
        ("s9", "device_bytes/record"),
        Wanted::AtMost(3.0),
        "bytes the disk wrote in a life / record",
    ),
    Goal {
        sizes: |n| n <= 1_000_000,
        ..goal("store", ("s10", "open_s"), Wanted::AtMost(1.0), "seconds to open after a kill, up to 1 M")
    },
    Goal {
        sizes: |n| n > 1_000_000 && n <= 10_000_000,
        ..goal("store", ("s10", "open_s"), Wanted::AtMost(6.0), "seconds to open after a kill, up to 10 M")
    },
];

/// A line for each goal and size that was measured.
pub(crate) fn summary(figures: &Figures) -> String {
    goal::summary(figures, &GOALS, doubt)
}

/// A disk that is so much faster in one stretch than in another is no measure.
const SWING_MAX: f64 = 2.0;

/// What to think of a ratio to the disk.
fn doubt(figures: &Figures, implementation: &str, workload: &str, n: u64, metric: &str) -> String {
    let swing = figures.get(implementation, workload, n, "raw_swing").map_or(1.0, |swing| swing.median);
    if metric.ends_with("-raw") && swing > SWING_MAX {
        format!("; in doubt: the disk swung by {swing:.1} meanwhile")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;

    #[test]
    fn a_goal_is_met_or_missed_by_its_median() {
        let mut report = Report::default();
        for value in [0.2, 0.3, 0.4] {
            report.add("queue", "s1", 1_000_000, "ops_s/64-raw", value);
        }
        report.add("store", "s8", 10_000_000, "slope_bytes", 48.5);
        for (n, seconds) in [(1_000_000, 1.5), (10_000_000, 1.5)] {
            report.add("store", "s10", n, "open_s", seconds);
        }
        let summary = summary(&Figures::read(&report.csv()).expect("its own lines"));
        let words: Vec<_> =
            summary.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>()).collect();
        assert_eq!(words, [["met", "s1"], ["missed", "s8"], ["missed", "s10"], ["met", "s10"]], "{summary}");
        let first = "met    s1     n = 1e6   durable puts by 64 clients / 64 x raw 16 KiB syncs: \
                     0.300 (0.200..0.400), goal >= 0.25\n";
        assert!(summary.starts_with(first), "{summary}");
        report.add("queue", "s1", 1_000_000, "raw_swing", 9.5);
        let doubted = super::summary(&Figures::read(&report.csv()).expect("its own lines"));
        let end = "goal >= 0.25; in doubt: the disk swung by 9.5 meanwhile";
        assert!(doubted.lines().next().expect("a line").ends_with(end), "{doubted}");
    }
}
