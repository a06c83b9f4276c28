//! Translates backups of the queue into bodies of the API.

use tickwheel_api::{BackupBody, BackupPhase, BackupState};
use tickwheel_queue::backup::{BackupPhase as Phase, BackupProgress, Manifest};
use tickwheel_queue::{BackupError, BackupReport, Timestamp};

/// The body of a running backup.
pub(crate) fn running(id: u64, name: String, begun_at: Timestamp, progress: BackupProgress) -> BackupBody {
    let (phase, bytes_done) = match progress.phase {
        Phase::Copying => (BackupPhase::Copying, progress.copied),
        Phase::Checking => (BackupPhase::Checking, progress.checked),
    };
    BackupBody {
        state: BackupState::Running,
        phase: Some(phase),
        as_of_ms: progress.as_of.map(Timestamp::as_ms),
        files: progress.files,
        bytes: progress.bytes,
        bytes_done,
        ..nothing_of(id, name, begun_at.as_ms())
    }
}

/// The body of a backup that has ended. `stops`: the server stops, and closes its queue.
pub(crate) fn over(
    body: BackupBody,
    ended_at: Timestamp,
    made: Result<BackupReport, BackupError>,
    stops: bool,
) -> BackupBody {
    let body = BackupBody { ended_at_ms: Some(ended_at.as_ms()), phase: None, ..body };
    match made {
        Ok(report) => with_report(BackupBody { state: BackupState::Done, ..body }, &report),
        Err(BackupError::Stopped) => BackupBody { state: BackupState::Stopped, ..body },
        Err(BackupError::Unavailable(_)) if stops => BackupBody { state: BackupState::Stopped, ..body },
        Err(error) => BackupBody { state: BackupState::Failed, error: Some(error.to_string()), ..body },
    }
}

/// The body of a backup in the directory, from its manifest, or from the damage if it cannot be read.
pub(crate) fn found(id: u64, name: String, manifest: Result<Manifest, String>) -> BackupBody {
    // The number is the time of the beginning, but never lower than an earlier number. If the clock was set back,
    // the time in the manifest differs from the number.
    let by_number = i64::try_from(id).unwrap_or(i64::MAX);
    match manifest {
        Ok(manifest) => {
            let begun_at_ms = manifest.begun_at().map_or(by_number, Timestamp::as_ms);
            let body = with_report(nothing_of(id, name, begun_at_ms), &manifest.report());
            let ended_at_ms = manifest.ended_at().map(Timestamp::as_ms);
            BackupBody { state: BackupState::Done, ended_at_ms, ..body }
        }
        Err(error) => BackupBody { error: Some(error), ..nothing_of(id, name, by_number) },
    }
}

fn with_report(body: BackupBody, report: &BackupReport) -> BackupBody {
    let BackupReport { files, bytes, as_of, tasks, dead, .. } = *report;
    BackupBody { files, bytes, bytes_done: bytes, as_of_ms: as_of.map(Timestamp::as_ms), tasks, dead, ..body }
}

/// The body of a failed backup, if nothing else is known of it.
fn nothing_of(id: u64, name: String, begun_at_ms: i64) -> BackupBody {
    BackupBody {
        id,
        name,
        state: BackupState::Failed,
        phase: None,
        begun_at_ms,
        as_of_ms: None,
        ended_at_ms: None,
        files: 0,
        bytes: 0,
        bytes_done: 0,
        tasks: None,
        dead: None,
        error: None,
    }
}
