//! Get: a task as its owner sees it.

use std::sync::Arc;

use crate::calls::{Get, GetError, TaskView, Unavailable};
use crate::task::Ended;
use crate::tasks::Tasks;
use crate::time::Now;

impl Tasks<'_> {
    /// Returns a task whose key is in memory. If it is not, `gone` is what the store knows of the last task of the key.
    pub(crate) fn get(&self, now: Now, get: &Get, gone: Option<&Ended>) -> Result<TaskView, GetError> {
        let known = self.residence.by_key(&get.queue, &get.key);
        let unsure = known.is_some_and(|slot| self.residence.get(slot).dirty.is_some());
        let found = self.residence.kept(&get.queue, &get.key);
        match (self.ledger.failure(), found) {
            // The state in memory may have been written down or not.
            (Some(why), _) if unsure => {
                Err(GetError::Unavailable(Unavailable::Indeterminate { why: Arc::clone(why) }))
            }
            (_, Some(slot)) => {
                let group_in_flight = self.dispatch.group_in_flight(self.residence, slot);
                Ok(TaskView { group_in_flight, ..self.view(slot) })
            }
            (_, None) if self.is_done(now, &get.queue, &get.key, gone) => Err(GetError::Done),
            (_, None) => Err(GetError::NotFound),
        }
    }
}
