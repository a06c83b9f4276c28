//! Backups that a running server makes of itself.

use crate::time;
use serde::{Deserialize, Serialize};

/// How a backup goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupState {
    /// The backup is under way.
    Running,
    /// The backup is whole: it is synced, and every record of it was read and checked.
    Done,
    /// The backup failed. `error` says why, and nothing is left of it.
    Failed,
    /// A caller or a stop of the server ended it; nothing is left of it.
    Stopped,
}

impl BackupState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Running, Self::Done, Self::Failed, Self::Stopped];

    /// The word on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// The step that a running backup is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupPhase {
    /// The files are copied.
    Copying,
    /// The copy is read, and every record is checked.
    Checking,
}

impl BackupPhase {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Copying, Self::Checking];

    /// The word on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Copying => "copying",
            Self::Checking => "checking",
        }
    }
}

/// A backup: the answer 202 of `POST /v1/backups`, and to `GET` and `DELETE /v1/backups/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupBody {
    /// Its number. A later backup has a higher one.
    pub id: u64,
    /// The name of its directory in that of `serve --backup-dir`. Until it is whole it is called `NAME.unfinished` there.
    pub name: String,
    /// How it goes.
    pub state: BackupState,
    /// The step that the backup is at while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<BackupPhase>,
    /// When it was begun, ms since 1970 by the clock of the server's system.
    #[serde(rename = "begun_at", with = "time::rfc3339")]
    pub begun_at_ms: i64,
    /// Everything that was acknowledged before this instant is in it, ms since 1970. Absent until the files are held still.
    #[serde(
        rename = "as_of",
        default,
        with = "time::rfc3339_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub as_of_ms: Option<i64>,
    /// When it was over, ms since 1970.
    #[serde(
        rename = "ended_at",
        default,
        with = "time::rfc3339_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended_at_ms: Option<i64>,
    /// Its files; 0 until they are known.
    pub files: u64,
    /// Bytes of them; 0 until they are known.
    pub bytes: u64,
    /// Bytes that the current phase has processed; equal to `bytes` once the backup is whole.
    pub bytes_done: u64,
    /// Live tasks in it, once it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// Tasks in it that were given up and are kept, once it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead: Option<u64>,
    /// Why it is not whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The answer to `GET /v1/backups`: `{"backups": [...]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupsBody {
    /// The one under way, the whole ones, and those of the last ones since the start of the server that failed or were stopped; the newest
    /// first. Of those in the directory up to 100 are shown.
    pub backups: Vec<BackupBody>,
    /// How many older directories with names of backups there are that are not shown; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older: Option<u64>,
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
