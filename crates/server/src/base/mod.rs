//! Helpers for all folders: the stop signal, descriptors, turns during long work, watched files, hex. No helper knows a task or a
//! door.

pub(crate) mod aside;
pub(crate) mod descriptors;
pub(crate) mod hex;
pub(crate) mod others;
pub(crate) mod pieces;
pub(crate) mod queue_pages;
pub(crate) mod stopping;
pub(crate) mod watched;
