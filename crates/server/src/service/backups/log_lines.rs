//! Log lines about backups.

use tickwheel_api::{BackupBody, BackupState, Problem};

use crate::events;

/// A backup begins.
pub(super) fn begun(id: u64, name: &str) {
    tracing::info!(event = events::BACKUP_BEGUN, id, name, "a backup is begun");
}

/// A backup was due while the one with this number was running.
pub(super) fn left_out(under_way: u64) {
    tracing::warn!(
        event = events::BACKUP_LEFT_OUT,
        under_way,
        "skipped a scheduled backup: another backup is still running"
    );
}

/// A backup was due and cannot begin.
pub(super) fn not_begun(problem: &Problem) {
    tracing::error!(event = events::BACKUP_FAILED, %problem, "a backup was due and cannot be begun");
}

/// A backup has ended.
pub(super) fn over(body: &BackupBody) {
    let BackupBody { id, name, bytes, files, tasks, error, .. } = body;
    let took_ms = took_ms(body);
    match body.state {
        BackupState::Done => tracing::info!(
            event = events::BACKUP_WHOLE,
            id,
            name,
            bytes,
            files,
            tasks,
            took_ms,
            "a backup is whole"
        ),
        BackupState::Failed => {
            tracing::error!(event = events::BACKUP_FAILED, id, name, error, took_ms, "a backup failed")
        }
        BackupState::Running => unreachable!("backup {id} is over"),
        BackupState::Stopped => {
            tracing::warn!(event = events::BACKUP_STOPPED, id, name, took_ms, "a backup was stopped");
        }
    }
}

/// The duration of a backup that has ended (ms).
fn took_ms(body: &BackupBody) -> u64 {
    body.ended_at_ms.map_or(0, |ended| u64::try_from(ended - body.begun_at_ms).unwrap_or_default())
}
