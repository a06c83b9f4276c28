//! An import of tasks of several shards.

use std::collections::BTreeMap;

use tickwheel_engine::{IMPORT_TASKS_MAX, ImportTasks, Imported, ShardId, Unavailable};

use crate::caller::Caller;
use crate::pending::Pending;
use crate::router::Router;

/// Imports the tasks of each shard in their order. The shards work at the same time, so tasks of other shards may be imported although they
/// are behind a refused one.
pub(crate) fn import(
    shards: &[Caller],
    router: Router,
    import: ImportTasks,
) -> Pending<Imported, Unavailable> {
    let ImportTasks { mut tasks, existing, on_lease, ids_below } = import;
    tasks.truncate(IMPORT_TASKS_MAX);
    let count = tasks.len();
    let mut parts: BTreeMap<u32, (Vec<usize>, Vec<_>)> = BTreeMap::new();
    for (index, task) in tasks.into_iter().enumerate() {
        let (indices, tasks) = parts.entry(ShardId::number(router.of_queue(&task.queue))).or_default();
        indices.push(index);
        tasks.push(task);
    }
    let asked: Vec<_> = parts
        .into_iter()
        .map(|(shard, (indices, tasks))| {
            let part = ImportTasks { tasks, existing, on_lease, ids_below };
            (indices, shards[shard as usize].call(part))
        })
        .collect();
    Pending::many(async move {
        let mut outcomes = vec![None; count];
        let mut refused = None;
        for (indices, pending) in asked {
            let imported = pending.await?;
            let refused_at = indices.get(imported.outcomes.len());
            for (index, outcome) in indices.iter().zip(imported.outcomes) {
                outcomes[*index] = Some(outcome);
            }
            if let (Some(error), Some(&at)) = (imported.refused, refused_at)
                && refused.as_ref().is_none_or(|(first, _)| at < *first)
            {
                refused = Some((at, error));
            }
        }
        // The answer ends before the first task that was refused.
        let outcomes = outcomes.into_iter().map_while(|outcome| outcome).collect();
        Ok(Imported { outcomes, refused: refused.map(|(_, error)| error) })
    })
}
