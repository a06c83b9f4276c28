//! Bugs that the simulator plants at the seams of the product, where no line of the product is needed for them.

use std::sync::OnceLock;

/// The names of these bugs.
#[cfg(tickwheel_sim)]
pub(crate) const NAMES: [&str; 1] = [
    // The driver gives out answers of a shard that it may not own any more.
    "answer-after-ownership",
];

static SELECTED: OnceLock<&'static str> = OnceLock::new();

/// Whether the bug `name` is switched on.
pub(crate) fn is(name: &str) -> bool {
    SELECTED.get().is_some_and(|selected| *selected == name)
}

/// Switches one bug on for the rest of the process. The first call counts.
#[cfg(tickwheel_sim)]
pub(crate) fn select(name: &'static str) {
    SELECTED.get_or_init(|| name);
}
