//! A filled store under measurement.

use std::path::Path;
use std::time::Duration;

use tickwheel_engine::Timestamp;

use super::record::{Records, wall};

/// A filled store and what the workloads have done to it so far.
pub(crate) struct Scene<'a, K> {
    pub(crate) keeper: K,
    pub(crate) records: Records,
    /// Records from here on have not been used.
    pub(crate) next: u64,
    /// Tasks that were pending at the begin.
    pub(crate) n: u64,
    /// How far time was moved.
    pub(crate) moved: Timestamp,
    pub(crate) span: Duration,
    /// Where the store is.
    pub(crate) data: &'a Path,
    /// Where the disk is measured.
    pub(crate) dir: &'a Path,
    /// How fast it was filled.
    pub(crate) filled: f64,
}

impl<K> Scene<'_, K> {
    /// The time of the store: that of the wall, until it is moved.
    pub(crate) fn wall(&self) -> Timestamp {
        self.moved.max(wall())
    }
}
