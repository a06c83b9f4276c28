//! The goal of two shards.

use crate::figures::Figures;
use crate::goal::{self, Goal, Wanted, goal};

const GOALS: [Goal; 2] = [
    goal("shards-2", ("shards-put", "tasks_s/shards-1"), Wanted::AtLeast(1.6), "put, two shards / one"),
    goal(
        "shards-2",
        ("shards-acked", "tasks_s/shards-1"),
        Wanted::AtLeast(1.6),
        "due to acked, two shards / one",
    ),
];

/// Returns a line for each goal that was measured.
pub(super) fn summary(figures: &Figures) -> String {
    goal::summary(figures, &GOALS, |_, _, _, _, _| String::new())
}
