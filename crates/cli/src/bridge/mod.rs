//! The bridge from RabbitMQ as a command: it runs until a signal stops it.
//!
//! - `address`: the URL of the broker.
//! - `keeper`: where the messages wait: a directory of this process, or a server.
//! - `server_store`: the calls to a server.
//! - `watched`: why messages are not kept now.
//! - `progress`: the counts, for people.
//! - `refusal`: advice for a broker that refuses the declares.
//! - `migration`: the steps that give the bindings of the old exchange to the exchange of the bridge.
//! - `management`: the calls to the management API of the broker, which the migration reads and changes.
//! - `management_url`: the address of this API.

mod address;
mod keeper;
mod management;
mod management_url;
mod migration;
mod progress;
mod refusal;
mod server_store;
mod watched;

pub(crate) use address::Address;
pub(crate) use keeper::Keeper;
pub(crate) use management::Management;
pub(crate) use management_url::ManagementUrl;
pub(crate) use migration::{Migration, Names, Step};
pub(crate) use progress::Progress;
pub(crate) use refusal::advice;
