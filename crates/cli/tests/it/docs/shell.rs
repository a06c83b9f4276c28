//! One shell for each page, in namespaces of its own: the ports of the page are free, and its processes end with it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

/// The first line of the shell. The trap notes the first command that fails, as `set -e` would see it.
const BEGIN: &str = r#"trap 'page_failed=${page_failed:-$? $BASH_COMMAND}' ERR; echo ready"#;
/// Replaces cargo: it runs only what is built already.
const CARGO: &str = r#"#!/bin/sh
built='@BUILT@'
all=$*
name=tickwheel
[ "$1" = run ] && shift
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case "$1" in
        -q | --release) ;;
        -p) shift; [ "$1" = tickwheel-examples ] || exec echo "no package $1 here" ;;
        --bin) shift; name=$1 ;;
        *) echo "\`cargo $all\` is not known here" >&2; exit 2 ;;
    esac
    shift
done
[ $# -eq 0 ] || shift
exec "$built/$name" "$@"
"#;

/// A shell that stands in an empty directory, with `tickwheel` on its path.
pub(crate) struct Shell {
    process: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    folder: tempfile::TempDir,
    typed: usize,
}

/// The result of one step of a page.
#[derive(Debug)]
pub(crate) struct Done {
    /// Everything that it printed, to stdout and stderr.
    pub(crate) output: String,
    /// The exit code of its first command that failed, and that command.
    pub(crate) failed: Option<(i32, String)>,
}

impl Shell {
    /// Starts a shell.
    pub(crate) fn start() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let at = |name: &str| folder.path().join(name);
        prepare(folder.path()).map_err(|error| format!("prepare a folder: {error}"))?;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child"])
            .args(["sh", "-c", "ip link set lo up && exec bash --noprofile --norc"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir(at("here"));
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("TICKWHEEL_") || name == "RUST_LOG" || name.to_lowercase().ends_with("_proxy")
            {
                command.env_remove(name);
            }
        }
        command
            .env("PATH", format!("{}:{path}", at("bin").display()))
            .env("CURL_HOME", at("curl"))
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let mut process = command.spawn().map_err(|error| format!("unshare: {error}"))?;
        let input = process.stdin.take().expect("piped");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line).ok());
        });
        let mut shell = Self { process, input, answers, folder, typed: 0 };
        match shell.ask(BEGIN) {
            Ok(answer) if answer == "ready" => Ok(shell),
            _ => Err(shell.end()),
        }
    }

    /// The directory in which the page runs.
    pub(crate) fn here(&self) -> PathBuf {
        self.folder.path().join("here")
    }

    /// Types the text of one step, and waits for its end.
    pub(crate) fn types(&mut self, text: &str) -> Result<Done, String> {
        self.typed += 1;
        let script = self.folder.path().join(format!("script.{}", self.typed));
        let output = self.folder.path().join(format!("output.{}", self.typed));
        fs::write(&script, format!("{text}\n")).map_err(|error| error.to_string())?;
        let answer = self.ask(&format!(
            "page_failed=; . '{}' >'{}' 2>&1 </dev/null; echo \"${{page_failed//$'\\n'/ }}\"",
            script.display(),
            output.display()
        ))?;
        let failed = answer
            .split_once(' ')
            .map(|(code, command)| (code.parse().expect("an exit code"), command.to_owned()));
        let output = fs::read(&output).map_err(|error| error.to_string())?;
        let output = String::from_utf8_lossy(&output);
        Ok(Done { output: as_at_a_terminal(&output, self.folder.path()), failed })
    }

    /// Lets the shell carry out one line, and waits for the line that it answers.
    fn ask(&mut self, line: &str) -> Result<String, String> {
        writeln!(self.input, "{line}").map_err(|_| "the shell has ended".to_owned())?;
        self.answers.recv_timeout(tickwheel_testing::HANG_TIME).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                format!("it does not end within {} s", tickwheel_testing::HANG_TIME.as_secs())
            }
            RecvTimeoutError::Disconnected => "it ends the shell".to_owned(),
        })
    }

    /// Ends the shell. Its complaints explain why it did not start.
    fn end(mut self) -> String {
        let _ = self.process.kill();
        let mut said = String::new();
        if let Some(mut stderr) = self.process.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
        }
        said.trim().to_owned()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The first process of the namespace ends with `unshare`, and all others end with the first.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes the folders beside the directory of the page.
fn prepare(folder: &Path) -> std::io::Result<()> {
    for name in ["here", "bin", "curl"] {
        fs::create_dir(folder.join(name))?;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_tickwheel"));
    symlink(program, folder.join("bin/tickwheel"))?;
    let built = program.parent().expect("a folder").to_str().expect("UTF-8");
    fs::write(folder.join("bin/cargo"), CARGO.replace("@BUILT@", built))?;
    fs::set_permissions(folder.join("bin/cargo"), fs::Permissions::from_mode(0o755))?;
    // A reader at a terminal does not see curl's progress.
    fs::write(folder.join("curl/.curlrc"), "no-progress-meter\n")
}

/// The output without what is different at a terminal: the name of the script in the messages of the shell, and its
/// message that a process in the background was killed.
fn as_at_a_terminal(output: &str, folder: &Path) -> String {
    let script = format!("{}/script.", folder.display());
    let mut lines = Vec::new();
    for line in output.lines() {
        let Some(rest) = line.strip_prefix(&script) else {
            lines.push(line.to_owned());
            continue;
        };
        let message = rest.splitn(3, ": ").nth(2).unwrap_or(rest);
        let of_a_job = message.trim_start().starts_with(|first: char| first.is_ascii_digit());
        if !of_a_job {
            lines.push(format!("bash: {message}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_shell_look_as_at_a_terminal() {
        let output =
            "a\n/t/script.3: line 1: x: command not found\n/t/script.4: line 1:     7 Killed   sleep 9\nb\n";
        assert_eq!(as_at_a_terminal(output, Path::new("/t")), "a\nbash: x: command not found\nb");
    }
}
