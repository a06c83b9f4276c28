//! The goals of the queue on PostgreSQL.

use crate::figures::Figures;
use crate::goal::{self, Goal, Wanted, goal};

const GOALS: [Goal; 6] = [
    goal("tickwheel", ("pg-schedule", "tasks_s/floor"), Wanted::AtLeast(0.6), "put / the database alone"),
    goal("tickwheel", ("pg-schedule", "tasks_s/jobs"), Wanted::AtLeast(1.0), "put / a table of jobs"),
    goal(
        "tickwheel",
        ("pg-acked", "tasks_s/floor"),
        Wanted::AtLeast(0.5),
        "due to acked / the database alone",
    ),
    goal("tickwheel", ("pg-acked", "tasks_s/jobs"), Wanted::AtLeast(1.0), "due to acked / a table of jobs"),
    goal(
        "tickwheel",
        ("pg-single", "p50_ms/raw-1"),
        Wanted::AtMost(2.5),
        "p50 of one put / of a raw one-row commit",
    ),
    goal(
        "tickwheel",
        ("pg-held", "cycle_ms/before"),
        Wanted::AtMost(2.0),
        "p50 with a snapshot held open / p50 before",
    ),
];

/// Returns a line for each goal that was measured.
pub(super) fn summary(figures: &Figures) -> String {
    goal::summary(figures, &GOALS, |_, _, _, _, _| String::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;

    #[test]
    fn each_goal_is_met_or_missed_by_its_median() {
        let mut report = Report::default();
        report.add("tickwheel", "pg-schedule", 100_000, "tasks_s/floor", 0.59);
        report.add("tickwheel", "pg-acked", 100_000, "tasks_s/floor", 0.5);
        report.add("tickwheel", "pg-single", 1, "p50_ms/raw-1", 2.6);
        report.add("tickwheel", "pg-held", 600, "cycle_ms/before", 1.1);
        report.add("jobs", "pg-held", 600, "cycle_ms/before", 9.0);
        let summary = summary(&Figures::read(&report.csv()).expect("its own lines"));
        let words: Vec<_> = summary.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(words, ["missed", "met", "missed", "met"], "{summary}");
    }
}
