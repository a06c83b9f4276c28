//! Keeps the tasks of Tickwheel in PostgreSQL.
//!
//! [`PostgresStore`] keeps the tasks of one shard behind [`ShardStore`](tickwheel_engine::ShardStore). A process has one [`Node`]: it sends heartbeats to
//! the database, so that no other process takes its shards, and its commit workers commit the batches of all shards. Below is the trait
//! [`Database`](database::Database), which PostgreSQL and the database of the simulator implement.

pub mod database;
mod open;
mod process;
mod shard;
mod sql;
mod wire;

pub use open::{OpenShard, PostgresOptions};
pub use process::clock::{ClockAnswer, DatabaseClock};
pub use process::commit_worker::{CommitWorker, Job, Outcome, Rest};
pub use process::heartbeats::Heartbeats;
pub use process::inbox::Inbox;
pub use process::lease_term::LeaseTerm;
pub use process::mailbox::Mailbox;
pub use process::node::{BootClock, Completions, Event, Node, ReadRequest};
pub use process::polls::Polls;
pub use process::reader::Reader;
pub use process::run::{POSTGRES_THREADS, Threads};
pub use shard::batch::OutOfRange;
pub use shard::counts;
pub use shard::inbox_row::PayloadCheck;
pub use shard::store::PostgresStore;
pub use sql::{
    Cluster, ClusterClock, Found, Plan, Postgres, PostgresSession, SHARDS_DEFAULT, SetupError, statements,
    with_database, without_password,
};
