//! The verbs: the operations of owners and workers on tasks. Each verb is decided in one step, between the changes of other steps.
//!
//! A verb works with [`Tasks`](crate::tasks::Tasks). If a verb needs a look-up, the look-up is made before the verb is decided.

mod admit;
mod by_id;
mod by_key;
mod cancel;
mod get;
mod import;
mod import_schedule;
mod list;
mod occurrence;
mod patch;
mod put;
mod redrive;
mod stop;
mod take_row;
mod tokens;
