//! [`Panics`]: panics of operations, kept until all operations were tried.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

/// The first panic of several calls. A panic of one operation must not prevent a check from trying the other operations.
#[derive(Default)]
pub(super) struct Panics(Option<Box<dyn Any + Send>>);

impl Panics {
    /// Calls `call`, and keeps its panic if there is one.
    pub(super) fn catch<R>(&mut self, call: impl FnOnce() -> R) -> Option<R> {
        // The purgatory's own data is consistent whenever it calls an operation. The operation is responsible for its own data.
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(result) => Some(result),
            Err(panic) => {
                match &self.0 {
                    None => self.0 = Some(panic),
                    // Dropping the payload would run code of the operation again.
                    Some(_) => std::mem::forget(panic),
                }
                None
            }
        }
    }

    /// Continues the first panic, if there was one.
    pub(super) fn resume(self) {
        // A panic in a drop while the thread unwinds would end the process. The panic that caused the unwinding is reported already.
        if let Some(panic) = self.0
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}
