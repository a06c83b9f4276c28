//! The replay of frames onto a catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{Epoch, Seq, Timestamp};

use crate::catalog::Catalog;
use crate::codec::{Names, Op, read_ops};
use crate::log::Frame;

/// A catalog, and the frame it has come to.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) catalog: Catalog,
    /// The last frame.
    pub(super) number: u64,
    pub(super) seq: Seq,
    pub(super) epoch: Epoch,
    pub(super) wall: Timestamp,
    /// The last synced frame, as the last frame says.
    pub(super) durable: u64,
    /// The change before the last frame, and its records: what the next owner's first frame repeats. `None` if the last
    /// frame is in the checkpoint.
    pub(super) last: Option<(Seq, Vec<u8>)>,
    /// Frames that were read.
    pub(super) frames: u64,
    names: Names,
    /// Tasks with a record without a body, whose body is not here either. Such a task ended before the checkpoint came to it, so a later
    /// frame has its end.
    bodiless: BTreeMap<u64, Seq>,
}

impl Replay {
    pub(super) fn new(catalog: Catalog, number: u64, seq: Seq, epoch: Epoch, wall: Timestamp) -> Self {
        Self {
            catalog,
            number,
            seq,
            epoch,
            wall,
            durable: number,
            last: None,
            frames: 0,
            names: Names::new(),
            bodiless: BTreeMap::new(),
        }
    }

    /// Takes the next frame in. `Err` says why it cannot be the next one, though its checksum matches.
    pub(super) fn take(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        let head = &frame.head;
        if head.prev_seq != self.seq || head.seq < head.prev_seq {
            let (prev, seq) = (head.prev_seq, head.seq);
            return Err(format!(
                "frame {} goes from change {prev} to {seq}, after change {}",
                head.number, self.seq
            ));
        }
        if head.epoch < self.epoch {
            return Err(format!(
                "frame {} is of epoch {}, after epoch {}",
                head.number, head.epoch, self.epoch
            ));
        }
        let Self { catalog, names, bodiless, .. } = self;
        read_ops(frame.ops, names, |op| {
            take_op(catalog, bodiless, op);
            Ok(())
        })
        .map_err(|error| format!("frame {}: {error}", head.number))?;
        self.number = head.number;
        self.seq = head.seq;
        self.epoch = head.epoch;
        self.wall = self.wall.max(head.wall);
        self.durable = head.durable;
        self.last = Some((head.prev_seq, frame.ops.to_vec()));
        self.frames += 1;
        Ok(())
    }

    /// Returns a task whose body never came, if there is one.
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
