//! Dead tasks, grouped by their causes of death.

pub(crate) mod group;
pub(crate) mod newest;
