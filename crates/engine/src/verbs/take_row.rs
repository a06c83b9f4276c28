//! Takes a row of the inbox: a put that is owed its task, or a cancel.

use crate::calls::{Cancel, CancelError, Cancelled, Put, RowAct, TakeRow, TakeRowError};
use crate::reads::NamedPut;
use crate::tasks::Tasks;

impl Tasks<'_> {
    /// Takes a row of the inbox. The caller has looked the key up: the live or dead task of the key is in memory, or there is none.
    ///
    /// The effect and the id of the row go into one batch. A later effect on the same task may replace the effect of the row in this
    /// batch. The commit then shows what both did, in their order, so the row still had its effect.
    pub(crate) fn take_row(&mut self, take: TakeRow) -> Result<(), TakeRowError> {
        self.ledger.check_changes()?;
        let TakeRow { row, queue, key, act } = take;
        self.together(|tasks| {
            match act {
                RowAct::Put { due_at, put_at, body } => {
                    let put = Put::new(&queue, key.clone()).at(due_at);
                    let put = Put { asked_at: Some(put_at), body, ..put };
                    let (live, dead) = tasks.live_or_dead(&queue, &key);
                    tasks.decide_put(NamedPut { put, key, id: None, is_owed: true }, live, dead)?;
                }
                RowAct::Cancel => match tasks.cancel(&Cancel::new(&queue, key), None) {
                    Err(CancelError::Unavailable(why)) => return Err(why.into()),
                    Ok(Cancelled::Cancelled | Cancelled::Revoked) => {}
                    Err(CancelError::NotFound | CancelError::Done | CancelError::Leased) => {}
                    Err(CancelError::VersionMismatch { .. }) => unreachable!("the cancel names no version"),
                },
            }
            tasks.ledger.note_taken(row);
            Ok(())
        })
    }
}
