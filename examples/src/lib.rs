//! Examples of Tickwheel, one feature each. The programs are in `src/bin`; the tests of this package run every one of them.
//!
//! With the timer alone, on a clock that is moved by hand:
//! - `rpc_timeouts`: a table of calls, a timeout for each, more attempts with a pause, late answers dropped.
//! - `idle_connections`: each packet puts the end off.
//! - `expiring_cache`: values with a time to live.
//! - `cron_like`: reports on a grid, a poller with pauses, and a machine that stands still.
//!
//! With the durable queue:
//! - `embedded_crash`: a program that embeds the queue, crashes, and finds every acknowledged task again.
//! - `http_worker`: a server in this process, a task put and worked on over HTTP.
//! - `orders_to_ndjson`: a shop's orders as operations for `tickwheel replay`.

pub mod cron_like;
pub mod expiring_cache;
pub mod idle_connections;
pub mod orders;
pub mod rpc_timeouts;
pub mod story;
