//! The examination of a root of several shards: of each directory below it, and of what ties them together.

use std::path::{Path, PathBuf};

use tickwheel_engine::ShardId;

use super::directory::Directory;
use super::examination::{Depth, Examination, LogFile, Member, Needed, SegmentFile};
use super::examine::{BACKUP_MANIFEST, examine_one};
use super::problem::{Problem, below};
use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::fs_disk::FsDisk;
use crate::layout::{HEADER_BYTES, META, SHARD, SHARDS, STAMP, folder_of, unfinished};
use crate::members::{Folder, Members};
use crate::report::Torn;
use crate::stamp::check_stamps;

/// Returns the root of several shards above this directory of one shard; `None` if the directory above is no such root.
#[must_use]
pub fn root_above(directory: &Path) -> Option<PathBuf> {
    let whole = directory.canonicalize().ok()?;
    let above = whole.parent()?;
    above.join(SHARDS).is_file().then(|| above.to_owned())
}

/// Examines all members of a root, and adds their findings up.
pub(super) fn examine_members(
    directory: &mut Directory,
    members: &Members,
    depth: Depth,
) -> Result<Examination, DiskError> {
    let mut found = begin(directory, members)?;
    let mut parts = Vec::new();
    for folder in &members.folders {
        let shard = members.shards().find(|shard| folder.is_named(*shard));
        let Some(shard) = shard else {
            let what = format!("it is no folder of this data directory, which has {} shards", members.shards);
            found.add(Problem::left_over(&folder.name, what));
            continue;
        };
        let mut part = examine_one(&members.path.join(&folder.name), depth)?;
        part.problems.extend(place_of(members, folder, shard, &part));
        parts.push(Member { folder: folder.name.clone(), found: part });
    }
    if is_made(members) {
        let is_there = |shard: &ShardId| members.folders.iter().any(|folder| folder.is_named(*shard));
        for shard in members.shards().filter(|shard| !is_there(shard)) {
            found.add(Problem::of_shard(folder_of(shard), format!("the directory of {shard} is missing")));
        }
    }
    add_stamps(directory, members, &parts, &mut found);
    let has_stamp = directory.exists(STAMP)?;
    add_up(&mut found, parts, has_stamp);
    Ok(found)
}

/// Compares the stamps of the members with that of the root. A process that owns the root compared them at its start, and may be renewing
/// them now. A member with another problem is left out: that problem says why its stamp is another one.
fn add_stamps(directory: &mut Directory, members: &Members, parts: &[Member], found: &mut Examination) {
    let problems = examine_stamps(directory, members.shards());
    if directory.is_in_use() {
        return;
    }
    let is_told = |problem: &Problem| {
        parts.iter().any(|part| part.folder == problem.file && !part.found.problems.is_empty())
    };
    problems.into_iter().filter(|problem| !is_told(problem)).for_each(|problem| found.add(problem));
}

/// Returns the problems of a data directory of these shards whose folders are of another moment than the directory.
pub fn examine_stamps(root: &mut Directory, shards: impl Iterator<Item = ShardId>) -> Vec<Problem> {
    let folder = |shard: ShardId| match shard.count() {
        1 => SHARD.to_owned(),
        _ => format!("{}/{SHARD}", folder_of(shard)),
    };
    let folders: Vec<String> = shards.map(folder).collect();
    let wrong = check_stamps(root, &folders).unwrap_or_else(|error| vec![error]);
    wrong.into_iter().map(Problem::from).collect()
}

/// Examines the root itself.
fn begin(directory: &mut Directory, members: &Members) -> Result<Examination, DiskError> {
    let names = directory.list("")?;
    let unfinished = [unfinished(SHARDS), unfinished(STAMP)];
    let own = [SHARDS, STAMP, FsDisk::LOCK_FILE, BACKUP_MANIFEST, &*unfinished[0], &*unfinished[1]];
    let is_folder = |name: &String| members.folders.iter().any(|folder| folder.name == *name);
    let foreign = names.iter().filter(|name| !own.contains(&name.as_str()) && !is_folder(name));
    let mut found = Examination {
        is_ours: true,
        in_use: directory.is_in_use(),
        shards: Some(members.shards),
        clock: members.clock(),
        not_ours: foreign.cloned().collect(),
        ..Examination::default()
    };
    for file in names.iter().filter(|name| [SHARDS, STAMP].contains(&name.as_str())) {
        found.bytes += directory.len(file)?;
    }
    let left = unfinished.iter().filter(|file| names.iter().any(|name| **name == ***file));
    found.not_needed.extend(left.map(|file| file.to_string()));
    match (&members.content, members.mended_at) {
        (Ok(_), None) => {}
        (Ok(_), Some(at)) => found.add(Problem::damage(SHARDS, at, "this byte is damaged")),
        (Err(error), _) => found.add(problem_of(error)),
    }
    Ok(found)
}

fn problem_of(error: &OpenError) -> Problem {
    match error {
        OpenError::Corrupt { file, offset, what, hint } => {
            OpenError::Corrupt { file: file.clone(), offset: *offset, what: what.clone(), hint }.into()
        }
        other => Problem::damage(SHARDS, 0, other.to_string()),
    }
}

/// Whether all directories have been made, so that a missing one is damage.
fn is_made(members: &Members) -> bool {
    members.content.as_ref().map_or(true, |content| content.is_made)
}

/// Returns the problem of a folder that does not have what its place asks for.
fn place_of(members: &Members, folder: &Folder, wanted: ShardId, part: &Examination) -> Option<Problem> {
    let Some(found) = part.shard else {
        let is_empty = part.problems.is_empty() || !part.is_ours;
        let what = format!("the directory of {wanted} has no `{META}`");
        return (is_empty && is_made(members)).then(|| Problem::of_shard("", what));
    };
    if found.count() != members.shards {
        let what = format!(
            "it has {found}, which is of another data directory: this one has {} shards, and {wanted} is missing",
            members.shards
        );
        return Some(Problem::of_shard("", what));
    }
    if found != wanted {
        return Some(match members.folder(found).filter(|owner| *owner != folder.name) {
            Some(owner) => {
                let what = format!("it has {found}, as the folder {owner} has; {wanted} is missing");
                Problem::of_shard("", what)
            }
            None => Problem::moved("", format!("it has {found}, and its name is that of {wanted}")),
        });
    }
    match (part.clock, members.clock()) {
        (Some(clock), Some(of_root)) if clock != of_root => {
            let what = format!(
                "it lives by the {clock} clock, and the data directory by the {of_root} one: it is of another data directory"
            );
            Some(Problem::of_shard("", what))
        }
        _ => None,
    }
}

/// Adds the findings of the members to those of the root.
fn add_up(found: &mut Examination, mut parts: Vec<Member>, has_stamp: bool) {
    for Member { folder, found: part } in &mut parts {
        // A directory that is only being made has no data yet, and this is no problem of the root.
        let is_ours = part.is_ours;
        let no_place = |problem: &Problem| !is_ours && problem.is_no_directory();
        part.problems.retain(|problem| !no_place(problem));
        let name = |file: &String| below(folder, file);
        found.in_use |= part.in_use;
        found.format = found.format.or(part.format);
        found.last_written = found.last_written.max(part.last_written);
        found.torn = found.torn.take().or_else(|| {
            let torn = part.torn.as_ref()?;
            Some(Torn { file: name(&torn.file), ..torn.clone() })
        });
        found.logs.extend(part.logs.iter().map(|log| LogFile { file: name(&log.file), ..log.clone() }));
        let segments = part.segments.iter();
        found
            .segments
            .extend(segments.map(|segment| SegmentFile { file: name(&segment.file), ..segment.clone() }));
        for (queue, more) in &part.queues {
            let sum = found.queues.entry(queue.clone()).or_default();
            (sum.live, sum.dead) = (sum.live + more.live, sum.dead + more.dead);
        }
        found.targets.extend(part.targets.iter().map(|(queue, of)| (queue.clone(), of.clone())));
        found.needed.extend(part.needed.iter().map(|part| Needed { file: name(&part.file), ..part.clone() }));
        found.not_needed.extend(part.not_needed.iter().map(name));
        found.not_ours.extend(part.not_ours.iter().map(name));
        found.bytes += part.bytes;
        found.checked_bytes = match (found.checked_bytes, part.checked_bytes) {
            (Some(sum), Some(more)) => Some(sum + more),
            (sum, more) => sum.or(more),
        };
        part.problems.iter().for_each(|problem| found.add(problem.clone().below(folder)));
    }
    let sum = |count: fn(&Examination) -> Option<u64>| {
        parts.iter().try_fold(0, |sum, part| Some(sum + count(&part.found)?))
    };
    found.tasks = sum(|part| part.tasks);
    found.dead = sum(|part| part.dead);
    found.ended = sum(|part| part.ended);
    if found.problems.is_empty() {
        let own = std::iter::once(SHARDS).chain(has_stamp.then_some(STAMP));
        let needed =
            own.map(|file| Needed { file: file.to_owned(), bytes: HEADER_BYTES as u64, content: None });
        found.needed.extend(needed);
    } else {
        found.needed.clear();
    }
    found.members = parts;
}
