//! Planted bugs: the simulator switches on one of them, and a run has to find it.
//!
//! A build without `--cfg tickwheel_sim` has none of these bugs: [`is`] is constantly false there, and the compiler removes the code of the
//! bugs.

/// The selected bug: 0 for none, `n` for the bug `NAMES[n - 1]`.
#[cfg(tickwheel_sim)]
static SELECTED: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

/// The names of the bugs of this crate.
#[cfg(tickwheel_sim)]
pub const NAMES: [&str; 2] = ["early-one-tick-at-cascade", "u32-deadline-wrap"];

/// Switches on one bug until the process ends. The name of a bug of another crate has no effect here.
#[cfg(tickwheel_sim)]
pub fn select(name: &str) {
    let number = NAMES.iter().position(|known| *known == name).map_or(0, |at| at + 1);
    SELECTED.store(number, core::sync::atomic::Ordering::Relaxed);
}

/// Whether the bug `name` is switched on.
#[cfg(tickwheel_sim)]
pub(crate) fn is(name: &str) -> bool {
    let number = SELECTED.load(core::sync::atomic::Ordering::Relaxed);
    number > 0 && NAMES.get(number - 1).is_some_and(|known| *known == name)
}

/// Whether the bug `name` is switched on.
#[cfg(not(tickwheel_sim))]
#[inline(always)]
pub(crate) const fn is(_name: &str) -> bool {
    false
}
