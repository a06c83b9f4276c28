//! Figures, and their spread over the rounds.

use std::fmt::Write as _;

/// The first line of the CSV.
pub(crate) const HEADER: &str = "impl,workload,n,metric,median,min,max";

/// Samples of one figure.
#[derive(Debug)]
struct Row {
    implementation: String,
    workload: String,
    n: u64,
    metric: String,
    samples: Vec<f64>,
}

/// All figures of a run, in the order in which they first came.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a sample.
    pub(crate) fn add(&mut self, implementation: &str, workload: &str, n: u64, metric: &str, sample: f64) {
        let same = |row: &&mut Row| {
            row.n == n
                && row.implementation == implementation
                && row.workload == workload
                && row.metric == metric
        };
        match self.rows.iter_mut().find(same) {
            Some(row) => row.samples.push(sample),
            None => self.rows.push(Row {
                implementation: implementation.to_owned(),
                workload: workload.to_owned(),
                n,
                metric: metric.to_owned(),
                samples: vec![sample],
            }),
        }
    }

    /// `impl,workload,n,metric,median,min,max`.
    pub(crate) fn csv(&self) -> String {
        let mut csv = format!("{HEADER}\n");
        for Row { implementation, workload, n, metric, samples } in &self.rows {
            let mut sorted = samples.clone();
            sorted.sort_by(f64::total_cmp);
            let (min, max) = (sorted[0], sorted[sorted.len() - 1]);
            let median = median(&sorted);
            let [median, min, max] = [median, min, max].map(figure);
            let _ = writeln!(csv, "{implementation},{workload},{n},{metric},{median},{min},{max}");
        }
        csv
    }
}

/// Whole numbers where the fraction says nothing.
fn figure(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// The one in the middle of sorted values, or the mean of the two. There has to be one.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_the_samples() {
        let mut report = Report::default();
        for sample in [3.0, 1.0, 2.0, 4.0] {
            report.add("a", "w", 1, "ops/s", sample);
        }
        report.add("b", "w", 1, "ratio", 1_234.5);
        let csv = "impl,workload,n,metric,median,min,max\na,w,1,ops/s,2.500,1.000,4.000\nb,w,1,ratio,1234,1234,1234\n";
        assert_eq!(report.csv(), csv);
    }
}
