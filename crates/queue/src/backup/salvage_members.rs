//! The salvage of a root of several shards: of one member after the other.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use tickwheel_engine::ShardId;
use tickwheel_store::doctor::{Directory, DirectoryPin};
use tickwheel_store::salvage::{Found, Progress, Reached, Report, read_member};
use tickwheel_store::{ClockMode, Members, OpenError, Root, directory_of};

use super::copy::Copy;
use super::salvage_error::{SalvageError, hopeless, refused, unlisted};
use super::salvage_steps::{changed, check_written, of_another_moment, pinned, written};
use crate::router::Router;

type FileTimes = BTreeMap<String, (u64, Option<SystemTime>)>;

/// Makes a new root `to` with everything that can still be read of the members. The caller has locked the root. See [`salvage`](super::salvage()).
pub(super) fn salvage_members(
    members: &Members,
    to: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, SalvageError> {
    let from = members.path();
    let _pins = pinned_all(members)?;
    let copy = Copy::begin(from, to)?;
    let before = file_times(members);
    let mut root = Directory::new(from).map_err(|error| unlisted(from, error))?;
    let mixed = of_another_moment(&mut root, members.shards());
    let mut salvage = Salvage {
        members,
        made_as: copy.path(),
        to,
        report: Report::default(),
        reached: Reached::default(),
        read: 0,
        total: before.values().map(|(bytes, _)| bytes).sum(),
    };
    salvage.report.read.mended.extend(members.mended_at().map(|at| (Root::FILE.to_owned(), at)));
    let mut lost = Vec::new();
    for shard in members.shards() {
        if let Some(why) = salvage.save(shard, progress)? {
            lost.push((shard, why));
        }
    }
    if lost.len() == members.shards().count() {
        let (_, why) = lost.remove(0);
        return Err(hopeless(from, std::io::Error::other(why)));
    }
    // The numbers of all other members are known now.
    for (shard, why) in &lost {
        salvage.replace(*shard, why)?;
    }
    let mut report = salvage.report;
    let same = Root::write_again(copy.path(), members, secret(to)?).map_err(|error| unlisted(to, error))?;
    report.notes.extend(mixed.into_iter().chain(members.notes(same)));
    progress(Progress::Checking);
    for shard in members.shards() {
        let made_as = directory_of(copy.path(), shard);
        check_written(&made_as, &folder_of(shard), to)?;
    }
    if let Some(file) = changed(&before, &file_times(members)) {
        return Err(SalvageError::Changed { path: from.to_owned(), file });
    }
    copy.finish()?;
    Ok(report)
}

/// A salvage of members under way.
struct Salvage<'s> {
    members: &'s Members,
    /// The new root, before it has its name.
    made_as: &'s Path,
    /// The name that the new root gets.
    to: &'s Path,
    report: Report,
    reached: Reached,
    /// How many bytes of the members before this one were read, and how many all of them have.
    read: u64,
    total: u64,
}

impl Salvage<'_> {
    /// Salvages the member that has this shard. Returns the reason if nothing of it can be saved.
    fn save(
        &mut self,
        shard: ShardId,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<String>, SalvageError> {
        let Some(folder) = self.members.folder(shard) else {
            return Ok(Some("the directory is missing".to_owned()));
        };
        let from = self.members.path().join(folder);
        let mut directory = Directory::new(&from).map_err(|error| unlisted(&from, error))?;
        let (before, total) = (self.read, self.total);
        let read = &mut self.read;
        let progress = &mut |of_member: Progress| {
            progress(match of_member {
                Progress::Read(done, _) => {
                    *read = before.saturating_add(done).min(total);
                    Progress::Read(*read, total)
                }
                other => other,
            });
        };
        let found = match read_member(&mut directory, Some(shard), progress) {
            Ok(found) => found,
            Err(OpenError::Io(source)) => return Err(refused(&from, source)),
            Err(error @ OpenError::Corrupt { .. }) => return Ok(Some(text_of(&error))),
            Err(error @ OpenError::OtherMeta) => return Ok(Some(error.to_string())),
            Err(error) => return Err(hopeless(&from, error)),
        };
        self.reached.join(&found);
        let made_as = directory_of(self.made_as, shard);
        let report = written(found, (&mut directory, &from), (&made_as, self.to), progress)?;
        self.report.add_member(folder, report);
        Ok(None)
    }

    /// Makes an empty directory for a shard that is lost.
    fn replace(&mut self, shard: ShardId, why: &str) -> Result<(), SalvageError> {
        let clock = self.members.clock().unwrap_or(ClockMode::Real);
        let found = Found::lost(shard, why, self.reached, clock, secret(self.to)?);
        let from = self.members.path();
        let mut directory = Directory::new(from).map_err(|error| unlisted(from, error))?;
        let made_as = directory_of(self.made_as, shard);
        let report = written(found, (&mut directory, from), (&made_as, self.to), &mut |_| {})?;
        self.report.add_member(&folder_of(shard), report);
        if Router::new(shard.count()).is_some_and(|router| router.of_jobs() == shard) {
            self.report.notes.push(format!("{shard} had all jobs"));
        }
        Ok(())
    }
}

/// Keeps other processes from taking the members.
fn pinned_all(members: &Members) -> Result<Vec<DirectoryPin>, SalvageError> {
    let mut pins = Vec::new();
    for folder in members.shards().filter_map(|shard| members.folder(shard)) {
        let path = members.path().join(folder);
        pins.push(pinned(&Directory::new(&path).map_err(|error| unlisted(&path, error))?)?);
    }
    Ok(pins)
}

/// Returns the sizes and the times of change of all files of the root and its members.
fn file_times(members: &Members) -> FileTimes {
    let of = |path: &Path| {
        let directory = Directory::new(path).ok();
        directory.and_then(|mut directory| directory.file_times().ok()).unwrap_or_default()
    };
    let mut times = of(members.path());
    for folder in members.shards().filter_map(|shard| members.folder(shard)) {
        let below = of(&members.path().join(folder));
        times.extend(below.into_iter().map(|(file, time)| (format!("{folder}/{file}"), time)));
    }
    times
}

fn folder_of(shard: ShardId) -> String {
    directory_of("", shard).display().to_string()
}

/// Returns the damage of a member in words, without an advice: the salvage itself is the advice.
fn text_of(error: &OpenError) -> String {
    match error {
        OpenError::Corrupt { file, what, .. } => format!("{file}: {what}"),
        other => other.to_string(),
    }
}

fn secret(to: &Path) -> Result<[u8; 16], SalvageError> {
    let mut secret = [0; 16];
    getrandom::fill(&mut secret).map_err(|error| hopeless(to, std::io::Error::other(error.to_string())))?;
    Ok(secret)
}
