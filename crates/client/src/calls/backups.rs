//! Backups that the server makes of itself.

use hyper::Method;
use tickwheel_api::{BackupBody, BackupsBody};

use crate::call::{Request, calls};

calls! {
    /// Begins a backup, and does not wait for it: [`backup`](Self::backup) says how it goes.
    ///
    /// # Errors
    ///
    /// As a problem: 409 if one is under way, 404 if the server has no directory for backups; see [`ClientError`](crate::ClientError).
    fn begin_backup() -> BackupBody { Request::post("/v1/backups").answer() }

    /// The backup under way, the whole ones and the last that failed, the newest first.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if the server has no directory for backups; see [`ClientError`](crate::ClientError).
    fn backups() -> Vec<BackupBody> {
        Request::get("/v1/backups").read(|answer| Ok(answer.body::<BackupsBody>()?.backups))
    }

    /// The same as [`backups`](Self::backups), with the count of the older ones that the answer does not show.
    ///
    /// # Errors
    ///
    /// As for [`backups`](Self::backups).
    fn list_backups() -> BackupsBody { Request::get("/v1/backups").answer() }

    /// How a backup goes.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if there is none with this number; see [`ClientError`](crate::ClientError).
    fn backup(id: u64) -> BackupBody { Request::get(format!("/v1/backups/{id}")).answer() }

    /// Stops a backup that is under way; one that is whole stays.
    ///
    /// # Errors
    ///
    /// As for [`backup`](Self::backup).
    fn stop_backup(id: u64) -> BackupBody {
        Request::new(Method::DELETE, format!("/v1/backups/{id}")).safe_to_repeat().answer()
    }
}
