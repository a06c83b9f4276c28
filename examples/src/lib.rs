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
//! - `shop` and `worker`: the programs of `docs/tutorials/rust.md`. The test of the pages runs them.
//! - `orders_to_ndjson`: a shop's orders as operations for `tickwheel replay`.
//!
//! With tasks in PostgreSQL:
//! - `orders_in_postgres`: an order and its close in one transaction of the shop.
//!
//! With the durable queue and a target, which gets each order when it is due. Each example reads the orders on the other side, too, and
//! needs the broker of its name:
//! - `push_webhook`: an HTTP receiver that verifies signatures; it is part of the program.
//! - `push_kafka`, `push_rabbitmq`, `push_nats`, `push_redis` and `push_beanstalkd`: a topic, an exchange, a stream of JetStream, a stream of
//!   Redis, and a tube.
//!
//! Over HTTP, with a server in this process on a virtual clock. Each of these stories is told by a shell
//! script and by a Python program, too, in `examples/http`, and the tests compare the three.
//! - `close_unpaid_orders`: closed after 30 minutes unless paid before, and payments that come too late.
//! - `confirm_receipts`: confirmed after 15 days, earlier, or later once.
//! - `switch_prices`: a price plan as one task, replaced as a whole, cancelled as a whole.
//! - `snooze_reminders`: a reminder that is snoozed and put off, and one reminder for many edits.
//! - `download_centre`: 2 exports at once and 1 of each user, the others wait their turn.
//! - `retry_with_backoff`: work that fails, is given up, looked at and redriven.

pub mod broker;
pub mod cron_like;
pub mod expiring_cache;
pub mod fetch_min_bytes;
pub mod group_join;
pub mod heartbeat_sessions;
pub mod http_story;
pub mod idle_connections;
pub mod orders;
pub mod produce_acks;
pub mod pushed_orders;
pub mod rpc_timeouts;
pub mod story;
