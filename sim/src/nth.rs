//! For each kind of call of the disk: the first call fails, then in a new play the second, and so on, until a whole
//! play passes without a fault.

use tickwheel_store::DiskOp;

use crate::disk::{Fault, LastWrite, SimDisk};
use crate::play::{Operation, Play, Stopped};

/// The kinds of calls, each with a fault. Calls that only read names or lengths get no fault that loses data.
const KINDS: [(DiskOp, Fault); 15] = [
    (DiskOp::CreateDir, Fault::Error),
    (DiskOp::Create, Fault::Error),
    (DiskOp::Create, Fault::NoDescriptor),
    (DiskOp::Write, Fault::Error),
    (DiskOp::Write, Fault::Full),
    (DiskOp::Sync, Fault::Error),
    (DiskOp::Sync, Fault::LosingSync),
    (DiskOp::SetLen, Fault::Error),
    (DiskOp::Rename, Fault::Error),
    (DiskOp::Remove, Fault::Error),
    (DiskOp::SyncDir, Fault::Error),
    (DiskOp::Open, Fault::Error),
    (DiskOp::Len, Fault::Error),
    (DiskOp::Read, Fault::Error),
    (DiskOp::List, Fault::Error),
];

/// If more calls of one kind than this fail, the search does not end.
const NTH_MAX: u64 = 2_000;

/// Tries all kinds. `tell` gets the progress.
///
/// # Errors
/// The first fault after which a promise is broken, or the server does not start again.
pub fn all(tell: impl Fn(String)) -> Result<String, String> {
    let mut faults = 0;
    for (op, fault) in KINDS {
        let mut nth = 1;
        while fails(op, nth, fault).map_err(|why| format!("{fault:?} at {op} {nth}: {why}"))? {
            nth += 1;
            if nth > NTH_MAX {
                return Err(format!("{fault:?} at {op}: {NTH_MAX} of them, and no end"));
            }
        }
        tell(format!("{fault:?} at {op}: {} calls", nth - 1));
        faults += nth - 1;
    }
    Ok(format!("{faults} faults of {} kinds passed", KINDS.len()))
}

/// Runs one play with one fault. Returns whether the fault happened.
fn fails(op: DiskOp, nth: u64, fault: Fault) -> Result<bool, String> {
    let disk = SimDisk::new();
    disk.fail_nth(op, nth, fault);
    let mut play = Play::new(disk.clone());
    let mut lives = 0;
    let mut left: Vec<Operation> = script();
    left.reverse();
    let mut up = false;
    // Two recoveries inside of the play, so that their reads fail, too.
    let restarts = [left.len() / 3, 2 * left.len() / 3];
    loop {
        if up && restarts.contains(&left.len()) {
            left.pop();
            up = false;
            let awaits = disk.awaits_nth();
            restart(&mut play, left.len() as u64)?;
            if awaits {
                // A power cut removes all planned faults, so the fault is planned again.
                disk.forget_faults();
                disk.fail_nth(op, nth - disk.calls_of(op), fault);
            }
        }
        let came = match left.last() {
            _ if !up => play.start().map(|()| up = true),
            Some(&operation) => {
                left.pop();
                play.act(operation).map(|_| ())
            }
            None => break,
        };
        match came {
            Ok(()) => {}
            Err(Stopped::Failed(_)) if !disk.awaits_nth() && lives < 3 => {
                lives += 1;
                up = false;
                restart(&mut play, lives)?;
            }
            Err(stopped) => return Err(format!("{stopped}")),
        }
    }
    // One more recovery at the end, so that the effect of a fault in the last calls is found as well.
    let happened = !disk.awaits_nth();
    disk.forget_faults();
    restart(&mut play, 1)?;
    play.start().and_then(|()| play.finish()).map_err(|stopped| format!("at the end: {stopped}"))?;
    Ok(happened)
}

/// Ends the process. If `lives` is odd, the machine loses power too, and all unsynced changes are lost.
fn restart(play: &mut Play, lives: u64) -> Result<(), String> {
    play.kill().map_err(|violation| format!("{violation:?}"))?;
    if lives % 2 == 1 {
        play.disk.crash_keeping(0, LastWrite::Whole);
    }
    Ok(())
}

/// The operations of the play, in an order in which each has something to do, with background work between them.
fn script() -> Vec<Operation> {
    use Operation::{Ack, Cancel, Checkpoint, Lease, Put, PutFar, Reschedule, Wake};
    let round = [
        Put, Checkpoint, Wake, Lease, Ack, PutFar, Checkpoint, Put, Reschedule, Checkpoint, Cancel, PutFar,
        Reschedule, Checkpoint, Wake, Lease, Checkpoint, Put, Wake, Lease, Ack, PutFar, Cancel, Checkpoint,
    ];
    round.iter().cycle().take(3 * round.len()).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_faults_of_a_kind_are_stood() {
        for (op, fault) in [(DiskOp::Sync, Fault::LosingSync), (DiskOp::Rename, Fault::Error)] {
            for nth in [1, 2, 3, 7] {
                fails(op, nth, fault).unwrap_or_else(|why| panic!("{fault:?} at {op} {nth}: {why}"));
            }
        }
    }
}
