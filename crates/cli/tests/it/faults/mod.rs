//! The real server with faults from outside. The tests check its promises: acknowledged tasks stay, no task is
//! early, and cancelled or acked tasks do not come back. The page `docs/explanation/faults.md` says how to run more of it.

mod backups;
mod caller;
mod clock;
mod descriptors;
mod full;
mod fuse_disk;
mod history;
mod injection;
mod judge;
mod kill;
mod load;
mod memory;
mod mount;
mod needs;
mod payload;
mod powercut;
mod push;
mod push_order;
mod push_outage;
mod push_phases;
mod readback;
mod receiver;
mod redis;
mod report;
mod server;
mod stage;
mod strace;
mod world;
