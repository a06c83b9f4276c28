//! Panics: those that a script asks for are caught, all others are findings.

use std::panic::{self, AssertUnwindSafe};

use tickwheel_core::conformance::script::is_on_purpose;

/// Calls a closure and says whether it panicked, as [`replay`] wants it. A panic that is not the
/// script's own goes on.
///
/// # Panics
/// If the closure does, and not on purpose.
///
/// [`replay`]: tickwheel_core::conformance::script::replay
pub fn catch(body: &mut dyn FnMut()) -> bool {
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(()) => false,
        Err(payload) if is_on_purpose(payload.as_ref()) => true,
        Err(payload) => panic::resume_unwind(payload),
    }
}

/// From now on the script's own panics are silent, and any other one ends the process after it was
/// reported. A fuzzer's hook ends it at each, before anybody could catch it.
pub fn abort_at_a_finding() {
    let _the_fuzzers = panic::take_hook();
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !is_on_purpose(info.payload()) {
            report(info);
            std::process::abort();
        }
    }));
}

#[cfg(test)]
mod tests {
    use tickwheel_core::conformance::script::ON_PURPOSE;

    use super::*;

    #[test]
    fn only_the_scripts_own_panic_is_caught() {
        assert!(!catch(&mut || ()));
        assert!(catch(&mut || panic!("{ON_PURPOSE}")));
        let strange = panic::catch_unwind(|| catch(&mut || panic!("index out of bounds")));
        assert!(strange.is_err());
    }
}
