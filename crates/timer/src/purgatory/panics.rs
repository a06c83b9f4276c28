//! [`Panics`]: panics of operations, kept until every operation had its turn.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

/// The first panic of several calls. One operation that panics must not keep a check from the others that wait
/// behind it.
#[derive(Default)]
pub(super) struct Panics(Option<Box<dyn Any + Send>>);

impl Panics {
    /// Calls `call`, and keeps its panic if there is one.
    pub(super) fn catch<R>(&mut self, call: impl FnOnce() -> R) -> Option<R> {
        // The library's own data is consistent whenever it calls an operation. The operation answers for its own
        // data.
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(result) => Some(result),
            Err(panic) => {
                match &self.0 {
                    None => self.0 = Some(panic),
                    // Dropping the payload would run code of an operation once more.
                    Some(_) => std::mem::forget(panic),
                }
                None
            }
        }
    }

    /// Goes on with the first panic, if there was one.
    pub(super) fn resume(self) {
        // A panic out of a drop while the thread unwinds would end the process. The panic for which it unwinds is
        // reported already.
        if let Some(panic) = self.0
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}
