//! The programs of the textbook in `docs/learn`: for each chapter the worked table of its page, and the costs on this machine.
//!
//! The structures are those of `tickwheel-core`, of the package `tickwheel` and of `tickwheel-queue`. Only [`rocketmq`] brings its own,
//! because it shows what Tickwheel does not do.

pub mod chapter;
pub mod cost;
pub mod disk;
pub mod hashed;
pub mod heap;
pub mod hierarchical;
pub mod kafka;
pub mod list;
pub mod purgatory;
pub mod rocketmq;
pub mod sheet;
pub mod simple;
pub mod tasks;
