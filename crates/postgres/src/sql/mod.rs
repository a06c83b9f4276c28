//! The schema, and the statements that carry out the operations of the store.

mod commit;
mod connect;
mod databases;
mod inbox;
mod link;
mod nodes;
mod read;
mod session;
mod setup;
mod setup_error;
mod shards;

pub use connect::Postgres;
pub use databases::{with_database, without_password};
pub use session::PostgresSession;
pub use setup::{Cluster, ClusterClock, Found, Plan, SHARDS_DEFAULT, statements};
pub(crate) use setup::{hex, random};
pub use setup_error::SetupError;
