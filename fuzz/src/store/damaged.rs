//! [`Damaged`]: a directory after damage, and what a store may make of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{Task, TaskEffect};
use tickwheel_store::{OpenError, Table};

use super::damage::{Damage, Target};
use super::disk::MemDisk;
use super::life::Life;
use super::sample::Sample;
use super::stamp;

/// Ids beyond those of all samples.
const NEW_IDS: core::ops::Range<u64> = 1_000..1_012;

/// A directory that something was done to.
#[derive(Debug)]
pub struct Damaged {
    /// What was done.
    pub damage: Damage,
    files: Hidden,
}

/// Files, kept out of reports.
struct Hidden(BTreeMap<String, Vec<u8>>);

impl core::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let lengths: Vec<_> = self.0.iter().map(|(name, bytes)| (name, bytes.len())).collect();
        write!(f, "{lengths:?}")
    }
}

impl Damaged {
    /// What the bytes do to log files.
    #[must_use]
    pub fn frames(bytes: &[u8]) -> Self {
        Self::of(Target::Frames, bytes)
    }

    /// What the bytes do to segments.
    #[must_use]
    pub fn segments(bytes: &[u8]) -> Self {
        Self::of(Target::Segments, bytes)
    }

    /// What the bytes do to the ends of sections.
    #[must_use]
    pub fn saved_index(bytes: &[u8]) -> Self {
        Self::of(Target::SavedIndex, bytes)
    }

    /// What the bytes do to checkpoints.
    #[must_use]
    pub fn checkpoints(bytes: &[u8]) -> Self {
        Self::of(Target::Checkpoints, bytes)
    }

    /// What the bytes do to one kind of file, which the first of them chooses.
    #[must_use]
    pub fn anywhere(bytes: &[u8]) -> Self {
        let targets = [Target::Frames, Target::Segments, Target::SavedIndex, Target::Checkpoints];
        let (kind, rest) = bytes.split_first().unwrap_or((&0, &[]));
        Self::of(targets[usize::from(kind % 4)], rest)
    }

    fn of(target: Target, bytes: &[u8]) -> Self {
        let damage = Damage::read(target, bytes);
        let files = Hidden(damage.apply());
        Self { damage, files }
    }

    /// Opens the directory, reads all of it, goes on writing, and opens it again.
    ///
    /// # Panics
    /// If the store does, or never answers; if a refusal changes the directory; and without stamps if the result is anything but the state that was, a refusal
    /// that names a file, or an earlier state whose torn end is reported.
    pub fn replay(&self) {
        let disk = MemDisk::of(self.files.0.clone());
        let mut life = match Life::open(&disk) {
            Ok(life) => life,
            Err(error) => return self.check_refusal(&error, &disk),
        };
        if self.damage.stamped {
            let tasks = life.tasks();
            drop(write_nonsense(&mut life, &tasks.unwrap_or_default()));
            drop(life);
            if let Ok(mut life) = Life::open(&disk) {
                drop(life.tasks());
            }
            return;
        }
        let report = life.report().clone();
        let mut table = match life.table() {
            Ok(table) => table,
            Err(why) => return self.check_failure(&why),
        };
        self.check_state(&table, report.torn.is_some());
        if let Err(why) = go_on(&mut life, &mut table) {
            return self.check_failure(&why);
        }
        drop(life);
        let mut life = Life::open(&disk).expect("it opened before, and nothing happened but writing");
        match life.table() {
            Ok(again) => assert!(again == table, "another state after going on: {again:?}\n{table:?}"),
            Err(why) => self.check_failure(&why),
        }
    }

    /// Salvages the directory: what comes of it opens, and the damaged one is as it was.
    ///
    /// # Panics
    /// If the store does; if the damaged directory is changed; or if the result does not open, or is said to be whole and is not. With stamps it may be refused: the nonsense is in
    /// order by its checksums.
    pub fn salvage(&self) {
        let mut disk = MemDisk::of(self.files.0.clone());
        let salvaged = Life::salvage(&mut disk);
        assert!(disk.files() == self.files.0, "the damaged directory was changed");
        let (out, report) = match salvaged {
            Ok(salvaged) => salvaged,
            Err(why) => {
                assert!(self.damage.stamped || why.contains("meta"), "nothing was salvaged: {why}");
                return;
            }
        };
        let mut life = match Life::open(&out) {
            Ok(life) => life,
            Err(error) => panic!("what was salvaged does not open: {error}"),
        };
        if self.damage.stamped {
            // Nonsense with right checksums may have two tasks with one key, and then one of them is not found by it.
            let tasks = life.tasks();
            drop(write_nonsense(&mut life, &tasks.unwrap_or_default()));
            return;
        }
        let table = life.table().unwrap_or_else(|why| panic!("what was salvaged cannot be read: {why}"));
        if report.is_whole() {
            // Of a last frame whose place is zero by now nobody can tell that it was there.
            self.check_state(&table, false);
        }
    }

    fn sample(&self) -> &'static Sample {
        Sample::nth(self.damage.sample)
    }

    /// Names of the files that differ from the sample's.
    fn changed(&self) -> Vec<&str> {
        let before = &self.sample().files;
        let changed = self.files.0.iter().filter(|(name, bytes)| before.get(*name) != Some(bytes));
        changed.map(|(name, _)| name.as_str()).collect()
    }

    fn check_refusal(&self, error: &OpenError, disk: &MemDisk) {
        if self.damage.stamped && matches!(error, OpenError::Io(_)) {
            return;
        }
        assert!(disk.files() == self.files.0, "the refusal changed the directory: {error}");
        if !self.damage.stamped {
            assert!(!self.changed().is_empty(), "a whole directory was refused: {error}");
            let OpenError::Corrupt { file, .. } = error else { panic!("{error:?}") };
            assert!(
                self.files.0.keys().any(|name| name.starts_with(file.as_str())),
                "no file is named: {error}"
            );
        }
    }

    /// A record that does not check out is found when it is read.
    fn check_failure(&self, why: &str) {
        let named = self.changed().into_iter().any(|name| name.contains("/segment-") && why.contains(name));
        assert!(named, "no damaged segment is named: {why}");
    }

    /// Without stamps: the last state; or an earlier one, if the log was damaged and nothing that is whole says that there was more.
    fn check_state(&self, found: &Table, is_told: bool) {
        let (last, table) = self.sample().last();
        if found == table {
            return;
        }
        let state = self.sample().states.iter().rev().find(|(_, state)| *state == found);
        let Some((seq, _)) = state else {
            panic!("a state that never was: {found:?}\nrather than {table:?}")
        };
        let missing = self.first_behind(*seq).unwrap_or_else(|| panic!("change {last} is in no frame"));
        // One that was written when it had been synced, or itself.
        let proof =
            self.whole_frames().find(|found| found.1.durable >= missing.1.number || *found == missing);
        assert!(proof.is_none(), "frame {:?} is missing, and {proof:?} shows that it was synced", missing.1);
        let (damaged, before) = (&self.files.0[missing.0], &self.sample().files[missing.0]);
        let place = damaged.get(missing.1.at..missing.1.at + 8);
        // Or the header of its file is gone too, and all else that is in it.
        let whole = damaged.get(..stamp::HEADER) == before.get(..stamp::HEADER)
            || self.whole_frames().any(|(name, _)| name == missing.0);
        let ends_cleanly = place.is_none_or(|place| place == [0; 8]) || !whole;
        assert!(is_told || ends_cleanly, "{missing:?} is gone, and nobody says so");
    }

    /// The first frame of the sample that has a change behind this one.
    fn first_behind(&self, seq: u64) -> Option<(&str, stamp::Frame)> {
        self.sample_frames().filter(|(_, frame)| frame.seq > seq).min_by_key(|(_, frame)| frame.number)
    }

    fn sample_frames(&self) -> impl Iterator<Item = (&str, stamp::Frame)> {
        let logs = self.sample().named("/log-").into_iter();
        logs.flat_map(|name| {
            stamp::frames(&self.sample().files[name]).into_iter().map(|frame| (name.as_str(), frame))
        })
    }

    /// The sample's frames that are as they were.
    fn whole_frames(&self) -> impl Iterator<Item = (&str, stamp::Frame)> {
        self.sample_frames().filter(|(name, frame)| {
            let range = frame.at..frame.end;
            self.files.0[*name].get(range.clone()) == self.sample().files[*name].get(range)
        })
    }
}

/// Commits of all kinds, and those that they bring in the background.
fn go_on(life: &mut Life, table: &mut Table) -> Result<(), String> {
    let known = life.tasks()?;
    life.acquire()?;
    let mut commit = |life: &mut Life, effect: TaskEffect| {
        table.apply(&effect);
        life.commit(vec![effect], None)
    };
    for task in known.iter().step_by(3) {
        let effect = if task.id % 2 == 0 { life.end(task) } else { life.change(task) };
        commit(life, effect)?;
    }
    life.wall = life.wall.saturating_plus_ms(3 * 86_400_000);
    for id in NEW_IDS {
        let task = Arc::new(life.make(id));
        commit(life, TaskEffect::Stored { task, body_known: false })?;
    }
    life.rest();
    Ok(())
}

/// The same on top of what may be nonsense. What it comes to does not matter.
fn write_nonsense(life: &mut Life, known: &[Arc<Task>]) -> Result<(), String> {
    life.acquire()?;
    // An owner has no change left behind the last number there is.
    if life.seq > u64::MAX >> 1 {
        return Ok(());
    }
    for task in known.iter().step_by(3) {
        let effect = if task.id % 2 == 0 { life.end(task) } else { life.change(task) };
        life.commit(vec![effect], None)?;
    }
    life.wall = life.wall.saturating_plus_ms(3 * 86_400_000);
    for id in NEW_IDS {
        let task = Arc::new(life.make(id));
        life.commit(vec![TaskEffect::Stored { task, body_known: false }], None)?;
    }
    life.rest();
    Ok(())
}
