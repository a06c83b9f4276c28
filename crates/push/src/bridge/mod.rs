//! The bridge that delays messages of RabbitMQ. An exchange of the type `x-delayed-message` becomes a fanout exchange with one queue, and
//! the bridge moves the messages from there into a queue of Tickwheel. When a message is due, the target of that queue publishes it to the
//! exchange behind.
//!
//! ```text
//! publisher -> orders (fanout) -> tickwheel.orders -> bridge -> Tickwheel -> orders.due (direct, topic, ...) -> queues of the consumers
//!                                                       \--> tickwheel.orders.refused
//! ```
//!
//! - `plan`: the names, and their declaration.
//! - `request`: what a message asks for.
//! - `store`: where the messages are kept.
//! - `session`: the work on one connection.
//! - `running`: the bridge.
//! - `figures`: the counts.

mod figures;
mod plan;
mod request;
mod running;
mod session;
mod store;

pub use figures::{BridgeCounts, BridgeFigures};
pub use plan::{BridgePlan, BridgePlanError, ExchangeType, KeySource};
pub use request::{CANCEL_HEADER, Delayed, KEY_HEADER};
pub use running::{Bridge, BridgeError};
pub use store::{Keeping, Kept, QueueStore, Store};
