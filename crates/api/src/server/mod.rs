//! The server itself: its health, its clock, its jobs, its events, and who asks it.

pub(crate) mod backup;
pub(crate) mod clock;
pub(crate) mod drain;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod index;
pub(crate) mod job;
pub(crate) mod whoami;
