//! An import of tasks of several shards.

use std::collections::BTreeMap;

use tickwheel_engine::{Existing, IMPORT_TASKS_MAX, ImportTask, ImportTasks, Imported, Unavailable};

use crate::router::Router;
use crate::thread::mailbox::Caller;
use crate::thread::pending::Pending;

/// Imports tasks of several shards. If a task that is there already ends the import ([`Existing::Refuse`]), the tasks are imported in their
/// order, so that none behind a refused one is. Otherwise the shards work at the same time, and tasks of other shards may be imported although
/// they are behind a refused one: another import of them changes nothing.
pub(crate) fn import(
    shards: &[Caller],
    router: Router,
    mut import: ImportTasks,
) -> Pending<Imported, Unavailable> {
    import.tasks.truncate(IMPORT_TASKS_MAX);
    // Each shard reserves the ids of the source before it gives out an id of its own.
    let reserved = import.ids_below.map(|_| {
        let nothing = ImportTasks { tasks: Vec::new(), ..import.clone() };
        shards.iter().map(|caller| caller.call(nothing.clone())).collect::<Vec<_>>()
    });
    if import.existing == Existing::Refuse {
        let shards = shards.to_vec();
        return Pending::many(async move {
            for pending in reserved.into_iter().flatten() {
                pending.await?;
            }
            one_after_the_other(&shards, router, import).await
        });
    }
    let parts = Parts::of(shards, router, import);
    Pending::many(async move {
        for pending in reserved.into_iter().flatten() {
            pending.await?;
        }
        parts.imported().await
    })
}

async fn one_after_the_other(
    shards: &[Caller],
    router: Router,
    import: ImportTasks,
) -> Result<Imported, Unavailable> {
    let ImportTasks { tasks, existing, on_lease, ids_below } = import;
    let mut sum = Imported { outcomes: Vec::with_capacity(tasks.len()), refused: None };
    let shard_of = |task: &ImportTask| router.of_queue(&task.queue).number();
    for run in tasks.chunk_by(|one, other| shard_of(one) == shard_of(other)) {
        let part = ImportTasks { tasks: run.to_vec(), existing, on_lease, ids_below };
        let imported = shards[shard_of(&run[0]) as usize].call(part).await?;
        sum.outcomes.extend(imported.outcomes);
        sum.refused = imported.refused;
        if sum.refused.is_some() {
            break;
        }
    }
    Ok(sum)
}

/// The parts of an import that the shards work on at the same time.
struct Parts {
    count: usize,
    /// For each shard with a part: the places of its tasks in the list of all tasks, and the answer on its way.
    asked: Vec<(Vec<usize>, Pending<Imported, Unavailable>)>,
}

impl Parts {
    /// Sends each shard its part.
    fn of(shards: &[Caller], router: Router, import: ImportTasks) -> Self {
        let ImportTasks { tasks, existing, on_lease, ids_below } = import;
        let count = tasks.len();
        let mut parts: BTreeMap<u32, (Vec<usize>, Vec<ImportTask>)> = BTreeMap::new();
        for (index, task) in tasks.into_iter().enumerate() {
            let (indices, tasks) = parts.entry(router.of_queue(&task.queue).number()).or_default();
            indices.push(index);
            tasks.push(task);
        }
        let asked = parts.into_iter().map(|(shard, (indices, tasks))| {
            let part = ImportTasks { tasks, existing, on_lease, ids_below };
            (indices, shards[shard as usize].call(part))
        });
        Self { count, asked: asked.collect() }
    }

    /// Makes one answer of the answers of all shards. It ends before the first task that was refused.
    async fn imported(self) -> Result<Imported, Unavailable> {
        let mut outcomes = vec![None; self.count];
        let mut refused = None;
        for (indices, pending) in self.asked {
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
        let outcomes = outcomes.into_iter().map_while(|outcome| outcome).collect();
        Ok(Imported { outcomes, refused: refused.map(|(_, error)| error) })
    }
}
