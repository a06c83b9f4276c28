//! [`Targets`]: the targets of queues, to which their tasks are pushed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Dispatch;
use crate::calls::{QueueError, Unavailable};
use crate::ledger::Ledger;
use crate::name::QueueName;
use crate::target::{TARGET_BYTES_MAX, TARGETS_MAX, TargetRecord};

/// A change that makes the value of a target at most this much longer (bytes) needs no room. So an owner can mark a target as stopped, or
/// name another place, although the disk is full.
const CHANGE_BYTES: u64 = 1_024;

/// The targets of the queues that have one, by name. The record of each queue has its target, too.
#[derive(Debug, Default)]
pub(super) struct Targets {
    by_queue: BTreeMap<QueueName, Arc<TargetRecord>>,
}

impl Targets {
    /// Notes the target that the record of a queue has now.
    pub(super) fn set(&mut self, name: &QueueName, target: Option<&Arc<TargetRecord>>) {
        match target {
            Some(target) => self.by_queue.insert(name.clone(), Arc::clone(target)),
            None => self.by_queue.remove(name),
        };
    }

    /// Checks that a queue may get this target.
    ///
    /// # Errors
    /// [`QueueError::TargetTooLong`]: the value is too long. [`QueueError::TooManyTargets`]: the queue has no target yet, and no more
    /// queues can have one.
    pub(super) fn check(&self, name: &QueueName, target: &TargetRecord) -> Result<(), QueueError> {
        if target.value.len() > TARGET_BYTES_MAX {
            return Err(QueueError::TargetTooLong { limit: TARGET_BYTES_MAX });
        }
        if self.by_queue.len() >= TARGETS_MAX && !self.by_queue.contains_key(name) {
            return Err(QueueError::TooManyTargets { limit: TARGETS_MAX });
        }
        Ok(())
    }
}

/// Returns the room that a change of a target needs (bytes), beside the room for a first record.
pub(super) fn growth(before: Option<&TargetRecord>, after: Option<&TargetRecord>) -> u64 {
    let bytes = |target: &TargetRecord| target.value.len() as u64;
    match (before.map(bytes), after.map_or(0, bytes)) {
        (None, after) => after,
        (Some(before), after) if after <= before.saturating_add(CHANGE_BYTES) => 0,
        (Some(before), after) => after - before,
    }
}

impl Dispatch {
    /// Returns the targets of all queues that have one, in the order of the names of the queues.
    ///
    /// # Errors
    /// [`Unavailable::Indeterminate`]: the store has failed, and it is unknown whether the last change of a queue's record is durable.
    pub(crate) fn list_targets(
        &self,
        ledger: &Ledger,
    ) -> Result<Vec<(QueueName, Arc<TargetRecord>)>, Unavailable> {
        self.doubt(ledger)?;
        Ok(self.targets.by_queue.iter().map(|(name, target)| (name.clone(), Arc::clone(target))).collect())
    }
}
