//! Finds the queues and keys of lost tasks in the frames of the log, also in frames that no recovery needs any more.

use std::collections::BTreeMap;

use tickwheel_engine::{Key, QueueName, Task};

use super::logs::LogFile;
use super::report::Loss;
use super::source::Source;
use crate::checksum::Seeds;
use crate::codec::{Names, Op, split_ops};
use crate::disk::Disk;
use crate::log::frames;

/// Fills in the queue and key of each task that a loss names without its key, if a frame of any log file has a record of the task. If there
/// is such a task, all log files are read again.
pub(super) fn name_tasks<D: Disk>(
    source: &mut Source<'_, D>,
    logs: &[LogFile],
    seeds: &Seeds,
    losses: &mut [Loss],
) {
    let nameless = losses.iter().flat_map(|loss| &loss.tasks).filter(|task| task.key.is_none());
    let mut wanted: BTreeMap<u64, Option<(QueueName, Key)>> = nameless.map(|task| (task.id, None)).collect();
    if wanted.is_empty() {
        return;
    }
    let mut names = Names::new();
    for log in logs {
        let bytes = source.read(&log.name, 0, log.len);
        source.close(&log.name);
        for (_, frame) in frames(&bytes, seeds) {
            for record in split_ops(frame.ops, &mut names) {
                if let Ok(Op::Stored(task) | Op::StoredBodyKnown(task)) = record.op
                    && let Some(name) = wanted.get_mut(&task.id)
                {
                    let Task { queue, key, .. } = task;
                    *name = Some((queue, key));
                }
            }
        }
    }
    for task in losses.iter_mut().flat_map(|loss| &mut loss.tasks).filter(|task| task.key.is_none()) {
        if let Some(Some((queue, key))) = wanted.get(&task.id) {
            (task.queue, task.key) = (Some(queue.clone()), Some(key.clone()));
        }
    }
}
