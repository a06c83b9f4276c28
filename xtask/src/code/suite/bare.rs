//! The chore `bare-tests`: the test programs where no external program is installed. A test either passes, or says which program it needs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::program::{Program, all};
use super::ran::{How, Ran, run as run_program};
use super::skip::{Skip, Why, test_and_rest};
use crate::finding::{Finding, report};
use crate::root::{root, target};

/// The tests that may be skipped, with the program that each needs.
const LIST: &str = "scripts/bare.txt";

/// A test that does nothing may not take longer: it would wait for a program that is not there.
const WAIT_MAX_S: f64 = 1.0;

/// Most of these tests wait.
const THREADS: usize = 6;

/// The programs of coreutils, and the shell that is on every system.
const PROGRAMS: &str = "sh [ arch b2sum base32 base64 basename basenc cat chcon chgrp chmod chown chroot cksum comm cp csplit cut date dd df \
    dir dircolors dirname du echo env expand expr factor false fmt fold groups head hostid id install join link ln logname ls md5sum mkdir \
    mkfifo mknod mktemp mv nice nl nohup nproc numfmt od paste pathchk pinky pr printenv printf ptx pwd readlink realpath rm rmdir runcon \
    seq sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep sort split stat stdbuf stty sum sync tac tail tee test timeout \
    touch tr true truncate tsort tty uname unexpand uniq unlink users vdir wc who whoami yes";

/// Runs the test programs. `listed`: only those with a test in the list, and of them only the modules of these tests. `write`: writes the list.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (listed, write) = match words {
        [] => (false, false),
        ["listed"] => (true, false),
        ["write"] => (false, true),
        _ => bail!("bare-tests takes one word at most: `listed` or `write`, and not `{}`", words.join(" ")),
    };
    let path = bare_path()?;
    let path = path.to_str().context("the folder has a name of text")?;
    let list = fs::read_to_string(root().join(LIST)).with_context(|| format!("read {LIST}"));
    let list: BTreeSet<String> =
        if write { BTreeSet::new() } else { list?.lines().map(str::to_owned).collect() };
    let variables = variables(path);
    let (mut findings, mut seen, mut count) = (Vec::new(), BTreeSet::new(), 0);
    let begun = Instant::now();
    for program in all()? {
        let filters = if listed { modules(&program, &list) } else { Vec::new() };
        if listed && filters.is_empty() {
            continue;
        }
        let how = How { before: &[], filters: &filters, threads: THREADS, variables: &variables };
        let mut ran = run_program(&program, &how)?;
        run_late_ones_again(&program, &mut ran, &how)?;
        count += ran.tests.len();
        judge(&program, &ran, &mut findings);
        seen.extend(ran.skips.iter().filter_map(|skip| line(&program, skip)));
        println!(
            "bare-tests: {} s: {}, {} tests",
            begun.elapsed().as_secs(),
            program.label(),
            ran.tests.len()
        );
    }
    if write {
        let text: String = seen.iter().flat_map(|line| [line, "\n"]).collect();
        fs::write(root().join(LIST), text).with_context(|| format!("write {LIST}"))?;
    } else {
        compare(&list, &seen, &mut findings);
    }
    report("bare-tests", &format!("{count} tests, {} skipped for a program", seen.len()), findings)
}

/// The variables of a run: none of ours, which may name a program.
fn variables(path: &str) -> Vec<(String, Option<String>)> {
    let ours = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let ours = ours.filter(|name| name.starts_with("TICKWHEEL_")).map(|name| (name, None));
    let set = [("PATH", path), ("TICKWHEEL_TEST_BARE", "1")];
    ours.chain(set.map(|(name, value)| (name.to_owned(), Some(value.to_owned())))).collect()
}

/// A test that was skipped late, perhaps because the computer was busy, runs once more alone: its time is the shorter of both.
fn run_late_ones_again(program: &Program, ran: &mut Ran, how: &How<'_>) -> Result<()> {
    let skipped: BTreeSet<&String> = ran.skips.iter().map(|skip| &skip.test).collect();
    let late =
        ran.tests.iter_mut().filter(|(test, tested)| tested.seconds > WAIT_MAX_S && skipped.contains(test));
    for (test, tested) in late {
        let filters = [test.clone()];
        let again = run_program(program, &How { filters: &filters, threads: 1, ..*how })?;
        let seconds = again.tests.get(test).map_or(tested.seconds, |again| again.seconds);
        tested.seconds = tested.seconds.min(seconds);
    }
    Ok(())
}

/// Finds failed tests, waits and bad lines in one run.
fn judge(program: &Program, ran: &Ran, findings: &mut Vec<Finding>) {
    let label = program.label();
    for (test, failed) in ran.failed() {
        let what = format!(
            "{test} fails where a program is missing; it has to skip by `tickwheel_testing`\n{}",
            failed.output
        );
        findings.push(Finding::new(&label, what));
    }
    findings.extend(ran.bad_skips.iter().map(|bad| Finding::new(&label, bad)));
    // A part is a part of a test that does something.
    for skip in ran.skips.iter().filter(|skip| skip.part.is_none()) {
        let Some(test) = ran.tests.get(&skip.test) else {
            findings.push(Finding::new(&label, format!("`{skip}` names no test")));
            continue;
        };
        if test.seconds > WAIT_MAX_S {
            let what = format!("{} waits {:.1} s before it is skipped ({skip})", skip.test, test.seconds);
            findings.push(Finding::new(&label, what));
        }
    }
}

/// The line of the list for a test that misses a program.
fn line(program: &Program, skip: &Skip) -> Option<String> {
    matches!(skip.why, Why::Program(_)).then(|| format!("{} {skip}", program.label()))
}

/// The modules of the listed tests of a program, as filters of its harness.
fn modules(program: &Program, list: &BTreeSet<String>) -> Vec<String> {
    let begin = format!("{} ", program.label());
    let tests = list
        .iter()
        .filter_map(|line| line.strip_prefix(&begin))
        .filter_map(test_and_rest)
        .map(|(test, _)| test);
    let modules: BTreeSet<String> = tests
        .map(|test| test.rsplit_once("::").map_or(test.to_owned(), |(module, _)| format!("{module}::")))
        .collect();
    modules.into_iter().collect()
}

fn compare(list: &BTreeSet<String>, seen: &BTreeSet<String>, findings: &mut Vec<Finding>) {
    for line in seen.difference(list) {
        let what = format!("`{line}` is not in the list; if the test needs that program, add the line");
        findings.push(Finding::new(LIST, what));
    }
    for line in list.difference(seen) {
        findings.push(Finding::new(LIST, format!("`{line}` did not happen; take the line out")));
    }
}

/// A folder that has [`PROGRAMS`] and nothing else.
fn bare_path() -> Result<PathBuf> {
    let folder = target().join("bare-path");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    for program in PROGRAMS.split_whitespace() {
        let places = ["/usr/bin", "/bin"].map(|place| Path::new(place).join(program));
        // An older or a newer coreutils has not all of them.
        if let Some(place) = places.iter().find(|place| place.exists()) {
            symlink(place, folder.join(program)).with_context(|| format!("link {program}"))?;
        }
    }
    fs::canonicalize(&folder).context("find the folder")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::event::Outcome;
    use super::super::program::{has_needs, modules_with_needs};
    use super::super::ran::Tested;
    use super::*;
    use crate::root::metadata;

    fn program() -> Program {
        let (package, name) = ("p".to_owned(), "it".to_owned());
        let (folder, file, words) = (PathBuf::new(), PathBuf::new(), Vec::new());
        Program { package, name, has_processes: true, folder, file, words }
    }

    fn ran(seconds: f64, outcome: Outcome, skips: &[&str]) -> Ran {
        let test = Tested { outcome, seconds, output: "it broke".to_owned() };
        let skips = skips.iter().map(|line| Skip::read(line).expect("a line").expect("a good one")).collect();
        Ran {
            tests: BTreeMap::from([("a::b".to_owned(), test)]),
            skips,
            bad_skips: Vec::new(),
            talk: String::new(),
        }
    }

    fn judged(ran: &Ran) -> Vec<String> {
        let mut findings = Vec::new();
        judge(&program(), ran, &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_test_that_fails_or_waits_is_found() {
        let skipped = ["SKIPPED: a::b: no node: get it"];
        assert_eq!(judged(&ran(0.5, Outcome::Passed, &skipped)), Vec::<String>::new());
        assert!(judged(&ran(0.5, Outcome::Failed, &[]))[0].contains("a::b fails where a program is missing"));
        assert!(judged(&ran(1.5, Outcome::Passed, &skipped))[0].contains("a::b waits 1.5 s"));
        // A part may come late in a test.
        assert_eq!(
            judged(&ran(9.0, Outcome::Passed, &["SKIPPED: a::b (c): no node: get it"])),
            Vec::<String>::new()
        );
        assert!(
            judged(&ran(0.5, Outcome::Passed, &["SKIPPED: main: no node: get it"]))[0]
                .contains("names no test")
        );
    }

    #[test]
    fn the_list_holds_both_ways() {
        let list = BTreeSet::from(["p it a::b: no node".to_owned(), "p it a::c: no node".to_owned()]);
        let seen = BTreeSet::from(["p it a::b: no node".to_owned(), "p it a::d: no go".to_owned()]);
        let mut findings = Vec::new();
        compare(&list, &seen, &mut findings);
        let findings: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(findings[0].contains("`p it a::d: no go` is not in the list"), "{findings:?}");
        assert!(findings[1].contains("`p it a::c: no node` did not happen"), "{findings:?}");
    }

    #[test]
    fn the_modules_of_listed_tests_are_run() {
        let list = ["p it a::b: no node", "p it a::c (x: y): no go", "p it top: no node", "q it z::y: no go"];
        let list = list.map(str::to_owned).into();
        assert_eq!(modules(&program(), &list), ["a::", "top"]);
    }

    /// A package whose tests need programs has lines in the list, and so has each module with tests that asks for one itself. So they run in
    /// each check.
    #[test]
    fn what_needs_programs_is_in_the_list() {
        let list = fs::read_to_string(root().join(LIST)).expect("the list");
        for entry in metadata(&root()).expect("metadata").packages {
            let folder = entry.manifest_path.parent().expect("a manifest is in a folder").as_std_path();
            let needs = has_needs(folder).expect("readable");
            let begin = format!("{} ", entry.name);
            assert_eq!(needs, list.lines().any(|line| line.starts_with(&begin)), "{}", entry.name);
            for module in modules_with_needs(&folder.join("tests/it")).expect("readable") {
                let begin = format!("{begin}it {module}::");
                assert!(list.lines().any(|line| line.starts_with(&begin)), "{LIST} has no `{begin}`");
            }
        }
    }
}
