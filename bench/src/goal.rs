//! [`Goal`]: a figure that has to be so large, or so small.

use std::fmt::Write as _;

use crate::figures::Figures;
use crate::table;

/// A figure that has to be so large, or so small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    pub(crate) implementation: &'static str,
    pub(crate) workload: &'static str,
    pub(crate) metric: &'static str,
    /// Whose sizes it holds for.
    pub(crate) sizes: fn(u64) -> bool,
    pub(crate) wanted: Wanted,
    pub(crate) says: &'static str,
}

/// The limit of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
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

/// Returns a goal that holds for all sizes.
pub(crate) const fn goal(
    implementation: &'static str,
    (workload, metric): (&'static str, &'static str),
    wanted: Wanted,
    says: &'static str,
) -> Goal {
    Goal { implementation, workload, metric, sizes: |_| true, wanted, says }
}

/// Returns a line for each goal and size that was measured: the median with its spread, and whether it is enough. `doubt` returns a remark about
/// the figure with this implementation, workload, size and metric; an empty text is none.
pub(crate) fn summary(
    figures: &Figures,
    goals: &[Goal],
    doubt: fn(&Figures, &str, &str, u64, &str) -> String,
) -> String {
    let mut text = String::new();
    for &Goal { implementation, workload, metric, sizes, wanted, says } in goals {
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
