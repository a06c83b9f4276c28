//! The wheel of the machine, as those see it who draw it.

use tickwheel_core::Ring;

use crate::time::Timestamp;

/// The wheel in which the tasks wait that are held whole in memory. A tick is a millisecond.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WheelView {
    /// The time of the wheel.
    pub now: Timestamp,
    /// Number of tasks in the wheel, those among them that are due too late for any ring.
    pub tasks: u64,
    /// The rings, the finest first.
    pub rings: [Ring; 4],
}
