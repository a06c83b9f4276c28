//! The tests of the timer, the delay queue and the purgatory, by their public API. Under shuttle, which is another build, only the module of
//! that name is there. What reads the memory of its process is in programs of its own, `timer_memory` and `delay_queue_memory`.

#[cfg(not(tickwheel_shuttle))]
mod clocks;
#[cfg(not(tickwheel_shuttle))]
mod delay_queue;
#[cfg(not(tickwheel_shuttle))]
mod purgatory;
#[cfg(tickwheel_shuttle)]
mod shuttle;
#[cfg(not(tickwheel_shuttle))]
mod timer;
