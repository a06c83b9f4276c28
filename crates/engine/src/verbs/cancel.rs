//! Cancel: ends a live or dead task.

use crate::calls::{Cancel, CancelError, Cancelled};
use crate::task::{Ended, Outcome};
use crate::tasks::Tasks;

impl Tasks<'_> {
    /// Ends the live or dead task of a key. The caller has looked the key up: the task is in memory, or `gone` is the end of the key's last
    /// task, if the store has one.
    pub(crate) fn cancel(&mut self, cancel: &Cancel, gone: Option<&Ended>) -> Result<Cancelled, CancelError> {
        self.ledger.check_changes()?;
        let Some(slot) = self.residence.kept(&cancel.queue, &cancel.key) else {
            let done = self.is_done(&cancel.queue, &cancel.key, gone);
            return Err(if done { CancelError::Done } else { CancelError::NotFound });
        };
        let current = Some(self.residence.task(slot).version);
        if cancel.if_version.is_some() && cancel.if_version != current {
            return Err(CancelError::VersionMismatch { current });
        }
        let revoked = self.may_change(slot, cancel.on_lease, CancelError::Leased)?;
        match revoked {
            None => {
                self.end(slot, Outcome::Cancelled);
                Ok(Cancelled::Cancelled)
            }
            Some(lease) => {
                self.end(slot, Outcome::Revoked(lease));
                Ok(Cancelled::Revoked)
            }
        }
    }
}
