//! Numbers that name a task in memory and a queue inside the engine.

/// The number of a task's entry in memory, valid until the entry leaves memory. [`Residence`](crate::residence::Residence) gives the number
/// out.
pub(crate) type Slot = u32;

/// The number of a queue inside the engine, valid while the engine has the queue. [`Dispatch`](crate::dispatch::Dispatch) gives the number
/// out.
pub(crate) type QueueNo = u32;
