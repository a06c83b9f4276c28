//! The parts of the store that a step of a checkpoint uses.

use crate::catalog::Catalog;
use crate::checkpoint::LogEnd;
use crate::checksum::Seeds;
use crate::options::StoreOptions;

/// The parts of the store that a step of a checkpoint uses.
pub(super) struct Context<'a> {
    pub(super) catalog: &'a mut Catalog,
    pub(super) seeds: &'a Seeds,
    pub(super) options: &'a StoreOptions,
    /// The last synced frame of the log, and the latest wall clock.
    pub(super) log: LogEnd,
}
