//! The bridge from RabbitMQ as a command: it runs until a signal stops it.
//!
//! - `address`: the URL of the broker.
//! - `keeper`: where the messages wait: a directory of this process, or a server.
//! - `server_store`: the calls to a server.
//! - `watched`: why messages are not kept now.
//! - `progress`: the counts, for people.
//! - `refusal`: advice for a broker that refuses the declares.

mod address;
mod keeper;
mod progress;
mod refusal;
mod server_store;
mod watched;

pub(crate) use address::Address;
pub(crate) use keeper::Keeper;
pub(crate) use progress::Progress;
pub(crate) use refusal::advice;
