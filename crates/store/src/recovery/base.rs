//! [`Base`]: the state to which a recovery applies the log. This state is the newest checkpoint that is valid, or empty.

use std::sync::Arc;

use tickwheel_engine::Timestamp;

use super::found::Found;
use super::replay::Replay;
use super::segments::load_segments;
use crate::catalog::Catalog;
use crate::checkpoint::{Damage, Start, load};
use crate::checksum::Seeds;
use crate::disk::Disk;
use crate::error::OpenError;
use crate::layout::{checkpoint_file, segment_file};

/// The state to which a recovery applies the log.
pub(super) struct Base {
    pub(super) replay: Replay,
    pub(super) name: Option<Arc<str>>,
    pub(super) start: Start,
    /// The names of the segments that the checkpoint does not list.
    pub(super) unlisted: Vec<Arc<str>>,
    /// The log must reach this frame, because the frame was synced when the checkpoint was written. 0 without a checkpoint.
    pub(super) last_frame: u64,
    /// The damage of the newest checkpoint, if that checkpoint is damaged.
    pub(super) damage: Option<Damage>,
}

/// Loads the newest checkpoint that is valid, and its segments. Returns an empty base if no checkpoint is valid.
pub(super) fn read_base<D: Disk>(
    disk: &mut D,
    found: &Found,
    seeds: &Seeds,
    mut catalog: Catalog,
) -> Result<Base, OpenError> {
    let mut damage = None;
    for number in found.listing.checkpoints.iter().rev() {
        match load(disk, *number, seeds)? {
            Err(found) => damage = damage.or(Some(found)),
            Ok(loaded) => {
                let start = loaded.start;
                let unlisted = load_segments(disk, &mut catalog, &found.listing.segments, &loaded, seeds)?;
                // The rules are applied first, because they decide how many ended tasks are remembered.
                loaded.rules.into_iter().for_each(|effect| catalog.apply_rule(effect));
                loaded.ended.iter().for_each(|ended| catalog.end(ended));
                catalog.join_state(loaded.end.state);
                return Ok(Base {
                    replay: Replay::new(catalog, start, loaded.end.wall),
                    name: Some(checkpoint_file(*number)),
                    start,
                    unlisted,
                    last_frame: loaded.end.last_frame,
                    damage,
                });
            }
        }
    }
    let unlisted = found.listing.segments.iter().map(|generation| segment_file(*generation)).collect();
    Ok(Base {
        replay: Replay::new(catalog, Start::default(), Timestamp::EPOCH),
        name: None,
        start: Start::default(),
        unlisted,
        last_frame: 0,
        damage,
    })
}
