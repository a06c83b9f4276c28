//! Exports and imports: files of lines on one side, a server or a data directory on the other.

pub(crate) mod blocks;
pub(crate) mod directory;
pub(crate) mod progress;
pub(crate) mod reading;
pub(crate) mod unfinished;
pub(crate) mod way_on;
