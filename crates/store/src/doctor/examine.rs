//! The examination of a directory, file by file.

use std::path::Path;

use tickwheel_engine::{Rule, RuleName};

use super::checkpoints::{Found as Checkpoint, find_checkpoint};
use super::directory::Directory;
use super::examination::{Depth, Examination, LogFile, Needed, SegmentFile};
use super::problem::Problem;
use super::{logs, segments};
use crate::bounds::Bounds;
use crate::checksum::Seeds;
use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::fs_disk::FsDisk;
use crate::history::HistoryLimits;
use crate::index::Naming;
use crate::layout::{CLOCK, Listing, META, SHARD, STAMP, UNFINISHED_MARK, kind_of, newest_file, unfinished};
use crate::meta::{self, FORMAT, Meta};
use crate::recovery::{Recovered, recover};
use crate::stamp::{check_stamps, stamp_in};

/// The file in which a backup describes itself, beside the files of the store. The store does not write this file. An examination does not
/// list it in [`Examination::not_ours`].
pub const BACKUP_MANIFEST: &str = "backup.json";

/// How many times a directory in use is examined at most. A problem is reported only if every one of these examinations finds it.
const LOOKS: usize = 3;

/// Examines a directory of one shard of the file system. If a running process owns the directory and a problem is found, the directory is
/// examined again, a few times at most. A file that is being written looks different each time, but damage stays the same.
pub(super) fn examine_one(path: &Path, depth: Depth) -> Result<Examination, DiskError> {
    let look = || -> Result<Examination, DiskError> {
        let mut directory = Directory::new(path)?;
        let before = directory.is_in_use();
        let mut found = examine(&mut directory, depth);
        found.in_use = before || directory.is_in_use();
        Ok(found)
    };
    let mut found = look()?;
    for _ in 1..LOOKS {
        if !found.in_use || found.problems.is_empty() {
            break;
        }
        let mut again = look()?;
        again.problems.retain(|problem| found.problems.contains(problem));
        found = again;
    }
    Ok(found)
}

/// Examines the directory of `disk`. Nothing in the directory is changed or locked: the disk is only asked for lists, lengths and bytes.
pub fn examine<D: Disk>(disk: &mut D, depth: Depth) -> Examination {
    let mut found = Examination::default();
    if let Err(error) = begin(disk, depth, &mut found) {
        found.add(error.into());
    }
    found
}

fn begin<D: Disk>(disk: &mut D, depth: Depth, found: &mut Examination) -> Result<(), OpenError> {
    let names = disk.list("")?;
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    found.is_ours = has(META) || has(SHARD);
    let unfinished_files = [unfinished(META), unfinished(STAMP)];
    let own = [META, CLOCK, STAMP, SHARD, FsDisk::LOCK_FILE, UNFINISHED_MARK, BACKUP_MANIFEST];
    let is_own = |name: &str| own.contains(&name) || unfinished_files.iter().any(|file| **file == *name);
    found.not_ours = names.iter().filter(|name| !is_own(name)).cloned().collect();
    if has(UNFINISHED_MARK) {
        // Only the process that makes the directory may use it with this mark. So nothing else in the directory has to be examined.
        found.is_ours = true;
        return Err(OpenError::Unfinished);
    }
    if !found.is_ours {
        let empty = names.iter().all(|name| name == FsDisk::LOCK_FILE);
        let what = if empty { "it is empty" } else { "it has files, and none is of a data directory" };
        found.add(Problem::no_directory(what));
        return Ok(());
    }
    found.not_needed.extend(unfinished_files.iter().filter(|file| has(file)).map(|file| file.to_string()));
    let shard = if has(SHARD) { list_shard(disk, found)? } else { Listing::default() };
    for file in [META, STAMP].into_iter().filter(|file| has(file)) {
        found.bytes += disk.len(file)?;
    }
    // The secret in `meta` is part of all other checksums. Without the secret, none of the other files can be checked.
    let Some(meta) = meta::find(disk)? else { return Ok(()) };
    found.format = Some(FORMAT);
    found.shard = Some(meta.shard);
    found.shards = Some(meta.shard.count());
    found.clock = Some(meta.clock);
    go_on(disk, depth, meta, &shard, found);
    Ok(())
}

fn list_shard<D: Disk>(disk: &mut D, found: &mut Examination) -> Result<Listing, OpenError> {
    let names = disk.list(SHARD)?;
    for name in &names {
        let path = format!("{SHARD}/{name}");
        if kind_of(name).is_none() {
            found.not_ours.push(path);
            continue;
        }
        match disk.len(&path) {
            Ok(bytes) => found.bytes += bytes,
            Err(error) => found.add(OpenError::from(error).into()),
        }
        disk.close(&path);
    }
    Ok(Listing::of(&names))
}

fn go_on<D: Disk>(disk: &mut D, depth: Depth, meta: Meta, names: &Listing, found: &mut Examination) {
    let seeds = Seeds::new(meta.secret);
    match check_stamps(disk, &[SHARD.to_owned()]) {
        Ok(wrong) => wrong.into_iter().for_each(|error| found.add(error.into())),
        Err(error) => found.add(error.into()),
    }
    let recovered = match recover(disk, &meta, HistoryLimits::default(), &Bounds::default()) {
        Ok(recovered) => Some(recovered),
        Err(error) => {
            found.add(error.into());
            None
        }
    };
    let checkpoint = find_checkpoint(disk, &names.checkpoints, &seeds, recovered.is_some(), found);
    found.checkpoint = checkpoint.file.clone();

    let walks: Vec<logs::Walk> =
        names.logs.iter().map(|name| logs::walk(disk, name, &seeds, depth, found)).collect();
    let needed = |file: &LogFile| match &recovered {
        Some(recovered) => recovered.kept.iter().any(|kept| *kept.name == *file.file),
        None => logs::is_needed(file, checkpoint.loaded.as_ref()),
    };
    found.logs =
        walks.iter().map(|walk| LogFile { spare: !needed(&walk.file), ..walk.file.clone() }).collect();
    if meta.has_log && walks.is_empty() {
        found.add(Problem::damage(SHARD, 0, "it has no log file, and it had one"));
    }
    if recovered.is_none() {
        logs::check_chain(walks, checkpoint.loaded.as_ref(), found);
    }
    examine_segments(disk, depth, meta, names, &checkpoint, recovered.as_ref(), found);
    match recovered {
        Some(recovered) => {
            take_recovered(&recovered, &meta, found);
            take_stamps(disk, found);
        }
        None => {
            found.not_needed.extend(names.unfinished.iter().map(|name| name.to_string()));
            found.last_written = found.last_written.max(checkpoint.loaded.map(|loaded| loaded.end.wall));
        }
    }
}

fn examine_segments<D: Disk>(
    disk: &mut D,
    depth: Depth,
    meta: Meta,
    names: &Listing,
    checkpoint: &Checkpoint,
    recovered: Option<&Recovered>,
    found: &mut Examination,
) {
    let (seeds, naming) = (Seeds::new(meta.secret), Naming::new(meta.secret));
    // The recovery has checked everything but the records, and the caller does not ask for the records.
    if let (Some(recovered), Depth::Opening) = (recovered, depth) {
        let known = recovered.catalog.segments.iter().map(|(_, segment)| segments::of_memory(segment));
        found.segments = known.collect();
        found.segments.sort_by_key(|segment| segment.generation);
        return;
    }
    if depth == Depth::Records {
        found.checked_bytes = Some(0);
    }
    let mut inspection = segments::Inspection { disk, seeds: &seeds, naming: &naming, depth, found };
    let mut inspected: Vec<SegmentFile> = match &checkpoint.loaded {
        Some(loaded) => loaded.segments.iter().map(|listed| inspection.inspect(*listed)).collect(),
        // Without a checkpoint, the lengths of the segments are unknown. Every segment file that ends like a finished segment is examined.
        None => {
            names.segments.iter().filter_map(|generation| inspection.inspect_unlisted(*generation)).collect()
        }
    };
    for segment in &mut inspected {
        let known = recovered.into_iter().flat_map(|recovered| recovered.catalog.segments.iter());
        let mut known = known.filter(|(_, known)| known.generation == segment.generation);
        segment.live = known.next().map(|(_, known)| known.live);
    }
    inspected.sort_by_key(|segment| segment.generation);
    found.segments = inspected;
}

/// Adds the stamps to the files that a copy needs. A copy without them is opened too, and is not compared then.
fn take_stamps<D: Disk>(disk: &mut D, found: &mut Examination) {
    let bytes = crate::layout::HEADER_BYTES as u64;
    for file in [STAMP.to_owned(), stamp_in(SHARD)] {
        if disk.exists(&file).unwrap_or(false) {
            disk.close(&file);
            found.needed.push(Needed { file, bytes, content: None });
        }
    }
}

fn take_recovered(recovered: &Recovered, meta: &Meta, found: &mut Examination) {
    let Recovered { catalog, last, removable, report, .. } = recovered;
    let populations = catalog.populations();
    found.tasks = Some(populations.iter().map(|(_, population)| population.live).sum());
    found.dead = Some(populations.iter().map(|(_, population)| population.dead).sum());
    found.queues = populations.into_iter().collect();
    let rules = catalog.rules().by_name().iter();
    found.targets = rules
        .filter_map(|(name, rule)| match (name, &**rule) {
            (RuleName::Queue(queue), Rule::Queue(record)) => Some((queue.clone(), record.target.clone()?)),
            _ => None,
        })
        .collect();
    found.ended = Some(catalog.histories().len() as u64);
    found.last_written = Some(last.wall).filter(|wall| wall.as_ms() > 0);
    found.torn = report.torn.clone();
    found.not_needed.extend(removable.iter().map(|name| name.to_string()));
    let bytes = crate::layout::HEADER_BYTES as u64;
    found.needed.push(Needed { file: META.to_owned(), bytes, content: None });
    if meta.has_log {
        // The note of the newest log file may name a file that was prepared and never used. The copy does not need that file, so the copy
        // gets another note.
        let content = recovered.newest_kept().to_bytes(&Seeds::new(meta.secret)).to_vec();
        found.needed.push(Needed { file: newest_file().to_string(), bytes, content: Some(content) });
    }
    let checkpoint = found.checkpoint.iter().map(|file| (&file.file, file.bytes));
    let segments = found.segments.iter().map(|file| (&file.file, file.bytes));
    // If there are only spare log files, the copy gets them, because an opening refuses a directory that had a log file and has none.
    let no_log = recovered.kept.is_empty();
    let logs = found.logs.iter().filter(|file| no_log || !file.spare).map(|file| (&file.file, file.bytes));
    let needed = checkpoint.chain(segments).chain(logs);
    found.needed.extend(needed.map(|(file, bytes)| Needed { file: file.clone(), bytes, content: None }));
}
