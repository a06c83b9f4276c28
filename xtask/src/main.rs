//! Chores of the repository. `cargo xtask` without a word lists them.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for the terminal: findings out, talk beside"
)]

mod check;
mod code;
mod finding;
mod pages;
mod root;
mod toolchain;

use std::process::ExitCode;

use code::{arrows, no_std, plant, planted, suite, tidy};
use pages::{behaviours, claims, site, translations};

const USAGE: &str = "\
usage: cargo xtask CHORE

  check                fmt, clippy, arrows, tidy, claims, plant, behaviours, no-std, and cargo-deny if it is installed
  arrows               who imports whom, held against the drawings in ARCHITECTURE.md
  arrows CRATE         the arrows between files of a crate that run back up between its rooms, such as `arrows server`
  no-std               core builds without the standard library, with indexes of 32 bits
  behaviours           a test for each line of docs/reference/behaviours.md, and a line for each test that is named after one
  tidy [--never TEXT]  size of files, dead references, retired words, what has no place in the repository;
                       TEXT may stand nowhere in it, beside what is built in
  claims               sentences of the pages, English and Chinese, that say what was true once, such as that no server takes over; the true ones
                       with such words are in xtask/src/pages/claims/allowed.txt
  site                 the documentation as a site in target/book, by mdBook: all links lead somewhere, nothing comes from other hosts;
                       with the checks of `translations`
  translations [--strict]
                       each Chinese page has the blocks of its English original; names those whose original has changed, and
                       pages without a translation: notes, or errors if --strict
  translations blocks  copies the blocks of the originals into the translations
  translations stamp PAGE [ORIGINAL]
                       the same for one page, and says in it that its prose translates the original as it is now
  plant [FOLDER]       a copy of the repository with the bugs that the simulator has to find; without FOLDER: whether their patches fit
  tests [LABEL]        builds the test programs, and lists them; LABEL, such as `tickwheel-server it`: prints the file of this one
  slow-tests [TEXT]    runs the test programs with this text in their label, and lists their slowest tests
  bare-tests [listed | write]
                       the test programs with a PATH of coreutils alone: each test passes or says which program it needs, and the skipped
                       ones are those of scripts/bare.txt; `listed`: only the modules of these tests; `write`: writes the list
  flaky [RUNS] [--only TEXT] [--minutes N] [--copies N] [--since COMMIT]
                       runs the test programs, and the examples of the documentation, on a busy computer. Each test gets RUNS runs (20).
                       A test that starts processes gets three times as many. No program begins after 15 minutes.
                       The counts are added to target/flaky/counts (FLAKY_COUNTS).
  planted [BINARY]     the release binary has none of the simulator's bugs; default: target/release/tickwheel
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["check"] => check::run(),
        ["arrows"] => arrows::run(),
        ["arrows", name] => arrows::back(name),
        ["behaviours"] => behaviours::run(),
        ["no-std"] => no_std::run(),
        ["claims"] => claims::run(),
        ["tidy", options @ ..] => tidy::run(options),
        ["site"] => site::run(),
        ["translations", options @ ..] => translations::run(options),
        ["plant"] => plant::check(),
        ["plant", folder] => plant::run(folder),
        ["tests"] => suite::list(),
        ["tests", label] => suite::file(label),
        ["slow-tests"] => suite::slow(""),
        ["slow-tests", only] => suite::slow(only),
        ["bare-tests", options @ ..] => suite::bare(options),
        ["flaky", options @ ..] => suite::flaky(options),
        ["planted"] => planted::run(None),
        ["planted", binary] => planted::run(Some(binary)),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
