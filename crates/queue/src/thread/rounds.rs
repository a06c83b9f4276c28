//! [`Rounds`]: the waits of a lease call that spans several shards.

use std::sync::Mutex;

use tickwheel_engine::CallId;

use super::mailbox::{Mailbox, Signal};

/// The waits of one lease call that are under way, so that they can be ended together.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    waits: Mutex<Waits>,
}

#[derive(Debug, Default)]
struct Waits {
    under_way: Vec<(Mailbox, CallId)>,
    /// Whether the caller does not wait any more. A wait that begins later ends at once.
    is_over: bool,
}

impl Rounds {
    /// Notes that a shard was asked to wait.
    pub(crate) fn began(&self, mailbox: &Mailbox, call: CallId) {
        let mut waits = self.waits.lock().expect("no thread panics while it holds the waits");
        if waits.is_over {
            let _gone = mailbox.signal(Signal::EndWait(call));
        } else {
            waits.under_way.push((mailbox.clone(), call));
        }
    }

    /// Whether the caller does not wait any more.
    pub(crate) fn is_over(&self) -> bool {
        self.waits.lock().expect("no thread panics while it holds the waits").is_over
    }

    /// Ends the waits that are under way, and those that begin later.
    pub(crate) fn end(&self) {
        let mut waits = self.waits.lock().expect("no thread panics while it holds the waits");
        waits.is_over = true;
        for (mailbox, call) in waits.under_way.drain(..) {
            // The shard thread may have ended. Then the wait has ended too.
            let _gone = mailbox.signal(Signal::EndWait(call));
        }
    }
}
