//! The rights of tokens.

use crate::declare::choice;

choice! {
    /// A right that a token may have.
    pub enum Right {
        /// Read tasks, queues, schedules and statistics.
        Read = "read",
        /// Put, change and cancel tasks and schedules.
        Produce = "produce",
        /// Lease, ack, nack, extend.
        Consume = "consume",
        /// Configure queues, pause them, redrive, move the clock.
        Admin = "admin",
    }
}
