//! [`Counts`]: how often each test ran and failed, by commit. The file is kept from one part of a campaign to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The runs of a test on a commit.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Count {
    pub(super) runs: u64,
    pub(super) failures: u64,
}

/// All counts. The key is the commit, the label of the program and the test.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Counts(BTreeMap<(String, String, String), Count>);

impl Counts {
    /// Reads the file; a missing one has no counts.
    pub(super) fn read(file: &Path) -> Result<Self> {
        if !file.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        Self::parse(&text).with_context(|| format!("read {}", file.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut counts = Self::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let &[commit, program, test, runs, failures] = fields.as_slice() else {
                anyhow::bail!("`{line}` has not five fields");
            };
            let number = |text: &str| text.parse().with_context(|| format!("`{text}` is no number"));
            let count = Count { runs: number(runs)?, failures: number(failures)? };
            counts.0.insert((commit.to_owned(), program.to_owned(), test.to_owned()), count);
        }
        Ok(counts)
    }

    /// Writes the file: a new one takes its place, so that an end in the middle loses nothing.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        let folder = file.parent().context("the file is in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        let new = file.with_extension("new");
        fs::write(&new, self.text()).with_context(|| format!("write {}", new.display()))?;
        fs::rename(&new, file).with_context(|| format!("write {}", file.display()))
    }

    fn text(&self) -> String {
        let line = |((commit, program, test), count): (&(String, String, String), &Count)| {
            format!("{commit}\t{program}\t{test}\t{}\t{}\n", count.runs, count.failures)
        };
        self.0.iter().map(line).collect()
    }

    /// Counts one run of a test.
    pub(super) fn add(&mut self, commit: &str, program: &str, test: &str, failed: bool) {
        let key = (commit.to_owned(), program.to_owned(), test.to_owned());
        let count = self.0.entry(key).or_default();
        count.runs += 1;
        count.failures += u64::from(failed);
    }

    /// The sums over these commits, by program and test.
    pub(super) fn sums(&self, commits: &BTreeSet<String>) -> BTreeMap<(&str, &str), Count> {
        let mut sums: BTreeMap<(&str, &str), Count> = BTreeMap::new();
        for ((commit, program, test), count) in &self.0 {
            if commits.contains(commit) {
                let sum = sums.entry((program, test)).or_default();
                sum.runs += count.runs;
                sum.failures += count.failures;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_several_commits_add_up_and_survive_the_file() {
        let mut counts = Counts::default();
        counts.add("c1", "p it", "a::b", false);
        counts.add("c1", "p it", "a::b", true);
        counts.add("c2", "p it", "a::b", false);
        counts.add("c0", "p it", "a::b", true);
        assert_eq!(counts.text().lines().nth(1), Some("c1\tp it\ta::b\t2\t1"));
        let read = Counts::parse(&counts.text()).expect("it is ours");
        assert_eq!(read, counts);
        let sums = read.sums(&["c1".to_owned(), "c2".to_owned()].into());
        assert_eq!(sums[&("p it", "a::b")], Count { runs: 3, failures: 1 });
    }

    #[test]
    fn a_file_that_is_none_of_ours_is_refused() {
        assert!(Counts::parse("c1\tp it\ta::b\t2").is_err());
        assert!(Counts::parse("c1\tp it\ta::b\ttwo\t0").is_err());
    }
}
