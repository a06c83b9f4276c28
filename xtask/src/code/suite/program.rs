//! [`Program`]: a test program that cargo builds.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use cargo_metadata::Message;

use crate::root::{Text, metadata, root, texts};
use crate::toolchain::{by_itself, cargo};

/// The functions of `tickwheel_testing` by which a test says that a program is missing.
const NEEDS: [&str; 4] = ["has(", "missing(", "missing_for(", "postgres("];

/// Words of the code that starts any other process.
const PROCESSES: [&str; 2] = ["Command::new(", "CARGO_BIN_EXE_"];

/// A test program.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Program {
    pub(super) package: String,
    /// `lib`, or the name of the file below `tests`.
    pub(super) name: String,
    /// Whether tests of it start processes.
    pub(super) has_processes: bool,
    /// The folder of its package, where cargo starts it.
    pub(super) folder: PathBuf,
    pub(super) file: PathBuf,
    /// Words before those of the harness. Empty, unless cargo itself is the program: it runs the examples in the documentation of a package.
    pub(super) words: Vec<String>,
}

impl Program {
    /// The package and the name.
    pub(super) fn label(&self) -> String {
        format!("{} {}", self.package, self.name)
    }

    /// Whether its tests are the examples in the documentation of its package.
    pub(super) fn is_examples(&self) -> bool {
        !self.words.is_empty()
    }

    /// The names of its tests, without those that only run when they are asked for.
    pub(super) fn tests(&self) -> Result<BTreeSet<String>> {
        let ignored = self.listed(&["--ignored"])?;
        Ok(self.listed(&[])?.difference(&ignored).cloned().collect())
    }

    fn listed(&self, words: &[&str]) -> Result<BTreeSet<String>> {
        let mut command = by_itself(&self.file, &[]);
        command.args(&self.words).args(["--list", "--format=terse"]).args(words).current_dir(&self.folder);
        let output = command.output().with_context(|| format!("start {}", self.file.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{} does not list its tests: {}\n{said}", self.label(), output.status);
        }
        let text = String::from_utf8(output.stdout).context("read the names of tests")?;
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }
}

/// Builds the test programs of the workspace, if they are not built, and returns them in the order of their labels.
pub(super) fn all() -> Result<Vec<Program>> {
    let metadata = metadata(&root())?;
    let words = ["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];
    let mut cargo = cargo();
    cargo.args(words).current_dir(root()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut build = cargo.spawn().context("start cargo test --no-run")?;
    let output = BufReader::new(build.stdout.take().expect("piped"));
    let mut programs = Vec::new();
    for message in Message::parse_stream(output) {
        let Message::CompilerArtifact(artifact) = message.context("read what cargo says")? else { continue };
        let Some(file) = artifact.executable.filter(|_| artifact.profile.test) else { continue };
        let package = metadata.packages.iter().find(|package| package.id == artifact.package_id);
        let package = package.with_context(|| format!("{} is of no package here", artifact.package_id))?;
        let is_test = artifact.target.is_test();
        let folder = package.manifest_path.parent().context("a manifest is in a folder")?;
        programs.push(Program {
            package: package.name.to_string(),
            name: if is_test { artifact.target.name } else { artifact.target.kind[0].to_string() },
            has_processes: has_processes(folder.as_std_path(), is_test)?,
            folder: folder.into(),
            file: file.into(),
            words: Vec::new(),
        });
    }
    if !build.wait().context("wait for cargo")?.success() {
        bail!("the tests do not build");
    }
    programs.sort();
    Ok(programs)
}

/// The examples in the documentation of each package of the workspace, in the order of their labels. They are compiled at each run.
pub(super) fn examples() -> Result<Vec<Program>> {
    let metadata = metadata(&root())?;
    let mut programs = Vec::new();
    for package in metadata.workspace_packages() {
        if !package.targets.iter().any(|target| target.doctest) {
            continue;
        }
        let folder = package.manifest_path.parent().context("a manifest is in a folder")?;
        let words = ["test", "--doc", "--package", package.name.as_str(), "--"];
        programs.push(Program {
            package: package.name.to_string(),
            name: "doc".to_owned(),
            has_processes: false,
            folder: folder.into(),
            file: cargo().get_program().into(),
            words: words.map(str::to_owned).into(),
        });
    }
    programs.sort();
    Ok(programs)
}

/// The programs with this text in their label.
///
/// # Errors
/// If there is none.
pub(super) fn labelled(mut programs: Vec<Program>, text: &str) -> Result<Vec<Program>> {
    programs.retain(|program| program.label().contains(text));
    if programs.is_empty() {
        bail!("no test program has `{text}` in its label; `cargo xtask tests` lists the labels");
    }
    Ok(programs)
}

/// Whether tests of a package start processes: those below `tests` if `is_test`, or those beside the code.
fn has_processes(package: &Path, is_test: bool) -> Result<bool> {
    let folder = package.join(if is_test { "tests" } else { "src" });
    let sources = texts(&folder)?;
    Ok(sources.iter().any(|source| {
        let tests = if is_test { &source.text } else { tests_of(source) };
        names_a_need(tests) || PROCESSES.iter().any(|word| tests.contains(word))
    }))
}

/// The tests in a file beside the code.
fn tests_of(source: &Text) -> &str {
    if format!("/{}", source.path).contains("/tests") {
        return &source.text;
    }
    source.text.split_once("#[cfg(test)]").map_or("", |(_, tests)| tests)
}

/// Whether tests of the package in this folder need an external program.
#[cfg(test)]
pub(super) fn has_needs(package: &Path) -> Result<bool> {
    let folders = ["src", "tests"].map(|folder| package.join(folder));
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        if texts(folder)?.iter().any(|source| names_a_need(&source.text)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The modules of `tests/it` that have tests and ask for a program. A module without tests is a kit.
#[cfg(test)]
pub(super) fn modules_with_needs(folder: &Path) -> Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let sources = texts(folder)?;
    let asks = |source: &&Text| names_a_need(&source.text) && source.text.contains("test]\n");
    let module = |source: &Text| {
        let path = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
        path.replace('/', "::")
    };
    Ok(sources.iter().filter(asks).map(module).collect())
}

fn names_a_need(text: &str) -> bool {
    NEEDS.iter().any(|function| text.contains(&format!("tickwheel_testing::{function}")))
}
