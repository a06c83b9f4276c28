//! The new directory of a shard of which nothing can be saved: it has no task, and repeats no number that the lost one may have given out.

use tickwheel_engine::{Epoch, Seq, ShardId, Timestamp};

use super::found::Found;
use super::report::{Loss, Unit};
use crate::layout::{folder_of, le_u64};
use crate::meta::Meta;
use crate::options::ClockMode;

/// How far the numbers of the members of a root have come. The numbers of a lost member are guessed from those of the others.
#[derive(Copy, Clone, Debug, Default)]
pub struct Reached {
    id: u64,
    seq: Seq,
    epoch: Epoch,
    wall: Timestamp,
}

impl Reached {
    /// Takes in the numbers of a member that was read.
    pub fn join(&mut self, found: &Found) {
        // The first number of the state is the limit of the ids.
        let ids = le_u64(&found.state.to_bytes(), 0);
        self.id = self.id.max(ids).max(found.index.id_max);
        self.seq = self.seq.max(found.seq).max(found.index.seq_max);
        self.epoch = self.epoch.max(found.epoch);
        self.wall = self.wall.max(found.wall);
    }
}

impl Found {
    /// Returns findings without a task, for a shard whose directory is lost: the loss of all of it, and numbers far above those of the other
    /// members. `secret`: the secret of the new directory. With another secret than the lost one, no lease token of the lost one is valid.
    #[must_use]
    pub fn lost(shard: ShardId, why: &str, reached: Reached, clock: ClockMode, secret: [u8; 16]) -> Self {
        let mut found = Self::nothing(Meta { clock, secret, has_log: true, shard });
        let Reached { id, seq, epoch, wall } = reached;
        found.index.see(id, seq);
        (found.seq, found.epoch, found.wall) = (seq, epoch, wall);
        // Then the writer passes change numbers and epochs, too.
        found.log_is_torn = true;
        let what = format!("{why}; all of {shard} is lost, and an empty directory takes its place");
        let mut loss = Loss::new(folder_of(shard), 0, None, Unit::Shard, what);
        (loss.rules_may_be_older, loss.ends_may_be_forgotten) = (true, true);
        found.report.losses.push(loss);
        found
    }
}
