//! [`Fault`]: the faults of one call, and when they happen.

use tickwheel_store::DiskOp;

use super::SimDisk;

/// A fault of one call. Short reads are not among the faults: a [`Disk`](tickwheel_store::Disk) reads on until the file ends.
///
/// | fault | what a store may do | promises it voids |
/// |---|---|---|
/// | `Crash`, `Error`, `LosingSync` | fail, and come back with all it acknowledged | none |
/// | `Full` | refuse growth; fail only if it was a commit | none |
/// | `NoDescriptor` | refuse growth, and go on when the call succeeds | none |
/// | `LyingSync` | lose what was synced, but say so | P1, as far as it says so |
/// | `FlippedRead`, `NeighbourRead` | refuse and name the file, or not need what was read | P1 while it refuses |
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The machine dies during the call. Every later call fails until [`SimDisk::crash`].
    Crash,
    /// The call fails and changes nothing; after a failed sync, the changes it covered stay unsynced.
    Error,
    /// A sync fails, and the changes that it covered are lost, though reads still show them and the next sync
    /// succeeds. A call that is no sync fails like [`Fault::Error`].
    LosingSync,
    /// The call fails because there is no space.
    Full,
    /// The call fails and changes nothing, because the process has no file descriptor left.
    NoDescriptor,
    /// A sync reports success, but [`SimDisk::after_lies`] shows the disk without the changes that it covered. Any other call works.
    LyingSync,
    /// A read returns one wrong bit. Any other call works.
    FlippedRead,
    /// A read returns one sector (512 bytes) that is a copy of its neighbour. Any other call works.
    NeighbourRead,
}

/// Counts the calls and keeps the planned faults.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    /// The number of calls so far that change something.
    pub(super) changes: u64,
    counts: Vec<(DiskOp, u64)>,
    at_change: Vec<(u64, Fault)>,
    at_kind: Vec<(DiskOp, u64, Fault)>,
}

impl Schedule {
    /// Counts a call and returns the fault that is due at it.
    pub(super) fn next(&mut self, op: DiskOp) -> Option<Fault> {
        let changes = matches!(
            op,
            DiskOp::CreateDir
                | DiskOp::Create
                | DiskOp::Write
                | DiskOp::Sync
                | DiskOp::SetLen
                | DiskOp::Rename
                | DiskOp::Remove
                | DiskOp::SyncDir
        );
        self.changes += u64::from(changes);
        let count = match self.counts.iter_mut().find(|(kind, _)| *kind == op) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.counts.push((op, 1));
                1
            }
        };
        let now = self.changes;
        let at_change = self.at_change.iter().position(|(at, _)| changes && *at == now);
        let at_kind = self.at_kind.iter().position(|(kind, at, _)| *kind == op && *at == count);
        let at_change = at_change.map(|at| self.at_change.swap_remove(at).1);
        at_change.or(at_kind.map(|at| self.at_kind.swap_remove(at).2))
    }

    pub(super) fn count(&self, op: DiskOp) -> u64 {
        self.counts.iter().find(|(kind, _)| *kind == op).map_or(0, |(_, count)| *count)
    }

    pub(super) fn forget(&mut self) {
        self.at_change.clear();
        self.at_kind.clear();
    }
}

impl SimDisk {
    /// Lets `fault` happen at the `nth` changing call from now, counted from 1.
    pub fn fail_at(&self, nth: u64, fault: Fault) {
        let schedule = &mut self.lock_state().schedule;
        let at = schedule.changes + nth;
        schedule.at_change.push((at, fault));
    }

    /// Lets `fault` happen at the `nth` call of this kind from now, counted from 1.
    pub fn fail_nth(&self, op: DiskOp, nth: u64, fault: Fault) {
        let schedule = &mut self.lock_state().schedule;
        let at = schedule.count(op) + nth;
        schedule.at_kind.push((op, at, fault));
    }

    /// Removes all faults that have not happened.
    pub fn forget_faults(&self) {
        self.lock_state().schedule.forget();
    }

    /// Whether a fault that [`fail_nth`](Self::fail_nth) planned has not happened yet.
    #[must_use]
    pub fn awaits_nth(&self) -> bool {
        !self.lock_state().schedule.at_kind.is_empty()
    }

    /// The file of the last look that failed by a planned fault. The file may be one that is not there.
    #[must_use]
    pub fn failed_look(&self) -> Option<String> {
        self.lock_state().failed_look.clone()
    }

    /// The number of calls so far that change something.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.lock_state().schedule.changes
    }

    /// The number of calls of one kind so far.
    #[must_use]
    pub fn calls_of(&self, op: DiskOp) -> u64 {
        self.lock_state().schedule.count(op)
    }
}
