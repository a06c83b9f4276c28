//! Keeps the tasks of Tickwheel in PostgreSQL.
//!
//! [`PostgresStore`] keeps the tasks of one shard behind [`ShardStore`](tickwheel_engine::ShardStore). A process has one [`Node`]: it beats in
//! the database, so that no other process takes its shards, and its lanes commit the batches of all shards. Below is the trait
//! [`Database`](database::Database), which PostgreSQL and the database of the simulator implement.

mod batch;
mod beats;
mod clock;
pub mod counts;
pub mod database;
mod inbox;
mod inbox_row;
mod known_keys;
mod lane;
mod mailbox;
mod node;
mod open;
mod owned;
mod polls;
mod pulse;
mod reader;
mod run;
mod shard_inbox;
mod sql;
mod store;
mod wire;

pub use batch::OutOfRange;
pub use beats::Beats;
pub use clock::{ClockAnswer, DatabaseClock};
pub use inbox::Inbox;
pub use inbox_row::PayloadCheck;
pub use lane::{Job, Lane, Outcome, Rest};
pub use mailbox::Mailbox;
pub use node::{BootClock, Event, News, Node, ReadJob};
pub use open::{OpenShard, PostgresOptions};
pub use polls::Polls;
pub use pulse::Pulse;
pub use reader::Reader;
pub use run::{POSTGRES_THREADS, Threads};
pub use sql::{
    Cluster, ClusterClock, Found, Plan, Postgres, PostgresSession, SHARDS_DEFAULT, SetupError, statements,
    with_database, without_password,
};
pub use store::PostgresStore;
