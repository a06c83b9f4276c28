//! The timer, behaviour by behaviour, on clocks that the tests move. A few tests use the system's clock and wait for
//! events.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap is a failed test; clippy sees no test in the functions that tests share"
)]

mod accounting;
mod cancel;
mod driver;
mod futures;
mod limits;
mod periodic;
mod queued;
mod scheduling;
mod shutdown;
mod stage;
