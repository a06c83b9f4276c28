//! [`LockedFile`]: a lock on an open file, for as long as the value lives.

use std::fs::{File, TryLockError};
use std::ops::Deref;

/// An open file with a lock on it. Dropping it releases the lock before it closes the file: a process that is being started has a copy of each
/// open file of its parent until it runs its program, and the copy would keep the lock for that moment.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Locks the file for this process alone.
    ///
    /// # Errors
    /// If another one has a lock on it, or if the file system does not lock it.
    pub(crate) fn exclusive(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self(file))
    }

    /// Locks the file together with others that do this.
    ///
    /// # Errors
    /// If another one has it for itself alone, or if the file system does not lock it.
    pub(crate) fn shared(file: File) -> Result<Self, TryLockError> {
        file.try_lock_shared()?;
        Ok(Self(file))
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing the file releases the lock as well, a moment later.
        drop(self.0.unlock());
    }
}
