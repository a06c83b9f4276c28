//! The tests of the queue, from outside of the crate.

mod backup;
mod damage;
mod embedded;
mod inbox;
mod lost_shard;
mod notices;
mod ownership;
mod panics;
mod shards;
mod shards_on_disk;
mod shards_salvaged;
mod stamps;
