//! Cancel: a task that has not ended ends.

use super::admit::IsLeased;
use crate::calls::{Answer, Cancel, CancelError, Cancelled};
use crate::input::CallId;
use crate::task::{Ended, Outcome};
use crate::tasks::Tasks;
use crate::time::Now;

impl Tasks<'_> {
    pub(crate) fn cancel(&mut self, now: Now, call: CallId, cancel: &Cancel, gone: Option<&Ended>) {
        let answer = self.decide_cancel(now, cancel, gone);
        self.ledger.answer(call, Answer::Cancel(answer));
    }

    fn decide_cancel(
        &mut self,
        now: Now,
        cancel: &Cancel,
        gone: Option<&Ended>,
    ) -> Result<Cancelled, CancelError> {
        let Some(slot) = self.residence.kept(&cancel.queue, &cancel.key) else {
            let done = self.is_done(now, &cancel.queue, &cancel.key, gone);
            return Err(if done { CancelError::Done } else { CancelError::NotFound });
        };
        let current = Some(self.residence.task(slot).version);
        if cancel.if_version.is_some() && cancel.if_version != current {
            return Err(CancelError::VersionMismatch { current });
        }
        let revoked = match self.may_change(slot, cancel.on_lease) {
            Err(IsLeased) if crate::planted::is("cancel-after-grant") => None,
            allowed => allowed.map_err(|IsLeased| CancelError::Leased)?,
        };
        match revoked {
            None => {
                self.end(now, slot, Outcome::Cancelled);
                Ok(Cancelled::Cancelled)
            }
            Some(lease) => {
                self.end(now, slot, Outcome::Revoked(lease));
                Ok(Cancelled::Revoked)
            }
        }
    }
}
