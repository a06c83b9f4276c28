//! The replay of the log's frames onto a catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{Epoch, Seq, Timestamp};

use crate::catalog::Catalog;
use crate::checkpoint::Start;
use crate::codec::{Names, Op, read_ops};
use crate::log::{Frame, FrameHead};

/// The numbers at the end of the log, and the records of the last frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Last {
    pub(crate) frame: u64,
    pub(crate) seq: Seq,
    pub(crate) epoch: Epoch,
    pub(crate) wall: Timestamp,
    /// The last frame that the writer of the last frame knew to be synced; the last frame itself if the checkpoint covers it.
    pub(crate) durable: u64,
    /// The last change before the last frame, and the records of the last frame. It is unknown whether the last frame was synced, so the
    /// first frame of the next owner repeats its records. `None` if the checkpoint covers the last frame, or once an owner has written a
    /// frame after the opening.
    pub(crate) again: Option<(Seq, Vec<u8>)>,
}

/// A catalog, and the last frame that was applied to the catalog.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) catalog: Catalog,
    /// The last frame that was applied, with its numbers. Before the first one is applied, the frame at which the checkpoint begins.
    pub(super) end: Last,
    /// How many frames were applied.
    pub(super) frames: u64,
    names: Names,
    /// Tasks that have a record without a body, and whose body is not in the memtable, each with the `seq` of the record. In a whole log,
    /// such a task ended before the checkpoint read it, so a later frame has its end.
    bodiless: BTreeMap<u64, Seq>,
}

impl Replay {
    /// Returns a replay on the catalog of a checkpoint that begins at `start` and was written at the wall instant `wall`.
    pub(super) fn new(catalog: Catalog, start: Start, wall: Timestamp) -> Self {
        let Start { seq, frame, epoch, .. } = start;
        let end = Last { frame, seq, epoch, wall, durable: frame, again: None };
        Self { catalog, end, frames: 0, names: Names::new(), bodiless: BTreeMap::new() }
    }

    /// Applies the next frame to the catalog. `Err` says why the frame cannot be the next one although its checksum matches.
    pub(super) fn take(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        let head = &frame.head;
        if head.prev_seq != self.end.seq || head.seq < head.prev_seq {
            let (prev, seq) = (head.prev_seq, head.seq);
            return Err(format!(
                "frame {} goes from change {prev} to {seq}, after change {}",
                head.number, self.end.seq
            ));
        }
        if head.epoch < self.end.epoch {
            return Err(format!(
                "frame {} is of epoch {}, after epoch {}",
                head.number, head.epoch, self.end.epoch
            ));
        }
        let Self { catalog, names, bodiless, .. } = self;
        read_ops(frame.ops, names, |op| {
            take_op(catalog, bodiless, op);
            Ok(())
        })
        .map_err(|error| format!("frame {}: {error}", head.number))?;
        let FrameHead { number, seq, epoch, durable, .. } = *head;
        let wall = self.end.wall.max(head.wall);
        let again = Some((head.prev_seq, frame.ops.to_vec()));
        self.end = Last { frame: number, seq, epoch, wall, durable, again };
        self.frames += 1;
        Ok(())
    }

    /// Returns the id of a task whose body was not found, if there is one.
    pub(super) fn bodiless(&self) -> Option<u64> {
        self.bodiless.keys().next().copied()
    }
}

fn take_op(catalog: &mut Catalog, bodiless: &mut BTreeMap<u64, Seq>, op: Op) {
    match op {
        Op::Stored(task) => {
            bodiless.remove(&task.id);
            catalog.store(&Arc::new(task), false);
        }
        Op::StoredBodyKnown(mut task) => {
            match catalog.memtable_task(task.id).map(|known| Arc::clone(&known.body)) {
                Some(body) => {
                    task.body = body;
                    catalog.store(&Arc::new(task), true);
                }
                None if catalog.histories().seq_of(task.id).is_some() => {}
                None => drop(bodiless.insert(task.id, task.seq)),
            }
        }
        Op::Ended(ended) => {
            bodiless.remove(&ended.id);
            catalog.end(&ended);
        }
        Op::State(state) => catalog.join_state(state),
        Op::Rule(effect) => catalog.apply_rule(effect),
    }
}
