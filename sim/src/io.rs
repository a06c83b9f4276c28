//! [`SimIo`]: I/O that makes calls of the disk only when the simulator allows it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tickwheel_store::{Completion, Disk, DiskError, Io, Job, Lane};

use crate::disk::SimDisk;
use crate::rng::Rng;

/// The largest number of calls in one poll while the lanes slip.
const SLIP_CALLS_MAX: u64 = 6;

/// Makes the calls of its jobs when it is polled and the switch is on. While the switch is off, commits stay in
/// flight, so other calls, passing time and crashes come in between.
///
/// In some polls the lanes *slip*: a few calls are made, each of a random lane, as with threads and a real disk. A
/// commit may then be half written while a checkpoint goes on, and the other way round. In all other polls the disk
/// does all commits, then all reads, and then one job of the background.
#[derive(Debug)]
pub struct SimIo {
    disk: Option<SimDisk>,
    /// In the order of `LANES`.
    lanes: [VecDeque<Running>; 3],
    switch: Switch,
    slips: Slips,
    /// Whether a call of the last poll lacked a descriptor.
    lacks_descriptor: bool,
}

const LANES: [Lane; 3] = [Lane::Commit, Lane::Read, Lane::Background];

/// How often the lanes slip.
#[derive(Debug)]
pub struct Slips {
    /// Percent of polls in which the lanes slip.
    pub percent: u64,
    /// Draws whether the lanes slip, and the number of calls.
    pub rng: Rng,
}

/// A job, and which of its calls were made.
#[derive(Debug)]
struct Running {
    job: Job,
    made: usize,
    reads: Vec<Vec<u8>>,
}

/// Allows a [`SimIo`] to make calls, or stops it. Clones are the same switch.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<AtomicBool>);

impl Switch {
    /// Allows the disk to work, or stops it.
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }
}

impl SimIo {
    /// I/O without a disk; `start` gives it one.
    #[must_use]
    pub fn new(switch: Switch, slips: Slips) -> Self {
        Self {
            disk: None,
            lanes: [VecDeque::new(), VecDeque::new(), VecDeque::new()],
            switch,
            slips,
            lacks_descriptor: false,
        }
    }

    /// Makes the next call of the first job of a lane. A call that lacks a descriptor is made again in a later poll.
    fn make_one(&mut self, lane: usize, completions: &mut Vec<Completion>) {
        let (Some(disk), Some(running)) = (&mut self.disk, self.lanes[lane].front_mut()) else { return };
        let result = match running.job.calls.get(running.made) {
            Some(call) => call.make(disk, &mut running.reads),
            None => Ok(()),
        };
        if result.as_ref().is_err_and(DiskError::lacks_descriptor) {
            self.lacks_descriptor = true;
            return;
        }
        running.made += 1;
        if result.is_err() || running.made >= running.job.calls.len() {
            let Running { job, reads, .. } = self.lanes[lane].pop_front().expect("it is the one that ran");
            completions.push(Completion { id: job.id, result, reads, free_bytes: disk.free_bytes() });
        }
    }

    /// Makes all calls of the first job of a lane.
    fn finish_one(&mut self, lane: usize, completions: &mut Vec<Completion>) {
        let before = completions.len();
        while completions.len() == before && !self.lanes[lane].is_empty() && !self.lacks_descriptor {
            self.make_one(lane, completions);
        }
    }
}

impl Io<SimDisk> for SimIo {
    fn start(&mut self, disk: SimDisk) {
        self.disk = Some(disk);
    }

    fn submit(&mut self, lane: Lane, job: Job) {
        let at = LANES.iter().position(|known| *known == lane).expect("three lanes");
        self.lanes[at].push_back(Running { job, made: 0, reads: Vec::new() });
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) {
        if !self.switch.0.load(Ordering::Relaxed) {
            return;
        }
        self.lacks_descriptor = false;
        let Slips { percent, rng } = &mut self.slips;
        if *percent > 0 && rng.chance(*percent) {
            for _ in 0..rng.between(1, SLIP_CALLS_MAX) {
                let busy: Vec<usize> =
                    (0..LANES.len()).filter(|lane| !self.lanes[*lane].is_empty()).collect();
                if busy.is_empty() {
                    return;
                }
                let lane = busy[self.slips.rng.index(busy.len())];
                self.make_one(lane, completions);
            }
            return;
        }
        for lane in [0, 1] {
            while !self.lanes[lane].is_empty() && !self.lacks_descriptor {
                self.finish_one(lane, completions);
            }
        }
        self.finish_one(2, completions);
    }

    fn lacks_descriptor(&self) -> bool {
        self.lacks_descriptor
    }
}
