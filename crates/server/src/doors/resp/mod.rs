//! A third door, for tests only: a few commands in the style of Redis. It shows what a door needs: this folder. A
//! released door would also need one line in [`plans`](super::plans).
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
