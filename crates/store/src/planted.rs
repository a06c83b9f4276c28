//! Bugs to be switched on by the simulator, which has to find each of them.
//!
//! A build without `--cfg tickwheel_sim` has none of them: [`is`] is constantly false there and the compiler drops what
//! stands behind it.

#[cfg(tickwheel_sim)]
static SELECTED: std::sync::Mutex<Option<String>> = std::sync::Mutex::new(None);

/// The names of the bugs of this crate.
#[cfg(tickwheel_sim)]
pub const NAMES: [&str; 13] = [
    "reply-before-sync",
    "cancel-forgotten-at-recovery",
    "no-dir-sync",
    "retry-failed-sync",
    "cut-acked-tail",
    "accept-stale-frame",
    "log-freed-before-checkpoint-durable",
    "replay-cancel-before-put",
    "segment-deleted-too-early",
    "tombstone-in-wrong-segment",
    "newest-log-not-missed",
    "log-before-not-missed",
    "census-end-moves",
];

/// Switches one bug on in this whole process, or all off.
///
/// Names of other crates' bugs are taken and have no effect here.
#[cfg(tickwheel_sim)]
pub fn select(name: Option<&str>) {
    let mut selected = SELECTED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *selected = name.map(str::to_owned);
}

#[cfg(tickwheel_sim)]
pub(crate) fn is(name: &str) -> bool {
    debug_assert!(NAMES.contains(&name), "{name} is no planted bug");
    SELECTED.lock().unwrap_or_else(std::sync::PoisonError::into_inner).as_deref() == Some(name)
}

#[cfg(not(tickwheel_sim))]
pub(crate) const fn is(_name: &str) -> bool {
    false
}
