//! Backups that the server makes of itself.

use hyper::Method;
use tickwheel_api::{BackupBody, BackupsBody};

use crate::call::{Request, calls};

calls! {
    /// Begins a backup, and does not wait for it: [`backup`](Self::backup) shows its progress.
    ///
    /// # Errors
    ///
    /// As a problem: 409 if a backup is running, 404 if the server has no directory for backups; see
    /// [`ClientError`](crate::ClientError).
    fn begin_backup() -> BackupBody { Request::post("/v1/backups").answer() }

    /// The running backup, the whole ones and the last one that failed. The newest comes first.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if the server has no directory for backups; see [`ClientError`](crate::ClientError).
    fn backups() -> Vec<BackupBody> {
        Request::get("/v1/backups").read(|answer| Ok(answer.body::<BackupsBody>()?.backups))
    }

    /// Like [`backups`](Self::backups), with the number of older backups that the answer does not show.
    ///
    /// # Errors
    ///
    /// As for [`backups`](Self::backups).
    fn list_backups() -> BackupsBody { Request::get("/v1/backups").answer() }

    /// Returns the state of a backup.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if there is no backup with this number; see [`ClientError`](crate::ClientError).
    fn backup(id: u64) -> BackupBody { Request::get(format!("/v1/backups/{id}")).answer() }

    /// Stops a running backup. A whole backup stays.
    ///
    /// # Errors
    ///
    /// As for [`backup`](Self::backup).
    fn stop_backup(id: u64) -> BackupBody {
        Request::new(Method::DELETE, format!("/v1/backups/{id}")).safe_to_repeat().answer()
    }
}
