//! Subscriptions to the state of the server: it is looked at once for all subscribers with one scope.
//!
//! ```text
//! subscriber ─ subscribe ─▶ its permit; the channel of its scope
//! channel: a task of its own ─ once a second ─▶ look: all queues of the scope, the jobs ─▶ a moment: the data of the events, as JSON
//! wheel: a task of its own ─ four times a second ─▶ the event, as JSON
//! subscriber ◀─ changed ─ the newest moment, and only that: a slow subscriber misses some
//! ```

mod channel;
mod look;
mod moment;
mod wheel;

pub(crate) use channel::{Subscription, Subscriptions};
pub(crate) use moment::{Event, Rows};
