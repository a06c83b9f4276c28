//! [`Program`]: a test program that cargo builds.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, Message, Package};

use crate::root::{metadata, root};
use crate::toolchain::cargo;

/// The package with the line of a test that needs a program.
const TESTING: &str = "tickwheel-testing";

/// A test program.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Program {
    pub(super) package: String,
    /// `lib`, or the name of the file below `tests`.
    pub(super) name: String,
    /// Whether its package has tests that need programs of others. Such tests start processes.
    pub(super) has_needs: bool,
    /// The folder of its package, where cargo starts it.
    pub(super) folder: PathBuf,
    pub(super) file: PathBuf,
}

impl Program {
    /// The package and the name.
    pub(super) fn label(&self) -> String {
        format!("{} {}", self.package, self.name)
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
            has_needs: has_needs(package),
            folder: folder.into(),
            file: file.into(),
        });
    }
    if !build.wait().context("wait for cargo")?.success() {
        bail!("the tests do not build");
    }
    programs.sort();
    Ok(programs)
}

pub(super) fn has_needs(package: &Package) -> bool {
    let is_for_tests = |kind| kind == DependencyKind::Development;
    package.dependencies.iter().any(|line| line.name == TESTING && is_for_tests(line.kind))
}
