//! Notes the lost parts, and finds the tasks that each loss is about.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{QueueName, Seq, Task};

use super::found::{Reading, Said};
use super::logs::{Gap, LogFile};
use super::names::name_tasks;
use super::report::{Fate, Loss, LostTask, Unit};
use super::segments::Suspect;
use super::source::Source;
use crate::codec::{Names, Op, split_ops};
use crate::disk::Disk;
use crate::layout::SHARD;
use crate::log::HEAD_BYTES;

impl Reading {
    /// Adds a loss for a gap in the log. Records that can be decoded from the bytes of the gap only help to name lost tasks and rules; they
    /// are not saved.
    pub(super) fn lose_gap<D: Disk>(&mut self, source: &mut Source<'_, D>, logs: &[LogFile], gap: &Gap) {
        let one = gap.numbers.1 == Some(gap.numbers.0);
        let unit = if one { Unit::Frame } else { Unit::Frames };
        let (file, from, to) = match gap.place {
            Some((file, from, to)) => (logs[file].name.to_string(), from, to),
            None => (SHARD.to_owned(), 0, None),
        };
        let mut loss = Loss::new(file.clone(), from, to, unit, gap.what.clone());
        loss.certain = gap.certain;
        (loss.tasks_max, loss.ended_max) = (gap.changes_max(), gap.changes_max());
        (loss.rules_may_be_older, loss.ends_may_be_forgotten) = (true, true);
        self.found.log_is_torn |= gap.changes.1.is_none() || gap.place.is_none();
        let index = self.found.report.losses.len();
        self.found.report.losses.push(loss);
        self.found.state.forget_numbers();
        if let (Some(_), Some(to)) = (gap.place, to) {
            let bytes = source.read(&file, from, to - from);
            let said = said(bytes.get(HEAD_BYTES..).unwrap_or(&[]), &mut self.names);
            let frame = gap.numbers.1.unwrap_or(u64::MAX);
            self.said.extend(said.into_iter().map(|op| Said { loss: index, frame, op }));
        }
    }

    /// Decodes the rules and ends in a damaged block of the checkpoint, to name them in the loss with this index. Each frame of the log
    /// that is read counts as later than the block.
    pub(super) fn hear_block(&mut self, loss: usize, bytes: &[u8]) {
        let said = said(bytes, &mut self.names);
        self.said.extend(said.into_iter().map(|op| Said { loss, frame: 0, op }));
    }

    /// Finds the tasks and rules that the losses are about, after everything is read. Removes losses of bytes that had no record.
    pub(super) fn resolve<D: Disk>(&mut self, source: &mut Source<'_, D>, logs: &[LogFile]) {
        let suspects = std::mem::take(&mut self.suspects);
        for (file, suspect) in suspects {
            // Another record of the task, or its end, was read. It is later than the damaged record, so nothing is lost.
            if self.found.index.get(suspect.id).is_some() {
                continue;
            }
            self.lose_record(&file, suspect);
        }
        for Said { loss, frame, op } in std::mem::take(&mut self.said) {
            if let Op::Rule(effect) = &op {
                let rule = self.traces.fate(effect, frame, &self.found.rules);
                rule.into_iter().for_each(|rule| self.found.report.losses[loss].name_rule(rule));
            } else if let Some(task) = self.fate_of(&op) {
                self.found.report.losses[loss].name(task);
            }
        }
        self.lose_schedules();
        self.lose_bodies();
        name_once(&mut self.found.report.losses);
        name_tasks(source, logs, &self.seeds, &mut self.found.report.losses);
        // Bytes of a segment in which no record was are no loss.
        self.found.report.losses.retain(|loss| !(loss.tasks_max == Some(0) && is_empty_records(loss)));
        self.found.seq = self.found.seq.max(self.found.index.seq_max);
    }

    fn lose_record(&mut self, file: &Arc<str>, suspect: Suspect) {
        let Suspect { from, to, id, queue, key, says, why } = suspect;
        // The key in the damaged record is believed only if the footer has the hash of the same key.
        let same = |task: &&Task| task.id == id && task.queue == queue && self.naming.of(task) == key;
        let key = says.as_ref().filter(same).map(|task| task.key.clone());
        let mut loss = Loss::new(&**file, from, Some(to), Unit::Record, why);
        loss.tasks_max = Some(1);
        loss.name(LostTask { id, queue: Some(queue), key, fate: Fate::Lost });
        self.found.report.losses.push(loss);
        self.found.index.see(id, Seq::ZERO);
    }

    /// Returns what may have happened to the task of a record in damaged bytes. `None`: the record is of no task, or the task's end or a
    /// record that is not older was read.
    fn fate_of(&self, op: &Op) -> Option<LostTask> {
        let (id, seq, queue, key, ends): (u64, Seq, &QueueName, _, bool) = match op {
            Op::Stored(task) | Op::StoredBodyKnown(task) => {
                (task.id, task.seq, &task.queue, &task.key, false)
            }
            Op::Ended(ended) => (ended.id, ended.seq, &ended.queue, &ended.key, true),
            Op::State(_) | Op::Rule(_) => return None,
        };
        let known = self.found.index.get(id);
        if known.is_some_and(|known| known.seq >= seq || known.spot.is_none()) {
            return None;
        }
        let fate = match (known.is_some(), ends) {
            (false, false) => Fate::PerhapsLost,
            (true, false) => Fate::PerhapsOlder,
            (true, true) => Fate::PerhapsEnded,
            (false, true) => Fate::EndForgotten,
        };
        Some(LostTask { id, queue: Some(queue.clone()), key: Some(key.clone()), fate })
    }

    /// Names the schedules that a lost block of the checkpoint may have had. Their names are in the keys of the tasks that they made.
    fn lose_schedules(&mut self) {
        let Reading { found, traces, .. } = self;
        let block = |loss: &&mut Loss| loss.unit == Unit::Block && loss.rules_may_be_older;
        if let Some(loss) = found.report.losses.iter_mut().find(block) {
            traces.missed(&found.rules).for_each(|rule| loss.name_rule(rule));
        }
    }

    /// Names the tasks whose payload is lost or may be too old, because it was in a missing frame. Adds a loss if no loss is about frames
    /// yet.
    fn lose_bodies(&mut self) {
        let bodiless: Vec<Arc<Task>> = self.found.index.bodiless().cloned().collect();
        let doubtful: Vec<u64> = self.found.index.doubtful().collect();
        if bodiless.is_empty() && doubtful.is_empty() {
            return;
        }
        let gap =
            self.found.report.losses.iter().position(|loss| matches!(loss.unit, Unit::Frame | Unit::Frames));
        let index = gap.unwrap_or_else(|| {
            let what = "payloads that later records count on are in no frame";
            let tasks_max = Some((bodiless.len() + doubtful.len()) as u64);
            let loss = Loss::new(SHARD, 0, None, Unit::Frames, what);
            self.found.report.losses.push(loss.at_most(tasks_max, Some(0)));
            self.found.report.losses.len() - 1
        });
        let loss = &mut self.found.report.losses[index];
        for task in bodiless {
            loss.tasks.retain(|known| known.id != task.id);
            let Task { id, queue, key, .. } = &*task;
            let (queue, key) = (Some(queue.clone()), Some(key.clone()));
            loss.name(LostTask { id: *id, queue, key, fate: Fate::Lost });
        }
        for id in doubtful {
            loss.tasks.retain(|known| known.id != id);
            loss.name(LostTask { id, queue: None, key: None, fate: Fate::OlderPayload });
        }
    }
}

/// Leaves each task in one loss only: the first of those that give it the worst fate.
fn name_once(losses: &mut [Loss]) {
    let mut worst: BTreeMap<u64, (Fate, usize)> = BTreeMap::new();
    for (index, loss) in losses.iter().enumerate() {
        for task in &loss.tasks {
            let found = (task.fate, index);
            worst.entry(task.id).and_modify(|known| *known = found.min(*known)).or_insert(found);
        }
    }
    for (index, loss) in losses.iter_mut().enumerate() {
        // The entry is taken, so a second one of the same task goes, too.
        loss.tasks.retain(|task| match worst.get(&task.id) {
            Some(known) if *known == (task.fate, index) => worst.remove(&task.id).is_some(),
            _ => false,
        });
    }
}

/// Decodes the records that damaged bytes seem to have. Behind bytes that are no record, the search goes on byte by byte.
fn said(bytes: &[u8], names: &mut Names) -> Vec<Op> {
    let mut said = Vec::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let first = split_ops(rest, names).next();
        match first.map(|record| (record.bytes, record.op)) {
            Some((bytes, Ok(op))) => {
                said.push(op);
                at += bytes;
            }
            Some((_, Err(_))) | None => at += 1,
        }
    }
    said
}

/// Whether a loss is of bytes of a segment, names no task, and cannot have left an ended task in the new directory.
fn is_empty_records(loss: &Loss) -> bool {
    loss.unit == Unit::Records && loss.ended_max == Some(0) && loss.tasks.is_empty()
}
