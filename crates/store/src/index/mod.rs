//! Where a task's record is, by the task's id and by its key. Both live in memory and cost little for each task.

mod grid;
mod ids;
mod keys;

pub(crate) use grid::{Cell, Grid};
pub(crate) use ids::{Ids, Spot, Whereabouts, hash_id};
pub(crate) use keys::{KeyHash, Keys, Naming, id_of};
