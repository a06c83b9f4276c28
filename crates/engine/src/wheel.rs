//! A picture of the engine's wheel.

use tickwheel_core::Ring;

use crate::time::Timestamp;

/// The wheel of the tasks that are whole in memory. A tick is a millisecond.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WheelView {
    /// The time of the engine. After the clock has stepped back, the hands are ahead of it.
    pub now: Timestamp,
    /// Number of tasks in the wheel, dead ones that wait to be forgotten among them. Those due after the end of the turn of the last ring are
    /// in no slot.
    pub tasks: u64,
    /// The rings, the finest first.
    pub rings: [Ring; 4],
}
