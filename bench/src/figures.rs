//! Figures as they were written by a [`report`](crate::report), read again.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::report::{HEADER, median};

/// A line of the CSV.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) implementation: String,
    pub(crate) workload: String,
    pub(crate) n: u64,
    pub(crate) metric: String,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Figure {
    fn is(&self, implementation: &str, workload: &str, n: u64, metric: &str) -> bool {
        (self.implementation.as_str(), self.workload.as_str(), self.n, self.metric.as_str())
            == (implementation, workload, n, metric)
    }
}

/// All figures of some files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures(Vec<Figure>);

impl Figures {
    /// Reads files, one for each run. Of a figure that stands in several of them, the medians' median, and the least and
    /// the greatest of all runs.
    pub(crate) fn load(files: &[impl AsRef<Path>]) -> anyhow::Result<Self> {
        let mut runs: BTreeMap<(String, String, u64, String), Vec<Figure>> = BTreeMap::new();
        for file in files.iter().map(AsRef::as_ref) {
            let csv = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
            for figure in Self::read(&csv).with_context(|| format!("read {}", file.display()))?.0 {
                let Figure { implementation, workload, n, metric, .. } = figure.clone();
                runs.entry((implementation, workload, n, metric)).or_default().push(figure);
            }
        }
        Ok(Self(runs.into_values().filter_map(of_runs).collect()))
    }

    /// Reads a CSV.
    pub(crate) fn read(csv: &str) -> anyhow::Result<Self> {
        let mut lines = csv.lines();
        ensure!(lines.next() == Some(HEADER), "the first line is not {HEADER:?}");
        Ok(Self(
            lines
                .map(|line| figure(line).with_context(|| format!("line {line:?}")))
                .collect::<Result<_, _>>()?,
        ))
    }

    /// The figure of that name, if it was measured.
    pub(crate) fn get(&self, implementation: &str, workload: &str, n: u64, metric: &str) -> Option<&Figure> {
        self.0.iter().find(|figure| figure.is(implementation, workload, n, metric))
    }

    /// The sizes at which a workload was measured, in order.
    pub(crate) fn sizes(&self, workload: &str) -> Vec<u64> {
        let mut sizes: Vec<u64> =
            self.0.iter().filter(|figure| figure.workload == workload).map(|figure| figure.n).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// One figure out of those of several runs.
fn of_runs(mut runs: Vec<Figure>) -> Option<Figure> {
    let mut medians: Vec<f64> = runs.iter().map(|run| run.median).collect();
    medians.sort_by(f64::total_cmp);
    let median = median(&medians);
    let min = runs.iter().map(|run| run.min).fold(f64::INFINITY, f64::min);
    let max = runs.iter().map(|run| run.max).fold(f64::NEG_INFINITY, f64::max);
    Some(Figure { median, min, max, ..runs.pop()? })
}

fn figure(line: &str) -> anyhow::Result<Figure> {
    let words: Vec<&str> = line.split(',').collect();
    let [implementation, workload, n, metric, median, min, max] = words[..] else {
        anyhow::bail!("{} values instead of 7", words.len());
    };
    let number = |text: &str| text.parse::<f64>().with_context(|| format!("{text:?} is no number"));
    Ok(Figure {
        implementation: implementation.to_owned(),
        workload: workload.to_owned(),
        n: n.parse().with_context(|| format!("{n:?} is no size"))?,
        metric: metric.to_owned(),
        median: number(median)?,
        min: number(min)?,
        max: number(max)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;

    #[test]
    fn what_a_report_wrote_is_read() {
        let mut report = Report::default();
        for sample in [3.0, 1.0, 2.0] {
            report.add("wheel", "w1", 1_000_000, "pair_ns", sample);
        }
        report.add("wheel", "w1", 10_000, "pair_ns", 7.0);
        let figures = Figures::read(&report.csv()).expect("its own lines");
        let pair = figures.get("wheel", "w1", 1_000_000, "pair_ns").expect("it was added");
        assert_eq!((pair.median, pair.min, pair.max), (2.0, 1.0, 3.0));
        assert_eq!(figures.sizes("w1"), [10_000, 1_000_000]);
        assert_eq!(figures.get("wheel", "w2", 10_000, "pair_ns"), None);
    }

    #[test]
    fn a_figure_of_several_runs_is_their_median() {
        let dir = tempfile::tempdir().expect("a place for files");
        let files: Vec<_> = ["2,1,3", "7,6,7", "4,4,9"]
            .iter()
            .enumerate()
            .map(|(run, figures)| {
                let file = dir.path().join(format!("{run}.csv"));
                std::fs::write(&file, format!("{HEADER}\nwheel,w1,1,pair_ns,{figures}\n")).expect("a file");
                file
            })
            .collect();
        for (runs, expected) in [(1, (2.0, 1.0, 3.0)), (2, (4.5, 1.0, 7.0)), (3, (4.0, 1.0, 9.0))] {
            let figures = Figures::load(&files[..runs]).expect("they can be read");
            let pair = figures.get("wheel", "w1", 1, "pair_ns").expect("it was measured");
            assert_eq!((pair.median, pair.min, pair.max), expected);
        }
    }

    #[test]
    fn a_line_that_is_none_is_shown() {
        assert!(Figures::read("impl\n").is_err());
        for bad in ["a,b,1,c,1,2", "a,b,x,c,1,2,3", "a,b,1,c,1,2,x"] {
            let error = Figures::read(&format!("{HEADER}\n{bad}\n")).expect_err(bad);
            assert!(format!("{error:#}").contains(bad), "{error:#}");
        }
    }
}
