//! A third door, for tests only: a few commands in the style of Redis. It shows the cost of a door: this folder, and
//! one line in [`plans`](super::plans) if it were released.
//!
//! ```text
//! PING                                 -> +PONG
//! AUTH token                           -> +OK, or -ERR
//! ADDJOB queue key body delay_ms       -> $id
//! GETJOB queue wait_ms                 -> *3 key, token, body, or *-1 if there is none
//! ACKJOB queue token                   -> :1, or :0 if the lease has ended
//! ```

mod door;
mod tests;
