//! [`Fiber`]: blocking code that runs one part at a time, in simulated time.
//!
//! Each fiber has a thread, but only one thread runs at a time: the driver hands the turn to a fiber and waits until the fiber sleeps or ends.
//! So a run is the same each time, and code that blocks can be stopped and killed in the middle of a call.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// The reason why a fiber gave its turn back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Yielded {
    /// The fiber sleeps for this time (ns).
    Sleeps(u64),
    /// The fiber waits for work; `Some`: for at most this time (ns).
    Waits(Option<u64>),
    /// The code has returned; `Err`: it panicked, with these words.
    Ended(Result<(), String>),
}

/// Blocking code that runs when the driver says so.
#[derive(Debug)]
pub struct Fiber {
    resume: SyncSender<Resume>,
    yielded: Receiver<Yielded>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Resume {
    GoOn,
    /// The process of the fiber was killed.
    End,
}

/// The payload of the unwinding that ends a killed fiber.
struct Killed;

thread_local! {
    static HERE: RefCell<Option<(SyncSender<Yielded>, Receiver<Resume>)>> = const { RefCell::new(None) };
}

impl Fiber {
    /// Makes a fiber. The code begins with the first [`resume`](Self::resume).
    ///
    /// # Panics
    /// If the system has no thread left.
    #[must_use]
    pub fn new(code: impl FnOnce() + Send + 'static) -> Self {
        let (resume, resumed) = sync_channel(1);
        let (yields, yielded) = sync_channel(1);
        let body = move || {
            if resumed.recv() != Ok(Resume::GoOn) {
                return;
            }
            HERE.set(Some((yields.clone(), resumed)));
            let ended = catch_unwind(AssertUnwindSafe(code));
            HERE.set(None);
            let ended = match ended {
                Err(panic) if !panic.is::<Killed>() => Err(words(&*panic)),
                Ok(()) | Err(_) => Ok(()),
            };
            let _killed = yields.send(Yielded::Ended(ended));
        };
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(body).expect("a thread");
        Self { resume, yielded, thread: Some(thread) }
    }

    /// Lets the fiber run until it sleeps, waits or ends.
    ///
    /// # Panics
    /// If the fiber has ended.
    #[must_use]
    pub fn resume(&self) -> Yielded {
        self.resume.send(Resume::GoOn).expect("the fiber has not ended");
        self.yielded.recv().expect("a fiber yields or ends")
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        let _ended = self.resume.send(Resume::End);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// Lets this time pass, if the caller is in a fiber. Returns whether it is.
pub fn sleep(ns: u64) -> bool {
    give_back(Yielded::Sleeps(ns))
}

/// Waits until the driver has work for this fiber, or for at most this time (ns), if the caller is in a fiber. Returns whether it is.
pub fn wait(limit_ns: Option<u64>) -> bool {
    give_back(Yielded::Waits(limit_ns))
}

fn give_back(yielded: Yielded) -> bool {
    let resumed = HERE.with_borrow(|here| {
        let (yields, resumed) = here.as_ref()?;
        let _killed = yields.send(yielded);
        Some(resumed.recv().unwrap_or(Resume::End))
    });
    if resumed == Some(Resume::End) {
        // No code of a killed process runs any more. `resume_unwind` prints nothing.
        resume_unwind(Box::new(Killed));
    }
    resumed.is_some()
}

/// Returns the words of a panic.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_else(|| "without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn fibers_take_turns_and_can_be_killed() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let fiber = |name: &'static str| {
            let said = Arc::clone(&said);
            Fiber::new(move || {
                for n in 0..2 {
                    said.lock().expect("no panic").push((name, n));
                    assert!(sleep(n + 1));
                }
                panic!("the end of {name}");
            })
        };
        let (a, b) = (fiber("a"), fiber("b"));
        assert_eq!(a.resume(), Yielded::Sleeps(1));
        assert_eq!(b.resume(), Yielded::Sleeps(1));
        assert_eq!(b.resume(), Yielded::Sleeps(2));
        drop(b);
        assert_eq!(a.resume(), Yielded::Sleeps(2));
        assert_eq!(a.resume(), Yielded::Ended(Err("the end of a".to_owned())));
        assert_eq!(*said.lock().expect("no panic"), [("a", 0), ("b", 0), ("b", 1), ("a", 1)]);
        assert!(!sleep(1) && !wait(None), "no fiber runs this test");
    }
}
