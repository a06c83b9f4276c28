//! Short and long runs of a test.

/// Whether tests that draw, repeat or count run at full length, which takes minutes: `TICKWHEEL_LONG=1`. What they meet by chance is judged
/// in a long run only.
pub fn is_long() -> bool {
    std::env::var_os("TICKWHEEL_LONG").is_some_and(|value| value == "1")
}
