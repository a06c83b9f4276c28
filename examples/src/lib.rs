//! Examples of Tickwheel, one feature each. The programs are in `src/bin`; the tests of this package run every one of them.
//!
//! - `embedded_crash`: a program that embeds the queue, crashes, and finds every acknowledged task again.
//! - `http_worker`: a server in this process, a task put and worked on over HTTP.
//! - `orders_to_ndjson`: a shop's orders as operations for `tickwheel replay`.

pub mod orders;
