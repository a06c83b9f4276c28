//! Numbers by which the organs name a task in memory and its queue.

/// The place of a task in memory, valid until the task leaves it. [`Residence`](crate::residence::Residence) gives it out.
pub(crate) type Slot = u32;

/// The number of a queue while it is there. [`Dispatch`](crate::dispatch::Dispatch) gives it out.
pub(crate) type QueueNo = u32;
