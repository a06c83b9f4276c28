//! Backups that a running server makes of itself.

use crate::body::body;
use crate::choice::choice;
use crate::kind::{choice, count, instant, list, object, text};
use crate::part::{has, may};

choice! {
    /// How a backup goes.
    pub enum BackupState {
        /// The backup is under way.
        Running = "running",
        /// The backup is whole: it is synced, and every record of it was read and checked.
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
    /// A backup that the server makes of itself. What is not known yet is left out.
    ///
    /// The answer 202 of `POST /v1/backups`, and to `GET` and `DELETE /v1/backups/{id}`.
    pub struct BackupBody: answer "Backup" {
        /// Its number. A later backup has a higher one.
        id: u64 = has(count());
        /// Its directory in that of `--backup-dir`. Until it is whole it is called `NAME.unfinished` there.
        name: String = has(text(255, ""));
        /// How it goes. Of one that is `failed` or `stopped` nothing is left.
        state: BackupState = has(choice());
        /// While it is under way: it copies the files, or reads the copy and checks every record.
        phase: Option<BackupPhase> = may(choice());
        /// When it was begun, by the clock of the server's system, also beside a virtual clock.
        begun_at_ms as "begun_at": i64 = has(instant());
        /// Everything that was acknowledged before this instant is in it; with `--ack memory` what was not written yet is missing.
        ///
        /// Absent until the files are held still.
        as_of_ms as "as_of": Option<i64> = may(instant());
        /// When it was over.
        ended_at_ms as "ended_at": Option<i64> = may(instant());
        /// Its files; 0 until they are known.
        files: u64 = has(count());
        /// Bytes of them; 0 until they are known.
        bytes: u64 = has(count());
        /// Bytes that the current phase has processed; equal to `bytes` once the backup is whole.
        bytes_done: u64 = has(count());
        /// Live tasks in it.
        tasks: Option<u64> = may(count());
        /// Tasks in it that were given up and are kept.
        dead: Option<u64> = may(count());
        /// Why it is not whole.
        error: Option<String> = may(text(65_536, ""));
    }
}

body! {
    /// Backups.
    ///
    /// The answer to `GET /v1/backups`: the one under way, the whole ones, and those of the last ones since the start of the server that failed
    /// or were stopped.
    pub struct BackupsBody: answer "Backups" {
        /// The newest first; of those in the directory up to 100.
        backups: Vec<BackupBody> = has(list(object(), ""));
        /// How many older directories with names of backups there are that are not shown.
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
