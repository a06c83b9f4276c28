//! [`SimIo`]: a disk that works only when the simulator lets it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tickwheel_store::{Completion, InlineIo, Io, Job, Lane};

use crate::disk::SimDisk;

/// Makes the calls of its jobs when it is polled while the gate is open. While it is closed commits stay in flight, and
/// other calls, time and crashes come between.
#[derive(Debug)]
pub struct SimIo {
    inner: InlineIo<SimDisk>,
    gate: Gate,
}

/// Opens and closes a [`SimIo`] from outside.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    /// Lets the disk work, or stops it.
    pub fn set(&self, open: bool) {
        self.0.store(open, Ordering::Relaxed);
    }
}

impl SimIo {
    /// Without a disk yet.
    #[must_use]
    pub fn new(gate: Gate) -> Self {
        Self { inner: InlineIo::new(), gate }
    }
}

impl Io<SimDisk> for SimIo {
    fn start(&mut self, disk: SimDisk) {
        self.inner.start(disk);
    }

    fn submit(&mut self, lane: Lane, job: Job) {
        self.inner.submit(lane, job);
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) {
        if self.gate.0.load(Ordering::Relaxed) {
            self.inner.poll(completions);
        }
    }
}
