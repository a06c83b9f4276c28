//! A picture of the engine's wheel.

use tickwheel_core::Ring;

use crate::time::Timestamp;

/// A picture of the wheel that holds the scheduled and dead tasks that are whole in memory. A tick is a millisecond.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WheelView {
    /// The wall-clock time of the engine. After the wall clock has stepped back, the hands of the rings are ahead of `now`.
    pub now: Timestamp,
    /// Number of tasks in the wheel, including dead tasks that wait to be forgotten. Tasks that are due after the end of the turn of the
    /// last ring are in no slot.
    pub tasks: u64,
    /// The rings, from the finest to the coarsest.
    pub rings: [Ring; 4],
}
