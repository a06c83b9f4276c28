//! Constants of one open store.

use crate::checksum::Seeds;
use crate::options::StoreOptions;

/// What a store is opened with. None of it changes while it is open.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) options: StoreOptions,
    /// The secret of the directory.
    pub(super) secret: [u8; 16],
    /// The seeds of its checksums, made from the secret.
    pub(super) seeds: Seeds,
}
