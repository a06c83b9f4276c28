//! Tests of the delay queue by its public API: D1 to D12, a model, and many threads.

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
