//! Examples of Tickwheel, one feature each. The programs are in `src/bin`; the tests of this package run every one of them.
//!
//! With the timer alone, on a clock that is moved by hand:
//! - `rpc_timeouts`: a table of calls, a timeout for each, more attempts with a pause, late answers dropped.
//! - `idle_connections`: each packet puts the end off.
//! - `expiring_cache`: values with a time to live.
//! - `cron_like`: reports on a grid, a poller with pauses, and a machine that stands still.
//!
//! With the purgatory, on such a clock, too:
//! - `heartbeat_sessions`: members that have to show a sign of life.
//! - `produce_acks`: writes that are answered when all replicas have them.
//! - `fetch_min_bytes`: reads that wait until there is enough.
//! - `group_join`: a group that comes together, and does so again.
//!
//! With the durable queue:
//! - `embedded_crash`: a program that embeds the queue, crashes, and finds every acknowledged task again.
//! - `http_worker`: a server in this process, a task put and worked on over HTTP.
//! - `orders_to_ndjson`: a shop's orders as operations for `tickwheel replay`.

pub mod cron_like;
pub mod expiring_cache;
pub mod fetch_min_bytes;
pub mod group_join;
pub mod heartbeat_sessions;
pub mod http_story;
pub mod idle_connections;
pub mod orders;
pub mod produce_acks;
pub mod rpc_timeouts;
pub mod story;
