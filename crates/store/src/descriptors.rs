//! The file descriptors that a process sets aside for its stores.
//!
//! A process has a limited number of descriptors, and connections may use up all of them. Then a store could not open its next file. So
//! the stores of a process hold descriptors that they do not need, and give one up for each file that they could not open otherwise.

use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// The most descriptors that are set aside in one process.
const KEPT_MAX: usize = 64;
/// At most one of this many descriptors of the process is set aside.
const KEPT_SHARE: u64 = 8;

/// The descriptors that are set aside. The files behind them are never read.
static KEPT: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Sets descriptors aside again, as many as the process gets now. Cost: nothing but a lock if none was given up.
pub(crate) fn keep() {
    let mut kept = kept();
    while kept.len() < wanted() {
        // Without a descriptor, a later call goes on.
        let Ok(file) = File::open("/dev/null") else { return };
        kept.push(file);
    }
}

/// Gives up one descriptor. Returns whether there was one.
pub(crate) fn give_up() -> bool {
    kept().pop().is_some()
}

/// Whether a call that makes a descriptor failed because the process or the system has none left. Such a call has done nothing.
#[must_use]
pub fn is_lack_of_descriptors(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    number == Some(Errno::MFILE.raw_os_error()) || number == Some(Errno::NFILE.raw_os_error())
}

/// Returns how many descriptors the stores of a process set aside, if it may have `limit` of them.
#[must_use]
pub fn descriptors_kept(limit: u64) -> usize {
    usize::try_from(limit / KEPT_SHARE).unwrap_or(usize::MAX).min(KEPT_MAX)
}

fn wanted() -> usize {
    descriptors_kept(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
}

fn kept() -> MutexGuard<'static, Vec<File>> {
    // Each change is one step, so that a panic leaves nothing half done.
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}
