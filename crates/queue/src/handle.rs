//! [`Handle`]: the data that all clones of a queue share, and the end of its threads.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, ThreadId};

use tickwheel_store::Root;

use crate::clock::time::Time;
use crate::opening::options::Opened;
use crate::panics::Panics;
use crate::spanning::shards::Shards;

/// The root of the directories of several shards, locked until the queue has closed. The threads of the queue have it, too: if the queue is
/// closed on one of them, no one waits for their end, and the root is locked until the last of them has ended.
pub(crate) type LockedRoot = Arc<Mutex<Option<Root>>>;

/// The data that all clones share. When the last clone is dropped, so is this value.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) shards: Shards,
    pub(crate) time: Arc<Mutex<Time>>,
    pub(crate) panics: Panics,
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
    /// The threads of the queue. A thread cannot wait for its own end, and they do not wait for each other.
    pub(crate) own: Box<[ThreadId]>,
    pub(crate) root: LockedRoot,
    pub(crate) opened: Opened,
}

impl Handle {
    /// Stops all shards, and waits until their threads have ended. On one of these threads, it does not wait.
    pub(crate) fn close(&self) {
        self.shards.stop();
        // The code of the program closes the queue on a thread of the queue: a listener to notices, or a waker. The thread stops after it.
        if self.own.contains(&std::thread::current().id()) {
            return;
        }
        // The first call has this lock until the threads have ended, so a second call waits for the first one.
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // If the thread panicked, the panic hook has reported the panic. There is nothing left to close.
            let _ = thread.join();
        }
        drop(self.root.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}
