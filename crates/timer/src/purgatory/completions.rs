//! [`complete`]: tells operations that they have ended, one after the other on each thread.
//!
//! A completion may check keys, and so end further operations. They are told when the first completion has returned. So a chain of
//! completions uses one stack frame, however long it is.
//!
//! Ground rule: the list of a thread is not borrowed while a method of an operation runs.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use super::operation::Operation;
use super::panics::Panics;
use crate::sync::thread_local;

/// An operation that has ended and was not told.
struct Ended {
    operation: Arc<dyn Operation>,
    expired: bool,
}

thread_local! {
    /// The operations that ended within the completion that runs on this thread; `None` if none runs.
    static ENDED: RefCell<Option<VecDeque<Ended>>> = const { RefCell::new(None) };
}

/// Tells an operation that it has ended. Within another completion on this thread, the operation is told after that one.
pub(super) fn complete<O: Operation>(operation: &Arc<O>, expired: bool, panics: &mut Panics) {
    let later = ENDED.try_with(|ended| {
        let mut ended = ended.borrow_mut();
        match &mut *ended {
            Some(list) => {
                list.push_back(Ended { operation: Arc::clone(operation) as Arc<dyn Operation>, expired });
                true
            }
            None => {
                *ended = Some(VecDeque::new());
                false
            }
        }
    });
    match later {
        Ok(true) => {}
        Ok(false) => {
            tell(&**operation, expired, panics);
            while let Some(Ended { operation, expired }) = next() {
                tell(&*operation, expired, panics);
                // The last reference may be this one, and the drop of the operation is its own code.
                panics.catch(|| drop(operation));
            }
        }
        // The thread is ending and has no list any more.
        Err(_) => tell(&**operation, expired, panics),
    }
}

/// Takes the next operation from the list. An empty list is removed, because no completion runs any more.
fn next() -> Option<Ended> {
    ENDED.with(|ended| {
        let mut ended = ended.borrow_mut();
        let first = ended.as_mut().and_then(VecDeque::pop_front);
        if first.is_none() {
            *ended = None;
        }
        first
    })
}

fn tell(operation: &dyn Operation, expired: bool, panics: &mut Panics) {
    if expired {
        panics.catch(|| operation.on_expire());
    }
    panics.catch(|| operation.on_complete());
}
