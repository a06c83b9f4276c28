//! Runs every sequence of a few operations, with a crash at each call of the disk that changes something. After each
//! crash, every subset of the unsynced changes is kept once.
//!
//! The search is small and complete: known crash bugs of file systems mostly need three operations or fewer. The result
//! names its bound. For at most [`SUBSETS_OF`] unsynced changes, each subset of them is kept once. For more changes,
//! these subsets are kept: none, all, each change alone, all changes but one, and each prefix. The last kept write is
//! whole, torn after 512 bytes, or torn in its middle. After one or two operations, if none or all changes were kept,
//! the machine crashes once more at each changing call of the recovery.

use crate::disk::{Fault, LastWrite, SimDisk};
use crate::play::{OPERATIONS, Operation, Play, Stopped};

/// With at most this number of unsynced changes, all their subsets are tried.
pub const SUBSETS_OF: usize = 8;
/// After a sequence of at most this number of operations, the machine also crashes at each changing call of the recovery.
const RECOVERY_OF: usize = 2;
/// With at most this number of unsynced changes, the last kept write is also torn in each subset. With more changes, it is torn only in
/// the subset of all of them.
const TORN_OF: usize = 3;

/// Counts of what was tried.
#[derive(Copy, Clone, Debug, Default)]
struct Tried {
    sequences: u64,
    crashes: u64,
    in_recovery: u64,
    states: u64,
    /// The largest number of unsynced changes at one crash.
    unsynced: usize,
}

/// Tries all sequences of at most `operations` operations. `tell` gets the progress.
///
/// # Errors
/// The first sequence, crash and kept subset after which a promise is broken.
pub fn all(operations: usize, tell: impl Fn(String)) -> Result<String, String> {
    let base = SimDisk::new();
    let mut first = Play::new(base.clone());
    first.start().map_err(|stopped| format!("the first start: {stopped}"))?;
    drop(first);
    let mut tried = Tried::default();
    for length in 1..=operations {
        let count = OPERATIONS.len().pow(u32::try_from(length).map_err(|error| error.to_string())?);
        for number in 0..count {
            sequence(&base, &operations_of(number, length), &mut tried)?;
        }
        tell(format!("{length} operations: {tried:?}"));
    }
    let Tried { sequences, crashes, in_recovery, states, unsynced } = tried;
    Ok(format!(
        "{sequences} sequences of up to {operations} operations, {crashes} crashes and {in_recovery} more in the \
         recovery after one, {states} states passed; \
         at most {unsynced} changes were not synced, of up to {SUBSETS_OF} all subsets were kept"
    ))
}

/// The sequence with this number: the digits of the number, in base 8, are its operations.
fn operations_of(number: usize, length: usize) -> Vec<Operation> {
    let radix = OPERATIONS.len();
    (0..length).map(|place| OPERATIONS[number / radix.pow(place as u32) % radix]).collect()
}

/// Runs one sequence once for each of its changing calls of the disk, with a crash at that call, and once with a
/// crash after the last of them.
fn sequence(base: &SimDisk, operations: &[Operation], tried: &mut Tried) -> Result<(), String> {
    for nth in 1.. {
        let mut play = Play::new(base.image());
        play.start().map_err(|stopped| format!("{operations:?}: {stopped}"))?;
        play.disk.fail_at(nth, Fault::Crash);
        let story = || format!("{operations:?}, crash at call {nth}");
        let mut over = true;
        for &operation in operations {
            match play.act(operation) {
                Ok(true) => {}
                // The operation has nothing to do, so a shorter sequence is the same.
                Ok(false) => return Ok(()),
                Err(Stopped::Died) => {
                    over = false;
                    break;
                }
                Err(stopped) => return Err(format!("{}: {stopped}", story())),
            }
        }
        tried.sequences += u64::from(nth == 1);
        tried.crashes += 1;
        tried.unsynced = tried.unsynced.max(play.disk.unsynced());
        for (kept, last) in parts(play.disk.unsynced()) {
            tried.states += 1;
            come_back(&play, kept, last)
                .map_err(|stopped| format!("{}, {kept:#b} kept, {last:?}: {stopped}", story()))?;
        }
        let twice = operations.len() <= RECOVERY_OF;
        for kept in [0, u64::MAX].into_iter().filter(|_| twice) {
            let again =
                come_back_twice(&play, kept).map_err(|why| format!("{}, {kept:#b} kept, {why}", story()))?;
            tried.in_recovery += again;
            tried.states += 2 * again;
        }
        if over {
            return Ok(());
        }
    }
    Ok(())
}

/// Checks that the server starts after the crash, and that everything it acknowledged is still there.
fn come_back(play: &Play, kept: u64, last: LastWrite) -> Result<(), Stopped> {
    let disk = play.disk.image();
    disk.crash_keeping(kept, last);
    let mut play = play.crashed_on(disk)?;
    play.start()?;
    play.finish()
}

/// Starts the server once for each changing call of the disk that the start makes, with a crash at that call. Returns
/// the number of these calls.
fn come_back_twice(play: &Play, kept: u64) -> Result<u64, String> {
    for nth in 1.. {
        let disk = play.disk.image();
        disk.crash_keeping(kept, LastWrite::Whole);
        disk.fail_at(nth, Fault::Crash);
        let mut second = play.crashed_on(disk).map_err(|violation| Stopped::Broken(violation).to_string())?;
        match second.start() {
            Ok(()) => return Ok(nth - 1),
            Err(Stopped::Died) => {}
            Err(stopped) => return Err(format!("crash at call {nth} of the recovery: {stopped}")),
        }
        for kept in [0, u64::MAX] {
            come_back(&second, kept, LastWrite::Whole).map_err(|stopped| {
                format!("crash at call {nth} of the recovery, {kept:#b} kept: {stopped}")
            })?;
        }
    }
    Ok(0)
}

/// The subsets of `count` changes that are tried, each with what happens to the last kept write.
fn parts(count: usize) -> Vec<(u64, LastWrite)> {
    let all = 1_u64.checked_shl(count as u32).map_or(u64::MAX, |bit| bit - 1);
    let subsets: Vec<u64> = if count <= SUBSETS_OF {
        (0..=all).collect()
    } else {
        let each = (0..count.min(64)).map(|at| 1_u64 << at);
        let beginnings = each.clone().map(|bit| bit - 1);
        beginnings.chain(each.clone()).chain(each.map(|bit| all & !bit)).chain([all]).collect()
    };
    let whole = subsets.iter().map(|&kept| (kept, LastWrite::Whole));
    let torn = subsets.iter().filter(|&&kept| kept > 0 && (count <= TORN_OF || kept == all));
    let torn = torn.flat_map(|&kept| [(kept, LastWrite::Torn(512)), (kept, LastWrite::Torn(usize::MAX))]);
    whole.chain(torn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sequence_and_every_part_comes_up_once() {
        let mut sequences: Vec<_> = (0..64).map(|number| format!("{:?}", operations_of(number, 2))).collect();
        sequences.sort();
        sequences.dedup();
        assert_eq!(sequences.len(), 64);
        assert_eq!(parts(0), [(0, LastWrite::Whole)]);
        assert_eq!(parts(2).len(), 4 + 2 * 3);
        assert_eq!(parts(8).len(), 256 + 2);
        assert_eq!(parts(20).len(), 61 + 2);
    }

    #[test]
    fn one_operation_stands_every_crash() {
        let said = all(1, |_| {}).expect("no promise is broken");
        assert!(said.starts_with("4 sequences"), "{said}");
    }
}
