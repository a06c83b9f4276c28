//! [`InUse`]: keeps a queue in existence.

use tickwheel_engine::QueueName;

use super::mailbox::{Mailbox, Signal};

/// Keeps a queue in existence: the queue counts its events even while it has no tasks. A list names the queue only if it asks for queues in
/// use. Dropping this value ends the use.
#[derive(Debug)]
pub struct InUse {
    name: QueueName,
    mailbox: Mailbox,
}

impl InUse {
    /// Tells the shard that the queue is in use.
    pub(crate) fn new(name: QueueName, mailbox: Mailbox) -> Self {
        // The shard thread may have ended. Then there are no queues any more.
        let _ = mailbox.signal(Signal::Use(name.clone()));
        Self { name, mailbox }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let _ = self.mailbox.signal(Signal::Leave(self.name.clone()));
    }
}
