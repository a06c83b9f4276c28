//! The tests of the store, from outside of the crate.

mod disk;
mod disk_store;
mod doctor;
mod golden;
mod histogram;
mod io;
mod newest;
mod refusals;
mod salvage;
mod segments;
