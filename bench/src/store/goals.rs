//! The goals, and whether a run met them.

use std::fmt::Write as _;

use crate::figures::Figures;
use crate::table;

/// A figure that has to be so large, or so small.
#[derive(Clone, Copy, Debug)]
struct Goal {
    implementation: &'static str,
    workload: &'static str,
    metric: &'static str,
    /// Whose sizes it holds for.
    sizes: fn(u64) -> bool,
    wanted: Wanted,
    says: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

impl Wanted {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(least) => format!(">= {least}"),
            Self::AtMost(most) => format!("<= {most}"),
        }
    }
}

const fn goal(
    implementation: &'static str,
    (workload, metric): (&'static str, &'static str),
    wanted: Wanted,
    says: &'static str,
) -> Goal {
    Goal { implementation, workload, metric, sizes: |_| true, wanted, says }
}

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

/// A line for each goal and size that was measured: the median with its spread, and whether it is enough.
pub(crate) fn summary(figures: &Figures) -> String {
    let mut text = String::new();
    for Goal { implementation, workload, metric, sizes, wanted, says } in GOALS {
        for n in figures.sizes(workload).into_iter().filter(|&n| sizes(n)) {
            let Some(figure) = figures.get(implementation, workload, n, metric) else { continue };
            let word = if wanted.is_met(figure.median) { "met" } else { "missed" };
            let (value, min, max) = (figure.median, figure.min, figure.max);
            let (size, wanted) = (table::size(n), wanted.text());
            let _ = writeln!(
                text,
                "{word:<6} {workload:<6} n = {size:<5} {says}: {value:.3} ({min:.3}..{max:.3}), goal {wanted}{}",
                doubt(figures, implementation, workload, n, metric)
            );
        }
    }
    text
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
