//! Jobs: work that goes on after its call was answered, and after a restart.

pub(crate) mod bulk;
pub(crate) mod job;
pub(crate) mod keeper;
pub(crate) mod work;
