//! One run of a page, from top to bottom.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::docs::likeness::Likeness;
use crate::docs::page::{self, Page, Step, Typed};
use crate::docs::root;
use crate::docs::shell::{Done, Shell};

/// Programs that a page may use, and that a computer may lack.
const PROGRAMS: [&str; 11] =
    ["bash", "grep", "sed", "curl", "jq", "openssl", "python3", "node", "npm", "go", "redis-server"];

/// The result of the run.
#[derive(Debug, Default)]
pub(crate) struct Visit {
    pub(crate) path: String,
    /// The steps that ran.
    steps: usize,
    not_run: Vec<(usize, String)>,
    /// The program without which the page did not run.
    skipped: Option<String>,
    /// Everything that is not as the page says.
    pub(crate) wrong: Vec<String>,
    took: Duration,
}

impl Visit {
    /// Runs a page.
    pub(crate) fn of(path: &str) -> Self {
        let mut visit = Self { path: path.to_owned(), ..Self::default() };
        let begun = Instant::now();
        match page::read(&root(), path) {
            Ok(mut page) => {
                visit.not_run = std::mem::take(&mut page.not_run);
                visit.run(&page);
            }
            Err(wrong) => visit.wrong.push(wrong),
        }
        visit.took = begun.elapsed();
        visit
    }

    fn run(&mut self, page: &Page) {
        if page.has_doctests && !has_doctest(&page.path) {
            self.wrong.push(format!(
                "{}: no crate includes the page for rustdoc to run its Rust blocks",
                page.path
            ));
        }
        if page.steps.is_empty() {
            return;
        }
        if let Some(missing) = missing(page) {
            if tickwheel_testing::requires_all() {
                self.wrong.push(format!("{} cannot run: there is no {missing}", page.path));
            }
            self.skipped = Some(missing);
            return;
        }
        match Shell::start() {
            Ok(shell) => self.walk(page, shell),
            Err(why) => self.wrong.push(format!("{}: no shell starts: {why}", page.path)),
        }
    }

    /// Does every step of the page.
    fn walk(&mut self, page: &Page, mut shell: Shell) {
        if page.in_clone {
            for folder in ["contrib", "examples", "scripts"] {
                symlink(root().join(folder), shell.here().join(folder)).expect("linked");
            }
        }
        let (mut likeness, mut outputs, begun_wrong) = (Likeness::default(), Vec::new(), self.wrong.len());
        for step in &page.steps {
            let typed = match step {
                Step::Type(typed) => typed,
                Step::Save { line, file, text } => {
                    if let Err(why) = save(&shell, file, text) {
                        self.wrong.push(format!("{}:{line}: {why}", page.path));
                    }
                    continue;
                }
            };
            let text = likeness.of_this_run(&typed.text);
            let done = match shell.types(&if typed.marks.another_terminal { elsewhere(&text) } else { text })
            {
                Ok(done) => done,
                Err(why) => {
                    self.wrong.push(format!("{}:{}: {why}\n$ {}", page.path, typed.line, typed.text));
                    return;
                }
            };
            self.steps += 1;
            self.judge(page, typed, &done, &mut likeness);
            outputs.push((typed, done.output));
        }
        if self.wrong.len() > begun_wrong && std::env::var_os("DOCS_REWRITE").is_some() {
            rewrite(page, &outputs, &likeness);
        }
    }

    /// Compares what a step did with what the page says.
    fn judge(&mut self, page: &Page, typed: &Typed, done: &Done, likeness: &mut Likeness) {
        let place = format!("{}:{}: `{}`", page.path, typed.line, typed.text);
        let (exit, command) = done.failed.clone().unwrap_or_default();
        // A command that prints `$?` shows its exit code.
        if exit != typed.marks.exit && !typed.text.contains("$?") {
            self.wrong.push(format!("{place}\nexit code {exit} (`{command}`), printed:\n{}", done.output));
        }
        for part in &typed.marks.shows {
            if !done.output.contains(part) {
                self.wrong.push(format!("{place}\ndoes not show `{part}`, printed:\n{}", done.output));
            }
        }
        let Some(expected) = &typed.output else { return };
        let found: Vec<&str> = done.output.lines().collect();
        if !likeness.alike(expected, &found) {
            let (expected, found) = (expected.join("\n"), found.join("\n"));
            self.wrong
                .push(format!("{place}\n---- the page shows:\n{expected}\n---- it printed:\n{found}\n----"));
        }
    }
}

/// The commands of another terminal, and the wait of a reader until the server there listens.
fn elsewhere(text: &str) -> String {
    format!("{{\n{text}\n}} >terminal.log 2>&1 &\nuntil grep -q ^listening terminal.log; do sleep 0.02; done")
}

/// Whether a crate lets rustdoc compile the blocks of the page.
fn has_doctest(path: &str) -> bool {
    let crates = fs::read_dir(root().join("crates")).expect("a folder");
    let mut libraries =
        crates.filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("src/lib.rs")).ok());
    libraries.any(|text| text.contains(&format!("include_str!(\"../../../{path}\")")))
}

/// The first program that the page needs and this computer lacks, or the command that fails.
fn missing(page: &Page) -> Option<String> {
    if let Some(program) = missing_program(page) {
        return Some(program.to_owned());
    }
    let runs = |command: &str| {
        let mut sh = Command::new("sh");
        sh.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        sh.status().is_ok_and(|status| status.success())
    };
    if let Some(need) = page.needs.iter().find(|need| !runs(need)) {
        return Some(need.clone());
    }
    // Each page has its own network.
    if let Some(program) = ["unshare", "ip"].into_iter().find(|program| !tickwheel_testing::is_there(program))
    {
        return Some(program.to_owned());
    }
    let namespaces = "unshare --user --map-root-user --net --pid --fork --kill-child ip link set lo up";
    (!runs(namespaces)).then(|| namespaces.to_owned())
}

/// The first of [`PROGRAMS`] that is a word of the page's commands and that this computer lacks.
pub(crate) fn missing_program(page: &Page) -> Option<&'static str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let words: Vec<&str> = page.typed().flat_map(|typed| typed.text.split(|c: char| !is_part(c))).collect();
    // Every page runs in bash.
    let used = |program: &str| program == "bash" || words.contains(&program);
    PROGRAMS.into_iter().find(|program| used(program) && !tickwheel_testing::is_there(program))
}

/// Saves a block as a file. A file of the repository has to be there already.
fn save(shell: &Shell, file: &str, text: &str) -> Result<(), String> {
    if file.starts_with("examples/") {
        let there = fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
        return if there == text {
            Ok(())
        } else {
            Err(format!("the block is not the file {file} of the repository"))
        };
    }
    let path = shell.here().join(file);
    fs::create_dir_all(path.parent().expect("a folder")).map_err(|error| error.to_string())?;
    fs::write(path, text).map_err(|error| error.to_string())
}

/// Writes what was printed into the page.
fn rewrite(page: &Page, outputs: &[(&Typed, String)], likeness: &Likeness) {
    let mut lines = page.lines.clone();
    for (typed, output) in outputs.iter().rev() {
        let Some(shown) = &typed.output else { continue };
        let first = typed.line - 1;
        let command = likeness.of_this_run(&format!("$ {}", typed.text));
        let new = command.lines().chain(output.lines()).map(str::to_owned);
        lines.splice(first..first + typed.height() + shown.len(), new);
    }
    let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    fs::write(root().join(&page.path), text).expect("the page is written");
}

/// Says how much ran, and which blocks did not and why.
pub(crate) fn report(visits: &[Visit], took: Duration) -> String {
    let steps: usize = visits.iter().map(|visit| visit.steps).sum();
    let mut text = format!("{} pages, {steps} commands in {:.0} s", visits.len(), took.as_secs_f32());
    let slowest = visits.iter().max_by_key(|visit| visit.took);
    if let Some(slowest) = slowest {
        let _ = write!(text, "; the slowest is {} ({:.0} s)", slowest.path, slowest.took.as_secs_f32());
    }
    for visit in visits {
        if let Some(program) = visit.skipped.as_ref().filter(|_| !tickwheel_testing::requires_all()) {
            tickwheel_testing::missing_for(&visit.path, program, "the page cannot run without it");
        }
    }
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for visit in visits {
        for (line, reason) in &visit.not_run {
            reasons.entry(reason).or_default().push(format!("{}:{line}", visit.path));
        }
    }
    for (reason, places) in reasons {
        let _ = write!(text, "\nnot run, {reason}: {}", places.join(", "));
    }
    text
}
