//! [`InUse`]: keeps a queue in existence.

use tickwheel_engine::QueueName;

use crate::message::{Mailbox, Message};

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
        let _ = mailbox.send(Message::Use(name.clone()));
        Self { name, mailbox }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let _ = self.mailbox.send(Message::Leave(self.name.clone()));
    }
}
