//! Get: a task as its owner sees it.

use crate::calls::{Get, GetError, TaskView};
use crate::task::Ended;
use crate::tasks::Tasks;

impl Tasks<'_> {
    /// Returns the live or dead task of a key. The caller has looked the key up: the task is in memory, or `gone` is the end of the key's
    /// last task, if the store has one.
    pub(crate) fn get(&self, get: &Get, gone: Option<&Ended>) -> Result<TaskView, GetError> {
        let known = self.residence.by_key(&get.queue, &get.key);
        // Once the store has failed, the engine does not know whether the state in memory was written down.
        self.ledger.doubt_if(|| known.is_some_and(|slot| self.residence.get(slot).dirty.is_some()))?;
        match self.residence.kept(&get.queue, &get.key) {
            Some(slot) => {
                let group_in_flight = self.dispatch.group_in_flight(self.residence, slot);
                Ok(TaskView { group_in_flight, ..self.view(slot) })
            }
            None if self.is_done(&get.queue, &get.key, gone) => Err(GetError::Done),
            None => Err(GetError::NotFound),
        }
    }
}
