//! Backups that the server makes of itself.

use crate::exchange::Call;
use crate::{Client, ClientError};
use tickwheel_api::{BackupBody, BackupsBody};

impl Client {
    /// Begins a backup, and does not wait for it: [`backup`](Self::backup) says how it goes.
    ///
    /// # Errors
    ///
    /// As a problem: 409 if one is under way, 404 if the server has no place for backups; see [`ClientError`].
    pub fn begin_backup(&self) -> Result<BackupBody, ClientError> {
        self.exchange.send(Call::new("POST", "/v1/backups".to_owned()))?.body()
    }

    /// The backup under way, the whole ones and the last that failed, the newest first.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if the server has no place for backups; see [`ClientError`].
    pub fn backups(&self) -> Result<Vec<BackupBody>, ClientError> {
        Ok(self.list_backups()?.backups)
    }

    /// The same, with the count of the older ones that the answer does not show.
    ///
    /// # Errors
    ///
    /// As for [`backups`](Self::backups).
    pub fn list_backups(&self) -> Result<BackupsBody, ClientError> {
        self.exchange.send(Call::new("GET", "/v1/backups".to_owned()))?.body()
    }

    /// How a backup goes.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if there is none with this number; see [`ClientError`].
    pub fn backup(&self, id: u64) -> Result<BackupBody, ClientError> {
        self.exchange.send(Call::new("GET", format!("/v1/backups/{id}")))?.body()
    }

    /// Stops a backup that is under way; one that is whole stays.
    ///
    /// # Errors
    ///
    /// As for [`backup`](Self::backup).
    pub fn stop_backup(&self, id: u64) -> Result<BackupBody, ClientError> {
        self.exchange.send(Call::new("DELETE", format!("/v1/backups/{id}")).twice_is_once())?.body()
    }
}
