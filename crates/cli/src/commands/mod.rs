//! The commands, one file each: its arguments, its help, and what it does.

pub(crate) mod ack;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod extend;
pub(crate) mod forecast;
pub(crate) mod get;
pub(crate) mod jobs;
pub(crate) mod lease;
pub(crate) mod ls;
pub(crate) mod nack;
pub(crate) mod next;
mod payload;
pub(crate) mod put;
pub(crate) mod queues;
pub(crate) mod redrive;
pub(crate) mod replay;
pub(crate) mod restore;
pub(crate) mod schedules;
pub(crate) mod serve;
pub(crate) mod token;
mod tokens;
pub(crate) mod top;
