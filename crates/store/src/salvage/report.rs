//! The report of a salvage: how much it read and wrote, and what is lost.

use std::collections::BTreeMap;

use tickwheel_engine::{Key, Population, QueueName, RuleName};

/// A loss names at most this many tasks, and at most this many rules. The report names at most this many superseded tasks.
pub(super) const NAMED_MAX: usize = 10_000;

/// The result of a salvage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// How many shards the new directory has.
    pub shards: u32,
    /// How much of the damaged directory was read, and which parts could not be read.
    pub read: ReadReport,
    /// How many tasks, rules and ended tasks the new directory has.
    pub written: WrittenReport,
    /// The lost parts, in the order in which they were found.
    pub losses: Vec<Loss>,
    /// Other facts that are worth knowing, as sentences.
    pub notes: Vec<String>,
    /// How many tasks were left out because another task has taken their key since.
    pub superseded: u64,
    /// The tasks that `superseded` counts: the first 10,000 at most.
    pub superseded_tasks: Vec<Superseded>,
}

/// A task that is not in the new directory, because a later task has its key. Either the task had ended, or it was dead. The record that
/// would tell which of the two is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Superseded {
    /// The id of the task.
    pub id: u64,
    /// The queue of the task.
    pub queue: QueueName,
    /// The key of the task.
    pub key: Key,
    /// The id of the task that has the key.
    pub by: u64,
}

/// How much of the damaged directory was read, and which parts could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ReadReport {
    /// How many files of the store are in the folder of the shard, without files that were never finished.
    pub files: u64,
    /// The size of the files that `files` counts (bytes).
    pub bytes: u64,
    /// How many frames of the log were used: they checked out, come after the checkpoint, and were not taken back by a later owner. Frames
    /// that could not be read a second time are included.
    pub frames: u64,
    /// How many records were read, in the frames, in segments and in the checkpoint.
    pub records: u64,
    /// The checkpoint that the log was read on top of; `None`: there is none, or the log alone replaces it, or there are several shards.
    pub checkpoint: Option<String>,
    /// Files with one damaged byte that was found and put right while reading, with the offset of that byte. The files themselves stay as
    /// they are.
    pub mended: Vec<(String, u64)>,
    /// Parts that could not be read: file, first byte, and the first byte behind the part.
    pub unreadable: Vec<(String, u64, u64)>,
}

impl ReadReport {
    /// Adds the parts that the second pass could not read. Parts that the report has already are left out.
    pub(super) fn join_unreadable(&mut self, parts: Vec<(String, u64, u64)>) {
        for (file, from, to) in parts {
            let covers = |known: &(String, u64, u64)| known.0 == file && known.1 <= from && to <= known.2;
            if !self.unreadable.iter().any(covers) {
                self.unreadable.push((file, from, to));
            }
        }
    }
}

/// How many tasks, rules and ended tasks the new directory has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct WrittenReport {
    /// How many tasks each queue has, for each queue with a task.
    pub queues: BTreeMap<QueueName, Population>,
    /// How many queues have settings.
    pub settings: u64,
    /// How many schedules there are.
    pub schedules: u64,
    /// How many jobs there are.
    pub jobs: u64,
    /// How many ended tasks are remembered.
    pub ended: u64,
}

/// A part of the directory that is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The path of the file, relative to the data directory. If the file is unknown, the folder of the shard.
    pub file: String,
    /// The offset of the first lost byte; 0 if the place is unknown.
    pub from: u64,
    /// The offset behind the last lost byte; `None`: the loss goes to the end of the file, or the end of the loss is unknown.
    pub to: Option<u64>,
    /// The unit that is lost.
    pub unit: Unit,
    /// The damage, as a sentence fragment.
    pub what: String,
    /// Whether something is lost for certain. `false`: perhaps nothing is lost. For example, the part may be a write that a crash cut short
    /// before it was synced.
    pub certain: bool,
    /// The tasks that the loss is about, as far as their ids can be read: at most 10,000. A task that several losses are about is named in
    /// one of them, with the worst fate.
    pub tasks: Vec<LostTask>,
    /// At most this many tasks are lost by this loss, or are in the new directory in an older state; `None`: the number is unknown.
    pub tasks_max: Option<u64>,
    /// At most this many tasks had ended, and are in the new directory because of this loss; `None`: the number is unknown.
    pub ended_max: Option<u64>,
    /// The settings, schedules and jobs that the loss is about, as far as their names can be read: at most 10,000.
    pub rules: Vec<LostRule>,
    /// Whether settings, schedules and jobs of the new directory may be older ones, because this loss may have had changes of them.
    pub rules_may_be_older: bool,
    /// Whether the lost bytes may have contained records of the ends of tasks. The new directory does not remember such an end. A call for
    /// the key of such a task then gets `not_found` instead of `done` or `cancelled`.
    pub ends_may_be_forgotten: bool,
}

/// The settings of a queue, a schedule or a job that a loss is about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LostRule {
    /// The name of the rule.
    pub name: RuleName,
    /// The fate of the rule.
    pub fate: RuleFate,
}

/// The fate of settings, a schedule or a job.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum RuleFate {
    /// The new directory does not have the rule. Damaged bytes or the key of a task name it.
    PerhapsLost,
    /// The new directory has the rule, perhaps in an older state.
    PerhapsOlder,
    /// The new directory has the rule, and damaged bytes say that it was removed.
    PerhapsRemoved,
}

impl RuleFate {
    /// Returns the fate in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::PerhapsLost => "perhaps lost",
            Self::PerhapsOlder => "saved, perhaps in an older state",
            Self::PerhapsRemoved => "saved, and perhaps it had been removed",
        }
    }
}

/// The kind of the part that is lost.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unit {
    /// A frame of the log: what one commit wrote.
    Frame,
    /// Several frames, or a whole file of the log.
    Frames,
    /// One record: of a task in a segment, or of any kind in a frame.
    Record,
    /// Bytes of a segment in which no record checks out.
    Records,
    /// A whole segment.
    Segment,
    /// Tombstones of a segment, which say which of its records are dead.
    Tombstones,
    /// A block of a checkpoint, or its header.
    Block,
    /// A whole checkpoint.
    Checkpoint,
    /// The whole directory of a shard.
    Shard,
}

impl Unit {
    /// Returns the name of the unit.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Frame => "frame",
            Self::Frames => "frames",
            Self::Record => "record",
            Self::Records => "records",
            Self::Segment => "segment",
            Self::Tombstones => "tombstones",
            Self::Block => "block",
            Self::Checkpoint => "checkpoint",
            Self::Shard => "shard",
        }
    }
}

/// A task that a loss is about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LostTask {
    /// The id of the task.
    pub id: u64,
    /// The queue of the task, if it is known from a record.
    pub queue: Option<QueueName>,
    /// The key of the task, if it is known from a record.
    pub key: Option<Key>,
    /// The fate of the task.
    pub fate: Fate,
}

/// The fate of a task.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Fate {
    /// The task is lost.
    Lost,
    /// The new directory has the task, and its payload may be an older one.
    OlderPayload,
    /// Damaged bytes name the task, so it is perhaps lost.
    PerhapsLost,
    /// Damaged bytes name the task: the new directory has it, perhaps in an older state.
    PerhapsOlder,
    /// Damaged bytes say that the task ended: the new directory has it, and perhaps should not.
    PerhapsEnded,
    /// Damaged bytes say that the task ended, and no other record of the task was read. So a call for the task is answered `not_found` in
    /// the new directory.
    EndForgotten,
}

impl Fate {
    /// Returns the fate in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::OlderPayload => "saved, its payload may be an older one",
            Self::PerhapsLost => "perhaps lost",
            Self::PerhapsOlder => "saved, perhaps in an older state",
            Self::PerhapsEnded => "saved, and perhaps it had ended",
            Self::EndForgotten => "ended, and that is forgotten: its key is answered `not_found`",
        }
    }
}

/// Whether a new directory may have tasks that had ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MayHoldEnded {
    /// The new directory has no such task.
    No,
    /// The new directory has at most this many such tasks.
    AtMost(u64),
    /// The new directory may have any number of such tasks.
    Unknown,
}

impl Report {
    /// Whether the report has no loss. Then the new directory has all that the damaged one had.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.losses.is_empty()
    }

    /// Whether the new directory may have tasks that had ended.
    #[must_use]
    pub fn may_hold_ended(&self) -> MayHoldEnded {
        let sum = self.losses.iter().try_fold(0_u64, |sum, loss| Some(sum.saturating_add(loss.ended_max?)));
        match sum {
            None => MayHoldEnded::Unknown,
            Some(0) => MayHoldEnded::No,
            Some(most) => MayHoldEnded::AtMost(most),
        }
    }

    /// Adds the report of a member of a root. The files of the member get its folder in front.
    pub fn add_member(&mut self, folder: &str, member: Self) {
        let below = |file: String| format!("{folder}/{file}");
        let ReadReport { files, bytes, frames, records, checkpoint: _, mended, unreadable } = member.read;
        self.shards += 1;
        self.read.files += files;
        self.read.bytes += bytes;
        self.read.frames += frames;
        self.read.records += records;
        self.read.mended.extend(mended.into_iter().map(|(file, at)| (below(file), at)));
        self.read.unreadable.extend(unreadable.into_iter().map(|(file, from, to)| (below(file), from, to)));
        let WrittenReport { queues, settings, schedules, jobs, ended } = member.written;
        for (queue, more) in queues {
            let sum = self.written.queues.entry(queue).or_default();
            (sum.live, sum.dead) = (sum.live + more.live, sum.dead + more.dead);
        }
        self.written.settings += settings;
        self.written.schedules += schedules;
        self.written.jobs += jobs;
        self.written.ended += ended;
        let losses = member.losses.into_iter();
        self.losses.extend(losses.map(|loss| match loss.unit {
            Unit::Shard => loss,
            _ => Loss { file: below(loss.file), ..loss },
        }));
        self.notes.extend(member.notes.into_iter().map(|note| format!("{folder}: {note}")));
        self.superseded += member.superseded;
        let room = NAMED_MAX.saturating_sub(self.superseded_tasks.len());
        self.superseded_tasks.extend(member.superseded_tasks.into_iter().take(room));
    }

    /// Counts a task that is left out, and names it if fewer than 10,000 are named.
    pub(super) fn supersede(&mut self, task: Superseded) {
        self.superseded += 1;
        if self.superseded_tasks.len() < NAMED_MAX {
            self.superseded_tasks.push(task);
        }
    }

    /// Returns how many live tasks and how many dead tasks were written.
    #[must_use]
    pub fn tasks(&self) -> Population {
        let queues = self.written.queues.values();
        queues.fold(Population::default(), |sum, of| Population {
            live: sum.live + of.live,
            dead: sum.dead + of.dead,
        })
    }
}

impl Loss {
    pub(super) fn new(
        file: impl Into<String>,
        from: u64,
        to: Option<u64>,
        unit: Unit,
        what: impl Into<String>,
    ) -> Self {
        Self {
            file: file.into(),
            from,
            to,
            unit,
            what: what.into(),
            certain: true,
            tasks: Vec::new(),
            tasks_max: None,
            ended_max: Some(0),
            rules: Vec::new(),
            rules_may_be_older: false,
            ends_may_be_forgotten: false,
        }
    }

    /// Sets how many tasks the loss is about at most, and how many ended tasks the new directory has because of it at most; `None`: the
    /// number is unknown.
    pub(super) fn at_most(self, tasks_max: Option<u64>, ended_max: Option<u64>) -> Self {
        Self { tasks_max, ended_max, ..self }
    }

    /// Says that this loss and `others` more have at most `records` records together, so that no reader adds the numbers of the losses up.
    pub(super) fn shares(&mut self, others: usize, records: u64) {
        if others > 0 {
            let parts = if others == 1 { "1 other part".to_owned() } else { format!("{others} other parts") };
            self.what +=
                &format!("; this part and {parts} of the file had at most {records} records together");
        }
    }

    /// Names settings, a schedule or a job in the loss, in place of an earlier entry of the same name. At most 10,000 are named.
    pub(super) fn name_rule(&mut self, rule: LostRule) {
        self.rules.retain(|known| known.name != rule.name);
        if self.rules.len() < NAMED_MAX {
            self.rules.push(rule);
        }
    }

    /// Names one more task in the loss, unless 10,000 are named or one of the last 64 entries is the same.
    pub(super) fn name(&mut self, task: LostTask) {
        if self.tasks.len() < NAMED_MAX && !self.tasks.iter().rev().take(64).any(|known| *known == task) {
            self.tasks.push(task);
        }
    }
}
