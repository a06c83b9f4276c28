//! A whole run of a benchmark, and the figures that it brings.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The messages and the table of a run.
pub(crate) struct Run {
    pub(crate) talk: String,
    pub(crate) csv: String,
}

impl Run {
    /// Runs `tickwheel-bench` with these words, and with its files in the folder.
    #[track_caller]
    pub(crate) fn of(words: &[&str], dir: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickwheel-bench"));
        let output = command.args(words).arg("--dir").arg(dir).output().expect("it starts");
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{talk}");
        Self { talk, csv: String::from_utf8_lossy(&output.stdout).into_owned() }
    }

    /// The rows of the table, without its heading.
    pub(crate) fn rows(&self) -> Vec<Vec<&str>> {
        self.csv.lines().skip(1).map(|row| row.split(',').collect()).collect()
    }

    /// Each figure as its subject, its workload and its metric. None of them is negative.
    #[track_caller]
    pub(crate) fn figures(&self) -> BTreeSet<String> {
        let rows = self.rows();
        for row in &rows {
            let median: f64 = row[4].parse().expect("a number");
            assert!(median.is_finite() && median >= 0.0, "{row:?}");
        }
        rows.iter().map(|row| [row[0], row[1], row[3]].join(" ")).collect()
    }
}
