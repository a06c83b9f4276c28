//! [`BackupFigures`]: the results of backups, for `/metrics`.

use tickwheel_api::{BackupBody, BackupState};

/// The results of backups. Counts begin at the start of the server. The other values describe the last whole backup
/// of this data directory, even one from before the start.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub(crate) struct BackupFigures {
    /// When it ended (ms since 1970); 0 if there is none.
    pub(crate) last_success_ms: i64,
    /// How long it took (ms).
    pub(crate) duration_ms: u64,
    pub(crate) bytes: u64,
    done: u64,
    failed: u64,
    stopped: u64,
    left_out: u64,
}

impl BackupFigures {
    /// The values of the last whole backup, from before the start.
    pub(super) fn of_earlier(last: Option<&BackupBody>) -> Self {
        let mut figures = Self::default();
        if let Some(last) = last {
            figures.take_last(last);
        }
        figures
    }

    /// Counts one backup that has ended.
    pub(super) fn add(&mut self, backup: &BackupBody) {
        match backup.state {
            BackupState::Running => {}
            BackupState::Failed => self.failed += 1,
            BackupState::Stopped => self.stopped += 1,
            BackupState::Done => {
                self.done += 1;
                self.take_last(backup);
            }
        }
    }

    /// Counts a backup that was due while another was running.
    pub(super) fn leave_out(&mut self) {
        self.left_out += 1;
    }

    fn take_last(&mut self, backup: &BackupBody) {
        let ended_ms = backup.ended_at_ms.unwrap_or(backup.begun_at_ms);
        self.last_success_ms = ended_ms;
        self.duration_ms = u64::try_from(ended_ms - backup.begun_at_ms).unwrap_or_default();
        self.bytes = backup.bytes;
    }

    /// The number of backups since the start, by result.
    pub(crate) fn results(&self) -> [(&'static str, u64); 4] {
        let Self { done, failed, stopped, left_out, .. } = *self;
        [("done", done), ("failed", failed), ("stopped", stopped), ("left_out", left_out)]
    }
}
