//! Access to a data directory without a server.

use std::future::Future;
use std::path::Path;

use anyhow::{Context, Result, bail};
use tickwheel_queue::{OpenError, Options, Queue, StoreError, Timestamp, shards_of};

use crate::output::say;

/// The clock for a directory that does not exist yet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Clock {
    Real,
    Virtual,
}

/// Opens the queue of a directory, with the kind of clock that the directory was made with. Fails if a server uses the directory,
/// because the server holds its lock.
///
/// # Errors
/// The directory does not exist, has no tasks of Tickwheel, or cannot be opened.
pub(crate) fn open(directory: &Path) -> Result<Queue> {
    let shown = directory.display();
    // Without this check an empty directory would become a data directory.
    let shards = shards_of(directory).with_context(|| format!("failed to open {shown}"))?;
    if shards.is_none() {
        bail!("{shown} is no data directory of Tickwheel; is it the right path?");
    }
    open_or_make(directory, Clock::Real, None)
}

/// Opens the queue of a directory like [`open`]. A directory that is missing or empty is made with this clock and this number of shards.
///
/// # Errors
/// The directory cannot be opened, or has another number of shards than was asked for.
pub(crate) fn open_or_make(directory: &Path, clock: Clock, shards: Option<u32>) -> Result<Queue> {
    if let Some(warning) = tickwheel_queue::warning_of_others(directory) {
        say(&format!("warning: {warning}"));
    }
    // The directory stores the time of its virtual clock.
    let by = |clock| {
        let options = shards.into_iter().fold(Queue::options(), Options::shards);
        match clock {
            Clock::Real => options,
            Clock::Virtual => options.virtual_clock_at(Timestamp::EPOCH),
        }
    };
    let other = if clock == Clock::Real { Clock::Virtual } else { Clock::Real };
    let opened = match by(clock).open(directory) {
        Err(OpenError::Store(StoreError::WrongClock { .. })) => by(other).open(directory),
        opened => opened,
    };
    opened.with_context(|| format!("failed to open {}", directory.display()))
}

/// Runs a queue operation to its end.
///
/// # Errors
/// The system does not give what the runtime needs.
pub(crate) fn wait_for<T>(work: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.context("failed to start")?.block_on(work))
}
