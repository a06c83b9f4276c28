//! Bugs put in on purpose, so that the simulator can show that it would find them. Only a build with
//! `--cfg tickwheel_sim` has any of it; in every other build [`is`] is the constant `false`.

/// Whether the bug `name` is switched on.
#[cfg(not(tickwheel_sim))]
#[inline(always)]
pub(crate) const fn is(_name: &str) -> bool {
    false
}

#[cfg(tickwheel_sim)]
static SELECTED: std::sync::OnceLock<String> = std::sync::OnceLock::new();

/// Whether the bug `name` is switched on.
#[cfg(tickwheel_sim)]
pub(crate) fn is(name: &str) -> bool {
    SELECTED.get().is_some_and(|selected| selected == name)
}

/// The names of the bugs of this crate.
#[cfg(tickwheel_sim)]
pub const NAMES: [&str; 35] = [
    "old-instant-fires",
    "lost-wake-up",
    "wall-clock-wait",
    "cancel-after-grant",
    "two-tasks-after-retry",
    "ack-by-old-token",
    "any-ack-of-done",
    "attempt-not-counted",
    "read-past-full",
    "one-beyond-the-limit",
    "pause-forgotten",
    "drain-forgotten",
    "backlog-forgotten",
    "deleted-in-memory-only",
    "parked-for-ever",
    "instant-lost",
    "instant-made-twice",
    "turn-forgotten",
    "pause-outlasts",
    "rate-forgotten",
    "gate-forgotten",
    "start-forgotten",
    "end-forgotten",
    "expiry-forgotten",
    "step-forgotten",
    "row-forgotten",
    "backoff-forgotten",
    "forecast-of-the-past",
    "death-parted-from-attempt",
    "burial-forgotten",
    "run-not-written",
    "lease-ends-before-told",
    "import-of-what-ended",
    "import-beside-what-is-far",
    "job-in-memory-only",
];

/// Switches one bug on for the rest of the process. The first call counts.
#[cfg(tickwheel_sim)]
pub fn select(name: &str) {
    SELECTED.get_or_init(|| name.to_owned());
}
