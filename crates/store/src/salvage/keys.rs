//! Decides which of several tasks with one key keeps the key.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_engine::{Key, QueueName, Task};

use super::fetch::{fetch, gone};
use super::found::Found;
use super::report::{Loss, Superseded};
use super::source::Source;
use crate::codec::Names;
use crate::disk::Disk;

/// The result for tasks that share a key.
#[derive(Default)]
pub(super) struct Settled {
    /// Dead tasks with a key that leads to another task.
    pub(super) keyless: BTreeSet<u64>,
    /// The losses of tasks whose records the disk does not give any more.
    pub(super) gone: Vec<Loss>,
}

impl Found {
    /// Decides which task has each key. Two live tasks have one key only if a record is lost: the end of the earlier task, or the record of
    /// its death. The tasks that lose a key are not to be written, except dead ones. Does nothing if the report has no loss.
    ///
    /// The highest version decides, as in the engine: a put or a redrive gives a task its key, and a version above that of each task that
    /// had the key before. The order of the puts does not decide, because a redrive brings back a task that was put earlier.
    pub(super) fn settle_keys<D: Disk>(&mut self, source: &mut Source<'_, D>) -> Settled {
        let mut settled = Settled::default();
        if self.report.is_whole() {
            return settled;
        }
        let mut names = Names::new();
        for same in self.index.same_keys() {
            // Two keys may have one hash.
            let mut by_key: BTreeMap<(QueueName, Key), Vec<Task>> = BTreeMap::new();
            for id in same {
                let Some(spot) = self.index.get(id).and_then(|known| known.spot) else { continue };
                match fetch(source, &self.files, spot, &mut names) {
                    Some(task) => {
                        by_key.entry((task.queue.clone(), task.key.clone())).or_default().push(task);
                    }
                    // The key of a task that cannot be read is unknown, and another task may have the same key. So the task is not to be
                    // written.
                    None => {
                        settled.gone.push(gone(&self.files, spot, id, None));
                        self.index.drop_task(id);
                    }
                }
            }
            by_key.into_values().for_each(|tasks| self.settle(tasks, &mut settled));
        }
        settled
    }

    /// Leaves the key to the task with the highest version. A dead task stays without its key; each other task is not to be written.
    fn settle(&mut self, mut tasks: Vec<Task>, settled: &mut Settled) {
        tasks.sort_by_key(|task| (task.version, task.id));
        let Some(owner) = tasks.pop() else { return };
        for task in tasks {
            if task.dead().is_some() {
                settled.keyless.insert(task.id);
            } else {
                self.index.drop_task(task.id);
                let Task { id, queue, key, .. } = task;
                self.report.supersede(Superseded { id, queue, key, by: owner.id });
            }
        }
    }
}
