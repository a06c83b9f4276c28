//! [`Book`]: counts how often each value was dropped.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

/// A value that records its own drop in the book.
pub(super) struct Tracked {
    pub(super) id: usize,
    drops: Rc<RefCell<Vec<u32>>>,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.drops.borrow_mut()[self.id] += 1;
    }
}

/// Counts the drops of each value, and makes the values, which are numbered from 0.
pub(super) struct Book(Rc<RefCell<Vec<u32>>>);

impl Book {
    pub(super) fn new() -> Self {
        Self(Rc::default())
    }

    pub(super) fn value(&self) -> Tracked {
        let mut drops = self.0.borrow_mut();
        drops.push(0);
        Tracked { id: drops.len() - 1, drops: Rc::clone(&self.0) }
    }

    pub(super) fn drops(&self, id: usize) -> u32 {
        self.0.borrow()[id]
    }

    pub(super) fn all_dropped_once(&self) -> bool {
        self.0.borrow().iter().all(|&drops| drops == 1)
    }
}
