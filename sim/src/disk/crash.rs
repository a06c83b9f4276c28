//! The state of a [`SimDisk`] after a crash.

use super::{SimDisk, State};
use crate::rng::Rng;

/// The part of the last kept write that is on the disk after a chosen crash.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LastWrite {
    /// The whole write stays.
    Whole,
    /// Only this number of bytes stays, from the beginning of the write; of a write that is not longer, the first half.
    Torn(usize),
}

impl SimDisk {
    /// Cuts the power: any subset of the unsynced changes stays, in any order, some of them torn. The disk can be used again.
    pub fn crash(&self, rng: &mut Rng) {
        let mut state = self.lock_state();
        let State { files, durable_names, dirs, durable_dirs, calls, .. } = &mut *state;
        for dir in dirs.values_mut() {
            // Some file systems keep the order of changes of names, others promise nothing.
            let keep_percent = rng.pick(&[0, 50, 90, 100]);
            for change in std::mem::take(&mut dir.unsynced) {
                if rng.chance(keep_percent) {
                    change.apply(durable_names, durable_dirs);
                } else {
                    calls.damaged += 1;
                }
            }
        }
        for file in files.values_mut() {
            let mut unsynced = std::mem::take(&mut file.unsynced);
            let all = unsynced.len();
            if rng.chance(50) {
                rng.shuffle(&mut unsynced);
            }
            let keep_percent = rng.pick(&[0, 50, 90, 100]);
            unsynced.retain(|_| rng.chance(keep_percent));
            calls.damaged += (all - unsynced.len()) as u64;
            for write in unsynced {
                calls.damaged += u64::from(write.apply_torn(&mut file.durable, rng));
            }
        }
        state.come_back();
    }

    /// The number of changes that a crash may lose or keep: first the changes of names, then the writes, in a fixed order.
    #[must_use]
    pub fn unsynced(&self) -> usize {
        let state = self.lock_state();
        let names: usize = state.dirs.values().map(|dir| dir.unsynced.len()).sum();
        names + state.files.values().map(|file| file.unsynced.len()).sum::<usize>()
    }

    /// Cuts the power. A change that [`unsynced`](Self::unsynced) counts stays if its bit in `kept` is set; all
    /// changes after the 64th stay. `last` says what becomes of the last write that stays.
    pub fn crash_keeping(&self, kept: u64, last: LastWrite) {
        let mut state = self.lock_state();
        let mut number = 0_u32;
        let mut stays = || {
            let stays = kept.checked_shr(number).is_none_or(|rest| rest & 1 == 1);
            number += 1;
            stays
        };
        let State { files, durable_names, dirs, durable_dirs, .. } = &mut *state;
        for dir in dirs.values_mut() {
            for change in std::mem::take(&mut dir.unsynced).into_iter().filter(|_| stays()) {
                change.apply(durable_names, durable_dirs);
            }
        }
        let mut writes = Vec::new();
        for (inode, file) in files.iter_mut() {
            let kept = std::mem::take(&mut file.unsynced).into_iter().filter(|_| stays());
            writes.extend(kept.map(|write| (*inode, write)));
        }
        let count = writes.len();
        for (at, (inode, write)) in writes.into_iter().enumerate() {
            let Some(file) = files.get_mut(&inode) else { continue };
            match last {
                LastWrite::Torn(unit) if at + 1 == count => write.apply_beginning(unit, &mut file.durable),
                LastWrite::Whole | LastWrite::Torn(_) => write.apply(&mut file.durable),
            }
        }
        state.come_back();
    }

    /// The number of files that still exist and of which a sync lied; and the least number of later syncs, among
    /// these files, that may show the lie.
    #[must_use]
    pub fn lies(&self) -> (usize, u64) {
        let state = self.lock_state();
        let lies = state.files.values().filter_map(|file| file.lie.as_ref());
        (lies.clone().count(), lies.map(|lie| lie.syncs).min().unwrap_or(0))
    }

    /// A copy of the disk after a power cut, without the writes that lying syncs covered, and with all others.
    #[must_use]
    pub fn after_lies(&self) -> Self {
        let image = self.image();
        {
            let mut state = image.lock_state();
            for file in state.files.values_mut() {
                if let Some(lie) = file.lie.take() {
                    file.durable = lie.before;
                    lie.after.iter().for_each(|write| write.apply(&mut file.durable));
                }
            }
        }
        image.crash_keeping(u64::MAX, LastWrite::Whole);
        image
    }
}

impl State {
    /// Starts the machine again: only the durable state is left.
    fn come_back(&mut self) {
        let Self { files, names, durable_names, dirs, durable_dirs, schedule, crashed, .. } = self;
        for file in files.values_mut() {
            file.live.clone_from(&file.durable);
        }
        names.clone_from(durable_names);
        files.retain(|inode, _| names.values().any(|kept| kept == inode));
        dirs.retain(|dir, _| dir.is_empty() || durable_dirs.contains(dir));
        schedule.forget();
        *crashed = false;
    }
}
