//! [`Programs`]: the programs of one installation of PostgreSQL.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The user that runs the server if the test itself runs as root. The server refuses root.
const USER: &str = "postgres";

/// The programs of one installation of PostgreSQL.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Finds the programs, as [`tickwheel_testing::postgres`] does. `None`: PostgreSQL is missing, and the running test is skipped.
    pub(crate) fn find() -> Option<Self> {
        tickwheel_testing::postgres().map(|folder| Self { folder })
    }

    /// Returns the command of a program that talks to a server.
    pub(crate) fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.folder.join(program));
        // Variables of the person who runs the tests would change the target or the output.
        for name in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS", "PGSERVICE", "PGSSLMODE"] {
            command.env_remove(name);
        }
        command.env("PGCONNECT_TIMEOUT", "30");
        command
    }

    /// Returns the path of a program.
    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    /// Returns the command of a program that has the files of a server: as the user that the server accepts, in this directory.
    pub(crate) fn own(&self, program: &str, directory: &Path) -> Command {
        own(&self.folder.join(program), directory)
    }

    /// Returns the command of a shell that has the files of a server.
    pub(crate) fn own_shell(&self, directory: &Path) -> Command {
        own(Path::new("/bin/sh"), directory)
    }

    /// Gives a new directory to the user that runs the server.
    pub(crate) fn give(directory: &Path) {
        if is_root() {
            let number = |option: &str| {
                let answer = Command::new("id").args([option, USER]).output().expect("id is installed");
                let text = String::from_utf8(answer.stdout).expect("a number");
                text.trim()
                    .parse()
                    .unwrap_or_else(|_| panic!("the user {USER} is missing; the server refuses root"))
            };
            chown(directory, Some(number("-u")), Some(number("-g"))).expect("root may do that");
        }
    }
}

fn own(program: &Path, directory: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={USER}")).arg(format!("--regid={USER}")).arg("--clear-groups");
        command.arg(program);
        command
    } else {
        Command::new(program)
    };
    // The user of the server may not enter every folder in which a test runs.
    command.current_dir(directory).env("LC_ALL", "C.UTF-8");
    command
}

/// Runs the command to its end. Panics with its output if it fails.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
