//! The chore `flaky`: many runs of the test programs on a busy computer. A test that fails once by chance is a fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::counts::{Count, Counts};
use super::program::{Program, all, examples, labelled};
use super::ran::{How, Ran, run as run_program};
use crate::root::{root, target};

/// A test that starts processes runs three times as often, because more can be late in it.
const PROCESSES: u64 = 3;

const RUNS: RangeInclusive<u64> = 1..=100_000;
/// 0: no program runs, and the sums are printed.
const MINUTES: RangeInclusive<u64> = 0..=10_000;
const COPIES: RangeInclusive<u64> = 1..=16;

/// A number of the command line.
fn number(text: &str, range: RangeInclusive<u64>) -> Result<u64> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.with_context(|| format!("`{text}` is no number from {} to {}", range.start(), range.end()))
}

/// The options of the chore.
struct Options {
    /// The runs that each test is to have.
    runs: u64,
    /// Only programs with this in their label.
    only: String,
    /// The part ends when the first run ends after this time.
    limit: Duration,
    /// Runs beside each other.
    copies: usize,
    /// The first commit whose counts are of any use; `None`: HEAD alone.
    since: Option<String>,
    file: PathBuf,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self> {
        let file =
            std::env::var_os("FLAKY_COUNTS").map_or_else(|| target().join("flaky/counts"), PathBuf::from);
        let limit = Duration::from_secs(15 * 60);
        let mut options = Self { runs: 20, only: String::new(), limit, copies: 2, since: None, file };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || {
                let value = words.next().copied().filter(|value| !value.starts_with('-'));
                value.with_context(|| format!("{word} wants a value"))
            };
            match word {
                "--only" => options.only = value()?.to_owned(),
                "--minutes" => options.limit = Duration::from_secs(60 * number(value()?, MINUTES)?),
                "--copies" => options.copies = number(value()?, COPIES)? as usize,
                "--since" => options.since = Some(value()?.to_owned()),
                word if word.starts_with('-') => {
                    bail!("`{word}` is no option; there are --only, --minutes, --copies and --since")
                }
                word => options.runs = number(word, RUNS)?,
            }
        }
        Ok(options)
    }
}

/// Runs the program with the fewest runs, again and again, until each test has its runs or the time is over. Prints the sums.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let options = Options::read(words)?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    if !git(&["status", "--porcelain"])?.is_empty() {
        bail!("the counts belong to a commit, so commit first: `git status` tells what has changed");
    }
    let commits = commits(&commit, options.since.as_deref())?;
    let programs = labelled([all()?, examples()?].concat(), &options.only)?;
    let goals = programs.into_iter().map(Goal::new).collect::<Result<Vec<_>>>()?;
    let programs: Vec<Goal> = goals.into_iter().filter(|goal| !goal.tests.is_empty()).collect();
    let begun = Instant::now();
    let mut load = Load::start()?;
    let mut counts = Counts::read(&options.file)?;
    while let Some(Goal { program, .. }) = next(&programs, &counts.sums(&commits), &options) {
        if begun.elapsed() >= options.limit {
            break;
        }
        load.goes_on()?;
        let rounds = std::thread::scope(|scope| -> Result<Vec<Ran>> {
            let copies: Vec<_> = (0..options.copies).map(|_| scope.spawn(|| one(program))).collect();
            copies.into_iter().map(|copy| copy.join().expect("a run does not panic")).collect()
        })?;
        for ran in &rounds {
            if ran.tests.is_empty() {
                bail!("{} ended without a test\n{}", program.label(), ran.talk);
            }
            for test in ran.tests.keys() {
                let failed = ran.failed().any(|(name, _)| name == test);
                counts.add(&commit, &program.label(), test, failed);
            }
            for (test, failed) in ran.failed() {
                let kept = keep(program, test, &failed.output, &ran.talk)?;
                println!(
                    "flaky: FAILED: {} {test}\n{}\n(also in {})",
                    program.label(),
                    failed.output,
                    kept.display()
                );
            }
        }
        counts.write(&options.file)?;
        println!("flaky: {} s: {}, {} runs", begun.elapsed().as_secs(), program.label(), rounds.len());
    }
    drop(load);
    let failures = report(&programs, &counts.sums(&commits), &options);
    if failures > 0 {
        bail!("{failures} tests failed at least once; {} has the counts", options.file.display());
    }
    Ok(())
}

/// A program and the tests that it has now.
struct Goal {
    program: Program,
    tests: BTreeSet<String>,
}

impl Goal {
    fn new(program: Program) -> Result<Self> {
        Ok(Self { tests: program.tests()?, program })
    }

    /// The runs that its tests are to have.
    fn wanted(&self, options: &Options) -> u64 {
        if self.program.has_processes { options.runs * PROCESSES } else { options.runs }
    }

    /// The fewest runs of one of its tests.
    fn fewest(&self, sums: &BTreeMap<(&str, &str), Count>) -> u64 {
        let label = self.program.label();
        let runs = |test: &String| sums.get(&(label.as_str(), test.as_str())).map_or(0, |count| count.runs);
        self.tests.iter().map(runs).min().unwrap_or(0)
    }
}

/// One run. A test whose program is missing fails: it would count as a run of a test that does nothing. One that this computer does not allow
/// counts: no run of it here is another.
fn one(program: &Program) -> Result<Ran> {
    let variables = [("TICKWHEEL_REQUIRE_ALL".to_owned(), Some("1".to_owned()))];
    let how = How { before: &["nice", "-n", "10"], filters: &[], threads: 4, variables: &variables };
    run_program(program, &how)
}

/// The program that is the farthest from its runs; `None`: each has them.
fn next<'a>(goals: &'a [Goal], sums: &BTreeMap<(&str, &str), Count>, options: &Options) -> Option<&'a Goal> {
    let share = |goal: &Goal| goal.fewest(sums) * 1_000 / goal.wanted(options).max(1);
    goals.iter().filter(|goal| share(goal) < 1_000).min_by_key(|goal| share(goal))
}

/// Prints the sums, and returns how many tests failed at least once.
fn report(goals: &[Goal], sums: &BTreeMap<(&str, &str), Count>, options: &Options) -> usize {
    for goal in goals {
        println!(
            "flaky: {}: {} of {} runs of each test",
            goal.program.label(),
            goal.fewest(sums),
            goal.wanted(options)
        );
    }
    match next(goals, sums, options) {
        None => println!("flaky: each test has its runs"),
        Some(_) => println!("flaky: runs are missing; the next part goes on"),
    }
    let failed: Vec<_> = sums.iter().filter(|(_, count)| count.failures > 0).collect();
    for ((program, test), count) in &failed {
        println!("flaky: {program} {test}: failed {} of {} times", count.failures, count.runs);
    }
    failed.len()
}

/// Keeps what a failed test wrote.
fn keep(program: &Program, test: &str, output: &str, talk: &str) -> Result<PathBuf> {
    let folder = target().join("flaky/failed");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let name = format!("{} {test}", program.label()).replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let number =
        (1..).find(|number| !folder.join(format!("{name}.{number}")).exists()).expect("a free number");
    let file = folder.join(format!("{name}.{number}"));
    fs::write(&file, format!("{output}\n---- past the harness ----\n{talk}"))
        .with_context(|| format!("write {}", file.display()))?;
    Ok(file)
}

/// A build that begins again whenever it ends, so that processors, memory and disk are busy.
struct Load {
    shell: Child,
    folder: PathBuf,
}

impl Load {
    fn start() -> Result<Self> {
        let folder = target().join("flaky/load");
        // The loop ends when a build fails, and all of it a second after this program, also when that was killed.
        let script = "(while kill -0 $PPID 2>/dev/null; do sleep 1; done; kill -s KILL -- -$$) & \
            while rm -rf \"$1\"; do \"$0\" build --quiet --locked --package tickwheel-server --target-dir \"$1\" || break; done; \
            kill -s KILL -- -$$";
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", script, env!("CARGO")]).arg(&folder).current_dir(root());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { shell: command.spawn().context("start a build beside the tests")?, folder })
    }

    /// Without a load, the runs would say nothing.
    fn goes_on(&mut self) -> Result<()> {
        match self.shell.try_wait().context("look at the build beside the tests")? {
            None => Ok(()),
            Some(status) => {
                bail!("the build beside the tests failed ({status}): cargo build --package tickwheel-server")
            }
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // The shell leads a session of its own: cargo and the compilers end with it. `kill` is a word of each shell.
        let script = format!("kill -s KILL -- -{}", self.shell.id());
        let _ended = Command::new("sh").args(["-c", &script]).status();
        let _ended = self.shell.kill();
        let _ended = self.shell.wait();
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

/// The commits whose counts are summed up.
fn commits(head: &str, since: Option<&str>) -> Result<BTreeSet<String>> {
    let mut commits = BTreeSet::from([head.to_owned()]);
    if let Some(since) = since {
        let short = |commit: &str| commit.chars().take(12).collect::<String>();
        commits.insert(short(&git(&["rev-parse", since])?));
        commits.extend(git(&["rev-list", &format!("{since}..HEAD")])?.lines().map(short));
    }
    Ok(commits)
}

fn git(words: &[&str]) -> Result<String> {
    let output = Command::new("git").args(words).current_dir(root()).output().context("start git")?;
    if !output.status.success() {
        bail!("git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(package: &str, has_processes: bool, tests: &[&str]) -> Goal {
        let (package, name) = (package.to_owned(), "it".to_owned());
        let (folder, file, words) = (PathBuf::new(), PathBuf::new(), Vec::new());
        let program = Program { package, name, has_processes, folder, file, words };
        Goal { program, tests: tests.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn the_program_with_the_smallest_share_of_its_runs_comes_next_until_each_has_them() {
        let programs = [goal("a", false, &["x", "y"]), goal("b", true, &["z"])];
        let options = Options::read(&["10"]).expect("a number");
        let count = |runs| Count { runs, failures: 0 };
        let mut sums = BTreeMap::from([
            (("a it", "x"), count(5)),
            (("a it", "y"), count(4)),
            (("b it", "z"), count(11)),
            // A test that is gone, and a program that ended early.
            (("a it", "former"), count(1)),
            (("b it", "(the program)"), count(1)),
        ]);
        let label = |sums: &BTreeMap<_, _>| next(&programs, sums, &options).map(|next| next.program.label());
        assert_eq!(label(&sums).as_deref(), Some("b it"), "11 of 30 are fewer than 4 of 10");
        sums.insert(("b it", "z"), count(13));
        assert_eq!(label(&sums).as_deref(), Some("a it"));
        sums.insert(("a it", "x"), count(10));
        sums.remove(&("a it", "y"));
        assert_eq!(label(&sums).as_deref(), Some("a it"), "a test without a count never ran");
        sums.insert(("a it", "y"), count(10));
        sums.insert(("b it", "z"), count(30));
        assert_eq!(label(&sums), None);
    }

    #[test]
    fn a_word_that_means_nothing_is_named() {
        let said = |words: &[&str]| Options::read(words).map(drop).map_err(|error| error.to_string());
        assert_eq!(said(&["often"]), Err("`often` is no number from 1 to 100000".to_owned()));
        assert_eq!(said(&["0"]), Err("`0` is no number from 1 to 100000".to_owned()));
        assert_eq!(
            said(&["--minutes", "9999999999999"]),
            Err("`9999999999999` is no number from 0 to 10000".to_owned())
        );
        assert_eq!(said(&["20", "--only"]), Err("--only wants a value".to_owned()));
        assert_eq!(said(&["--since", "--only"]), Err("--since wants a value".to_owned()));
        let options = "--only, --minutes, --copies and --since";
        assert_eq!(said(&["--runs", "3"]), Err(format!("`--runs` is no option; there are {options}")));
        assert_eq!(said(&["20", "--minutes", "5", "--copies", "4", "--since", "HEAD~3"]), Ok(()));
    }
}
