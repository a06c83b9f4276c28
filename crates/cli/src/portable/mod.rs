//! Exports and imports: files of lines on one side; a server, a data directory or a database on the other.

pub(crate) mod blocks;
pub(crate) mod database;
pub(crate) mod directory;
pub(crate) mod pages;
pub(crate) mod progress;
pub(crate) mod reading;
pub(crate) mod unfinished;
pub(crate) mod way_on;
