//! Tasks: the calls that put, change, list and end them, and their answers.

pub(crate) mod batch;
pub(crate) mod bulk;
pub(crate) mod cancel;
pub(crate) mod dead;
pub(crate) mod dead_groups;
pub(crate) mod envelope;
pub(crate) mod filter;
pub(crate) mod forecast;
pub(crate) mod put;
pub(crate) mod queries;
pub(crate) mod story;
pub(crate) mod task;
pub(crate) mod terms;
