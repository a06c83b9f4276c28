//! What was read, what was saved, and what is lost.

use std::collections::BTreeMap;

use tickwheel_engine::{Key, Population, QueueName, RuleName};

/// Tasks of one loss that are named; the others are counted.
pub(super) const NAMED_MAX: usize = 10_000;

/// What became of a directory that was salvaged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// What was read.
    pub read: ReadReport,
    /// What the new directory has.
    pub written: WrittenReport,
    /// What is lost, in the order in which it was found.
    pub losses: Vec<Loss>,
    /// What else is worth knowing, as sentences.
    pub notes: Vec<String>,
    /// How many tasks were left out because another task has their key since.
    pub superseded: u64,
    /// Those tasks: at most 10,000.
    pub superseded_tasks: Vec<Superseded>,
}

/// A task that is not in the new directory, because a later task has its key. It had ended, or it was dead and is lost: the record that says
/// which is in what is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Superseded {
    /// The server's number of it.
    pub id: u64,
    /// Its queue.
    pub queue: QueueName,
    /// Its key.
    pub key: Key,
    /// The task that has the key.
    pub by: u64,
}

/// What was read of the damaged directory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ReadReport {
    /// Files of the directory.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Frames of the log that count.
    pub frames: u64,
    /// Records in them, in segments and in the checkpoint.
    pub records: u64,
    /// The checkpoint that the log was read on top of; `None`: there is none, or nothing of it could be used.
    pub checkpoint: Option<String>,
    /// Files with one damaged byte in a part that is small enough to tell which byte it is, and the offset of that byte.
    pub mended: Vec<(String, u64)>,
    /// What the disk failed to read: file, first byte, and the first byte behind it.
    pub unreadable: Vec<(String, u64, u64)>,
}

impl ReadReport {
    /// Adds what a second pass could not read. The first may have met the same parts.
    pub(super) fn join_unreadable(&mut self, parts: Vec<(String, u64, u64)>) {
        for (file, from, to) in parts {
            let covers = |known: &(String, u64, u64)| known.0 == file && known.1 <= from && to <= known.2;
            if !self.unreadable.iter().any(covers) {
                self.unreadable.push((file, from, to));
            }
        }
    }
}

/// What is in the new directory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct WrittenReport {
    /// Tasks of each queue that has any.
    pub queues: BTreeMap<QueueName, Population>,
    /// Settings of queues.
    pub settings: u64,
    /// Schedules.
    pub schedules: u64,
    /// Jobs.
    pub jobs: u64,
    /// Ended tasks that are remembered.
    pub ended: u64,
}

/// A part of the directory that is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The file, from the data directory on.
    pub file: String,
    /// From which byte on.
    pub from: u64,
    /// The first byte behind it; `None`: to the end, or nobody knows.
    pub to: Option<u64>,
    /// What one checksum covered there.
    pub unit: Unit,
    /// What is wrong, as a sentence fragment.
    pub what: String,
    /// Whether something is lost for certain. `false`: it may be the rest of a write that a crash cut short and of which no client was told.
    pub certain: bool,
    /// The tasks it is about, as far as they can be told: at most 10,000.
    pub tasks: Vec<LostTask>,
    /// At most this many tasks are lost here, or are in the new directory in an older state; `None`: that cannot be told.
    pub tasks_max: Option<u64>,
    /// At most this many tasks had ended, and are in the new directory because of this loss; `None`: that cannot be told.
    pub ended_max: Option<u64>,
    /// The settings, schedules and jobs it is about, as far as they can be told: at most 10,000.
    pub rules: Vec<LostRule>,
    /// Whether settings, schedules and jobs of the new directory may be older ones, for changes of them may be lost here.
    pub rules_may_be_older: bool,
    /// Whether the ends of tasks may be forgotten here: their keys are answered `not_found` from now on, and not `done` or `cancelled`.
    pub ends_may_be_forgotten: bool,
}

/// The settings of a queue, a schedule or a job that a loss is about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LostRule {
    /// Its name.
    pub name: RuleName,
    /// What became of it.
    pub fate: RuleFate,
}

/// What became of settings, a schedule or a job.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum RuleFate {
    /// The new directory does not have it.
    PerhapsLost,
    /// The new directory has it, perhaps in an older state.
    PerhapsOlder,
    /// The new directory has it, and damaged bytes say that it was removed.
    PerhapsRemoved,
}

impl RuleFate {
    /// As words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::PerhapsLost => "perhaps lost",
            Self::PerhapsOlder => "saved, perhaps in an older state",
            Self::PerhapsRemoved => "saved, and perhaps it had been removed",
        }
    }
}

/// What one checksum covers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unit {
    /// A frame of the log: what one commit wrote.
    Frame,
    /// Several frames, or a whole file of the log.
    Frames,
    /// The record of one task in a segment.
    Record,
    /// Records of a segment whose index is damaged too.
    Records,
    /// A whole segment.
    Segment,
    /// Tombstones of a segment: which of its tasks had ended or were changed.
    Tombstones,
    /// A block of a checkpoint.
    Block,
    /// A whole checkpoint.
    Checkpoint,
}

impl Unit {
    /// Its name.
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
        }
    }
}

/// A task that a loss is about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LostTask {
    /// The server's number of it.
    pub id: u64,
    /// Its queue.
    pub queue: Option<QueueName>,
    /// Its key.
    pub key: Option<Key>,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a task.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Fate {
    /// It is lost.
    Lost,
    /// The new directory has it, and its payload may be an older one.
    OlderPayload,
    /// Damaged bytes name it, so it is perhaps lost.
    PerhapsLost,
    /// Damaged bytes name it: the new directory has it, perhaps in an older state.
    PerhapsOlder,
    /// Damaged bytes say that it ended: the new directory has it, and perhaps should not.
    PerhapsEnded,
    /// Damaged bytes say that it ended, and nothing else tells of it: its key is answered `not_found` from now on.
    EndForgotten,
}

impl Fate {
    /// As words.
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
    /// It has none.
    No,
    /// At most this many.
    AtMost(u64),
    /// It may, and how many cannot be told.
    Unknown,
}

impl Report {
    /// Whether the new directory has all that the old one had.
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

    /// Notes a task that is left out.
    pub(super) fn supersede(&mut self, task: Superseded) {
        self.superseded += 1;
        if self.superseded_tasks.len() < NAMED_MAX {
            self.superseded_tasks.push(task);
        }
    }

    /// Live tasks that were written, and dead ones.
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

    /// Names settings, a schedule or a job, up to a bound.
    pub(super) fn name_rule(&mut self, rule: LostRule) {
        self.rules.retain(|known| known.name != rule.name);
        if self.rules.len() < NAMED_MAX {
            self.rules.push(rule);
        }
    }

    /// Names one more task, up to a bound.
    pub(super) fn name(&mut self, task: LostTask) {
        if self.tasks.len() < NAMED_MAX && !self.tasks.iter().rev().take(64).any(|known| *known == task) {
            self.tasks.push(task);
        }
    }
}
