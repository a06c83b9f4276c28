//! The constants of one open store.

use crate::checksum::Seeds;
use crate::options::StoreOptions;

/// The options, the secret and the seeds of a store. None of them changes while the store is open.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) options: StoreOptions,
    /// The secret of the directory.
    pub(super) secret: [u8; 16],
    /// The seeds of the checksums in the directory, made from the secret.
    pub(super) seeds: Seeds,
}
