//! All rounds of `shards`.

use std::path::Path;
use std::time::Duration;

use super::goals;
use super::measure::{Work, measure, names};
use super::plan::ShardsArguments;
use crate::embedded::{Load, PAYLOAD_BYTES, together};
use crate::figures::Figures;
use crate::report::Report;
use crate::scratch::Scratch;
use crate::store::{file_system, overwrite_and_sync};

/// A task takes about this many bytes of a commit.
const RAW_TASK_BYTES: usize = 256;
const RAW_SPAN: Duration = Duration::from_secs(1);

/// Runs all rounds.
pub(crate) fn run(arguments: &ShardsArguments) -> anyhow::Result<Report> {
    let dir = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let processors = std::thread::available_parallelism()?.get();
    let ShardsArguments { rounds, tasks, batch, queues, .. } = *arguments;
    let load = |is_due| -> anyhow::Result<Load> {
        Ok(Load::new(tasks, batch, queues, is_due)?.with_names(names(queues)?))
    };
    let loads = [("shards-put", load(false)?), ("shards-acked", load(true)?)];
    eprintln!("data on {}", file_system(&dir));
    eprintln!(
        "{processors} processors, {queues} queues with a caller each, {batch} tasks of {PAYLOAD_BYTES} bytes in a batch, {} in a measurement",
        loads[0].1.tasks()
    );
    let mut report = Report::default();
    for round in 0..rounds {
        for (workload, load) in &loads {
            let mut works: [Option<Work>; 2] = [None, None];
            // Each is first in every other round.
            for turn in [round % 2, (round + 1) % 2] {
                let scratch = Scratch::new(&dir, "tickwheel-bench-shards")?;
                let shards = u32::try_from(turn + 1)?;
                works[usize::try_from(turn)?] = Some(measure(scratch.path(), shards, load)?);
            }
            let [Some(one), Some(two)] = works else { unreachable!("both have had their turn") };
            add(&mut report, workload, tasks, processors, one, two);
            let [one, two] = [disk(&dir, 1, batch)?, disk(&dir, 2, batch)?];
            report.add("raw-1", workload, tasks, "tasks_s", one);
            report.add("raw-2", workload, tasks, "tasks_s", two);
            report.add("raw-2", workload, tasks, "tasks_s/raw-1", two / one);
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    eprint!("{}", goals::summary(&Figures::read(&report.csv())?));
    Ok(report)
}

fn add(report: &mut Report, workload: &str, tasks: u64, processors: usize, one: Work, two: Work) {
    for (name, work) in [("shards-1", one), ("shards-2", two)] {
        report.add(name, workload, tasks, "tasks_s", work.rate());
        report.add(name, workload, tasks, "apart_s", work.rate_apart(processors));
        report.add(name, workload, tasks, "load", work.load());
    }
    report.add("shards-2", workload, tasks, "tasks_s/shards-1", two.rate() / one.rate());
    let apart = two.rate_apart(processors) / one.rate_apart(processors);
    report.add("shards-2", workload, tasks, "apart_s/shards-1", apart);
}

/// Tasks in a second, if each of this many threads writes a batch into a file of its own, syncs it, and does so again and again.
fn disk(dir: &Path, threads: u32, batch: u64) -> anyhow::Result<f64> {
    let bytes = RAW_TASK_BYTES * usize::try_from(batch)?;
    let places = (0..threads).map(|nth| Scratch::new(dir, &format!("tickwheel-bench-shards-{nth}")));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let (writes, _) =
        together(
            &places,
            |place| Ok(overwrite_and_sync(place.path(), bytes, RAW_SPAN)?.per_second() as u64),
        )?;
    Ok(writes as f64 * batch as f64)
}
