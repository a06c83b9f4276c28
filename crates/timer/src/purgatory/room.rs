//! [`Room`]: the data that all clones of a purgatory share.
//!
//! Ground rules:
//! - `watchers` has its own locks, none of which is held while an operation is called.
//! - `delayed` is raised before an operation is put on its first key, and lowered when its end is decided.
//! - `closed` is set before a shutdown reads the lists. A submission reads it after it has put its operation on all its lists. The locks of
//!   the lists order these two steps. So either the submission sees `closed`, or the shutdown sees the operation.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use super::delayed::Delayed;
use super::operation::Operation;
use super::panics::Panics;
use super::watchers::Watchers;
use crate::Timer;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

pub(super) struct Room<K, O> {
    timer: Timer,
    watchers: Watchers<K, Delayed<K, O>>,
    submissions: AtomicU64,
    delayed: AtomicUsize,
    closed: AtomicBool,
}

impl<K: Hash + Eq + Send + Sync + 'static, O: Operation> Room<K, O> {
    pub(super) fn new(timer: Timer) -> Self {
        Self {
            timer,
            watchers: Watchers::new(),
            submissions: AtomicU64::new(0),
            delayed: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn timer(&self) -> &Timer {
        &self.timer
    }

    pub(super) fn watched(&self) -> usize {
        self.watchers.watched()
    }

    pub(super) fn delayed(&self) -> usize {
        self.delayed.load(Ordering::Relaxed)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// A new operation with the next number, on no list. It counts as delayed, and the caller has to settle it.
    pub(super) fn admit(self: &Arc<Self>, operation: Arc<O>, keys: Box<[K]>) -> Arc<Delayed<K, O>> {
        let number = self.submissions.fetch_add(1, Ordering::Relaxed);
        self.delayed.fetch_add(1, Ordering::Relaxed);
        Arc::new(Delayed::new(operation, number, keys, self))
    }

    /// Lowers the gauge after the end of an admitted operation was decided.
    pub(super) fn count_ended(&self) {
        self.delayed.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn watch(&self, delayed: &Arc<Delayed<K, O>>)
    where
        K: Clone,
    {
        for key in delayed.keys() {
            self.watchers.watch(key.clone(), delayed.number(), delayed);
        }
    }

    pub(super) fn unwatch(&self, delayed: &Delayed<K, O>) {
        for key in delayed.keys() {
            self.watchers.unwatch(key, delayed.number());
        }
    }

    pub(super) fn check<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let (mut completed, mut panics) = (0, Panics::default());
        self.watchers.visit(key, |delayed| completed += usize::from(delayed.attempt(&mut panics)));
        panics.resume();
        completed
    }

    pub(super) fn cancel_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Vec<Arc<O>>
    where
        K: Borrow<Q>,
    {
        let mut taken = self.watchers.take(key);
        taken.retain(|delayed| delayed.cancel());
        taken.iter().map(|delayed| Arc::clone(delayed.operation())).collect()
    }

    pub(super) fn shut_down(&self) -> usize {
        self.closed.store(true, Ordering::Release);
        let (mut answered, mut panics) = (0, Panics::default());
        for delayed in self.watchers.all() {
            answered += usize::from(delayed.expire(&mut panics));
        }
        panics.resume();
        answered
    }
}
