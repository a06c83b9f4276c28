//! The delay queue, from outside. D1 to D12, a model, and crowds of threads.

#![cfg(not(tickwheel_shuttle))]

mod by_hand;
mod crowd;
mod ending;
mod handles;
mod line;
mod model;
mod order;
mod polling;
mod stream;
mod unlocked;
