//! The verbs: the operations of owners and workers on tasks. Each verb is decided in one step, between the changes of other steps.
//!
//! A verb works with [`Tasks`](crate::tasks::Tasks). A verb answers its call, or says which look-up it needs first.

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
mod tokens;
