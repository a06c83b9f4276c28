//! The switch of the planted bugs of this crate. `cargo xtask plant` puts this file into a copy of the crate; the product does not have it.

use core::sync::atomic::{AtomicU64, Ordering};

/// The hash of the selected bug's name; 0 for none.
static SELECTED: AtomicU64 = AtomicU64::new(0);

/// FNV-1a: it is short, and the names are few.
const fn hash(name: &str) -> u64 {
    let (bytes, mut hash, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// Whether the bug `name` is switched on.
pub fn is(name: &str) -> bool {
    SELECTED.load(Ordering::Relaxed) == hash(name)
}

/// Switches one bug on for the rest of the process. A name that is not of this crate has no effect here.
pub fn select(name: &str) {
    SELECTED.store(hash(name), Ordering::Relaxed);
}
