//! Backups that a running server makes of itself.

use crate::declare::{body, choice, count, has, instant, list, may, object, text};

choice! {
    /// The state of a backup.
    pub enum BackupState {
        /// The backup is under way.
        Running = "running",
        /// The backup is complete: its files are synced, and every record in them was read and checked.
        Done = "done",
        /// The backup failed. `error` says why, and nothing is left of it.
        Failed = "failed",
        /// A caller or a stop of the server ended it; nothing is left of it.
        Stopped = "stopped",
    }
}

choice! {
    /// The step that a running backup is at.
    pub enum BackupPhase {
        /// The files are copied.
        Copying = "copying",
        /// The copy is read, and every record is checked.
        Checking = "checking",
    }
}

body! {
    /// A backup that the server makes of its own data. A member whose value is not known yet is left out.
    ///
    /// The body of the answer 202 to `POST /v1/backups`, and of the answers to `GET` and `DELETE /v1/backups/{id}`.
    pub struct BackupBody: answer "Backup" {
        /// The number of the backup. A later backup has a higher number.
        id: u64 = has(count());
        /// The name of its directory below `--backup-dir`. The directory is called `NAME.unfinished` until the backup is complete.
        name: String = has(text(255, ""));
        /// The state of the backup. A `failed` or `stopped` backup leaves no files.
        state: BackupState = has(choice());
        /// The step that a running backup is at: it copies the files, or it reads the copy and checks every record.
        phase: Option<BackupPhase> = may(choice());
        /// When the backup began, by the clock of the server's system, even if the server has a virtual clock.
        begun_at_ms as "begun_at": i64 = has(instant());
        /// The backup has every change that was acknowledged before this instant; with `--ack memory`, changes that were not written yet are missing.
        ///
        /// Absent until the backup has pinned the files that it copies.
        as_of_ms as "as_of": Option<i64> = may(instant());
        /// When the backup ended.
        ended_at_ms as "ended_at": Option<i64> = may(instant());
        /// Number of its files; 0 until it is known.
        files: u64 = has(count());
        /// Size of its files in bytes; 0 until it is known.
        bytes: u64 = has(count());
        /// Bytes that the current phase has processed; equal to `bytes` once the backup is complete.
        bytes_done: u64 = has(count());
        /// Number of live tasks in the backup.
        tasks: Option<u64> = may(count());
        /// Number of dead tasks in the backup.
        dead: Option<u64> = may(count());
        /// Why the backup failed.
        error: Option<String> = may(text(65_536, ""));
    }
}

body! {
    /// A list of backups.
    ///
    /// The answer to `GET /v1/backups`: the running backup, the complete ones, and the last backups that failed or were stopped since the server
    /// started.
    pub struct BackupsBody: answer "Backups" {
        /// The newest first; at most 100 of those in the directory.
        backups: Vec<BackupBody> = has(list(object(), ""));
        /// Number of older backup directories that the list leaves out.
        older: Option<u64> = may(count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_says_only_what_is_known() {
        let text = r#"{"id":7,"name":"backup-7","state":"running","phase":"copying","begun_at":"2026-11-25T10:00:00.000Z","files":0,"bytes":0,"bytes_done":0}"#;
        let backup: BackupBody = serde_json::from_str(text).expect("a backup");
        assert_eq!((backup.as_of_ms, backup.phase), (None, Some(BackupPhase::Copying)));
        assert_eq!(serde_json::to_string(&backup).expect("JSON"), text);
        let over = BackupBody {
            state: BackupState::Done,
            phase: None,
            as_of_ms: Some(1_700_000_000_123),
            tasks: Some(3),
            ..backup
        };
        let text = serde_json::to_string(&over).expect("JSON");
        assert!(text.contains(r#""as_of":"2023-11-14T22:13:20.123Z""#), "{text}");
        assert_eq!(serde_json::from_str::<BackupBody>(&text).expect("a backup"), over);
    }
}
