//! The indexes of the tasks that have not ended: the place of a task's record by the task's id, and the ids by a key. Both indexes are in
//! memory.

mod grid;
mod ids;
mod keys;

pub(crate) use grid::{Cell, Grid};
pub(crate) use ids::{Ids, Spot, Whereabouts, hash_id};
pub(crate) use keys::{KeyHash, Keys, Naming, id_of};
