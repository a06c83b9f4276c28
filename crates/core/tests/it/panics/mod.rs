//! Panics of scripts, for targets with the standard library. The unit tests of the wheel include
//! this file too. Each file that includes it defines `is_on_purpose`, because its path differs.

use std::boxed::Box;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use super::is_on_purpose;

/// The messages of bodies that panic on purpose are not printed.
pub(crate) fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !is_on_purpose(info.payload()) {
                loud(info);
            }
        }));
    });
}

/// Calls a closure and returns whether it panicked on purpose. Any other panic passes through.
pub(crate) fn catch(body: &mut dyn FnMut()) -> bool {
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(()) => false,
        Err(payload) if is_on_purpose(payload.as_ref()) => true,
        Err(payload) => panic::resume_unwind(payload),
    }
}
