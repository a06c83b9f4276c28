//! Entries that are due.

use super::id::Place;

/// An entry that is due.
#[derive(Clone, Copy)]
pub(super) struct Due {
    /// The number of the insertion, as one word.
    pub(super) key: u64,
    pub(super) place: Place,
}
