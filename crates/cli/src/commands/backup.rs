//! `tickwheel backup`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::HumanBytes;
use tickwheel_api::{BackupBody, BackupState, BackupsBody, time};
use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;
use tickwheel_queue::backup::backup;
use tickwheel_queue::{BackupReport, Durability};

use crate::output::{Format, Row, say};
use crate::remote::Remote;

/// Let a running server back itself up, or copy the data directory of a stopped server
///
/// Without DIR and TO, the command asks a running server, which goes on serving. The server writes the backup into the directory of its
/// option `--backup-dir`. The backup has everything that was acknowledged before its instant `as_of`. The command reports the progress on
/// stderr until the backup is complete, and then prints the backup. If the command is interrupted, the backup goes on. With DIR and TO, the
/// command copies a directory that no server uses.
///
/// A backup and a copy have only what a start needs. They are synced, and every record is read and checked before they get their name;
/// until then the name is NAME.unfinished. A program that embeds the queue can make a copy while it runs: `Queue::backup_gently`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel backup                                       of the server at http://127.0.0.1:8463, while it runs
  tickwheel backup --server https://tasks.example:8463 -o json | jq -r .name
  tickwheel backup --list
  tickwheel backup ./tickwheel-data /backup/monday       of a stopped server
  tickwheel restore /backup/monday ./tickwheel-data")]
pub(crate) struct Backup {
    /// The data directory of a stopped server. Without DIR, a running server is asked
    #[arg(value_name = "DIR", requires = "to")]
    directory: Option<PathBuf>,
    /// The directory for the copy of DIR: absent, or empty
    #[arg(value_name = "TO")]
    to: Option<PathBuf>,
    /// Begin a backup, print its number and name, and do not wait for it
    #[arg(long, conflicts_with_all = ["directory", "list", "stop"])]
    no_wait: bool,
    /// Show the backups of the server: the running one, the complete ones, and the last one that failed
    #[arg(long, conflicts_with_all = ["directory", "stop"])]
    list: bool,
    /// Stop the backup with this number and remove its files
    #[arg(long, value_name = "ID", conflicts_with = "directory")]
    stop: Option<u64>,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

/// The time between two requests for the state of a backup.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// The number of consecutive requests that may fail before the command gives up. A server that restarts does not answer for a moment.
const SILENT_LOOKS_MAX: u32 = 25;

impl Backup {
    /// Copies a directory, or asks a server for a backup.
    ///
    /// # Errors
    /// The directory or the target is not usable; there is no server, or the server refuses; the backup failed or was stopped.
    pub(crate) fn run(self) -> Result<ExitCode> {
        if let (Some(directory), Some(to)) = (&self.directory, &self.to) {
            warn_of_others(directory);
            let report = backup(directory, to).context("failed to back up")?;
            say(&told(report, to));
            return Ok(ExitCode::SUCCESS);
        }
        let client = self.remote.client()?;
        let shown = match (self.list, self.stop) {
            (true, _) => {
                let BackupsBody { backups, older, .. } = client.list_backups()?;
                if backups.is_empty() {
                    say("there are no backups");
                    return Ok(ExitCode::SUCCESS);
                }
                if let Some(older) = older {
                    say(&format!("{older} older ones are not shown; they are in the directory of backups"));
                }
                backups
            }
            (false, Some(id)) => vec![client.stop_backup(id)?],
            (false, None) => {
                let begun = client.begin_backup().context("failed to back up")?;
                if self.no_wait {
                    vec![begun]
                } else {
                    let over = follow(&client, begun)?;
                    let is_whole = over.state == BackupState::Done;
                    self.format.print([&over])?;
                    return if is_whole { Ok(ExitCode::SUCCESS) } else { failed(&over) };
                }
            }
        };
        self.format.print(shown.iter())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn failed(backup: &BackupBody) -> Result<ExitCode> {
    match &backup.error {
        Some(error) => bail!("failed to back up: {error}"),
        None => bail!("failed to back up: it was stopped"),
    }
}

/// Waits for the end of a backup, and reports its progress.
fn follow(client: &Client, begun: BackupBody) -> Result<BackupBody> {
    let (mut last, mut said, mut silent) = (begun, String::new(), 0);
    while last.state == BackupState::Running {
        let now = progress(&last);
        if now != said {
            say(&now);
            said = now;
        }
        std::thread::sleep(LOOK_AGAIN);
        match client.backup(last.id) {
            Ok(shown) => (last, silent) = (shown, 0),
            Err(error) if is_final(&error) || silent == SILENT_LOOKS_MAX => {
                let why =
                    format!("lost sight of backup {} ({}); `tickwheel backup --list`", last.id, last.name);
                return Err(error).context(why);
            }
            Err(_) => silent += 1,
        }
    }
    Ok(last)
}

/// Whether every later request would fail in the same way: the token has no right to the backup (401, 403), or the server was restarted and
/// does not know the backup (404). A later request to a busy or stopping server (429, 503) may succeed.
fn is_final(error: &ClientError) -> bool {
    error.problem().is_some_and(|problem| matches!(problem.status, 401 | 403 | 404))
}

/// The progress of a backup, in steps of 10 %.
fn progress(backup: &BackupBody) -> String {
    let BackupBody { id, name, phase, bytes, bytes_done, .. } = backup;
    let phase = phase.map_or("waiting", |phase| phase.name());
    if *bytes == 0 {
        return format!("backup {id}: {phase} {name}");
    }
    let percent = bytes_done.saturating_mul(10) / bytes * 10;
    format!("backup {id}: {phase}, {percent} % of {}", HumanBytes(*bytes))
}

impl Row for &BackupBody {
    const HEADER: &'static [&'static str] =
        &["NAME", "BACKUP", "STATE", "AS OF", "FILES", "BYTES", "TASKS", "REMARKS"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let state = match self.phase {
            Some(phase) => format!("{}, {}", self.state.name(), phase.name()),
            None => self.state.name().to_owned(),
        };
        vec![
            self.name.clone(),
            self.id.to_string(),
            state,
            self.as_of_ms.map(time::format).unwrap_or_default(),
            self.files.to_string(),
            HumanBytes(self.bytes).to_string(),
            self.tasks.map(|tasks| tasks.to_string()).unwrap_or_default(),
            self.error.clone().unwrap_or_default(),
        ]
    }
}

/// The text that says which acknowledged calls a backup has. Without durability (`--ack memory`), the last calls before `as_of` may be
/// missing.
pub(crate) fn has_since(as_of: &str, ack: Option<Durability>) -> String {
    match ack {
        Some(Durability::Memory) => format!(
            "everything written before {as_of} is in it; the server acknowledged before it wrote (--ack memory), so what it acknowledged in \
             the last moments before that may be missing"
        ),
        _ => format!("everything acknowledged before {as_of} is in it"),
    }
}

/// A count with its noun.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Warns if other users may change the files that are copied.
pub(super) fn warn_of_others(directory: &Path) {
    if let Some(warning) = tickwheel_queue::warning_of_others(directory) {
        say(&format!("warning: {warning}"));
    }
}

/// The text about a finished copy, in a few lines.
pub(super) fn told(report: BackupReport, to: &Path) -> String {
    let BackupReport { files, bytes, as_of, ack, tasks, dead, queues, ended, .. } = report;
    let files = counted(files, "file");
    let mut lines = vec![format!("{files}, {} copied to {}", HumanBytes(bytes), to.display())];
    let counts = tasks.zip(dead).zip(queues.zip(ended));
    lines.extend(counts.map(|((tasks, dead), (queues, ended))| {
        let [tasks, queues] = [counted(tasks, "live task"), counted(queues, "queue")];
        format!("it has {tasks} and {dead} dead in {queues}, and remembers {}", counted(ended, "end"))
    }));
    lines.extend(as_of.map(|at| has_since(&time::format(at.as_ms()), ack)));
    lines.push("every record of the copy was read and checked".to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_a_copy_says_which_calls_may_be_missing() {
        let report = |ack| {
            let mut report = BackupReport::default();
            (report.files, report.ack, report.as_of) = (1, ack, tickwheel_queue::Timestamp::from_ms(0));
            (report.tasks, report.dead, report.queues, report.ended) = (Some(1), Some(2), Some(1), Some(0));
            told(report, Path::new("to"))
        };
        let synced = report(Some(Durability::Fsync));
        for part in [
            "1 file, ",
            "1 live task and 2 dead in 1 queue, and remembers 0 ends",
            "everything acknowledged before 1970",
            "every record of the copy was read and checked",
        ] {
            assert!(synced.contains(part), "{part} is not in {synced}");
        }
        let memory = report(Some(Durability::Memory));
        assert!(
            memory.contains("everything written before 1970") && memory.contains("may be missing"),
            "{memory}"
        );
    }

    #[test]
    fn the_progress_is_told_in_steps_of_ten() {
        let text = r#"{"id":7,"name":"backup-7","state":"running","phase":"copying","begun_at":"2026-11-25T10:00:00.000Z","files":1,"bytes":1000,"bytes_done":0}"#;
        let backup: BackupBody = serde_json::from_str(text).expect("a backup");
        let at = |bytes_done| progress(&BackupBody { bytes_done, ..backup.clone() });
        assert_eq!(at(0), "backup 7: copying, 0 % of 1000 B");
        assert_eq!(
            (at(99), at(999), at(1000)),
            (at(0), at(0).replace(" 0 %", " 90 %"), at(0).replace(" 0 %", " 100 %"))
        );
    }
}
