//! Panics of scripts, where the standard library is available. The unit tests of the wheel include
//! this file too. Each includer defines `is_on_purpose`, because its path differs.

use std::boxed::Box;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use super::is_on_purpose;

/// Bodies that fail on purpose do not fill the terminal.
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

/// Calls a closure and says whether it panicked on purpose. Any other panic goes on.
pub(crate) fn catch(body: &mut dyn FnMut()) -> bool {
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(()) => false,
        Err(payload) if is_on_purpose(payload.as_ref()) => true,
        Err(payload) => panic::resume_unwind(payload),
    }
}
